//! The lock file of an operator's graphs, checked by a test.

use std::path::Path;

pub use okt_syntax::lock::LockedGraph;
use okt_syntax::lock::{Difference, compare, write};
use okt_wire::object::LifecycleObject;
use okt_wire::versions::KindVersions;

/// Compares the graphs of an operator with its lock file, which is committed.
///
/// The lock file (`lifecycle.lock`) holds the graphs that objects in a cluster may be stored under. Any difference
/// fails, so that a change of a graph is seen in review. `OKT_LOCK=write cargo test` writes the file, except if a
/// change takes something from stored objects: a state or a former name that is gone, a route or a desired state that
/// vanished, a condition that is gone. Such a change is accepted by `#[was]` in the code, or by a line in the file that
/// says why.
///
/// ```no_run
/// # use okt_core::Lifecycle;
/// # fn test<WidgetState: Lifecycle>() {
/// okt_testing::lock::check("lifecycle.lock", [WidgetState::GRAPH]);
/// # }
/// ```
///
/// # Panics
///
/// If the file differs from the graphs, cannot be read or cannot be written. The message lists the differences, and
/// says what to do.
#[track_caller]
pub fn check<'g, G: Into<LockedGraph<'g>>>(
    file: impl AsRef<Path>,
    graphs: impl IntoIterator<Item = G>,
) {
    let file = file.as_ref();
    let graphs: Vec<_> = graphs.into_iter().map(Into::into).collect();
    let may_write = std::env::var("OKT_LOCK").is_ok_and(|it| it == "write");
    if let Err(why) = checked(file, &graphs, may_write) {
        panic!("{why}");
    }
}

/// Returns the graphs of all versions of a kind: objects may be stored in each. A version that goes is refused like a state.
///
/// ```no_run
/// # use okt_wire::object::LifecycleObject;
/// # fn test<Tent: LifecycleObject>() {
/// okt_testing::lock::check("lifecycle.lock", okt_testing::lock::versions::<Tent>());
/// # }
/// ```
pub fn versions<K: LifecycleObject>() -> Vec<LockedGraph<'static>> {
    let versions = KindVersions::of::<K>();
    let are_several = versions.all().len() > 1;
    let all = versions.all().iter();
    all.filter(|version| !version.graph.states.is_empty())
        .map(|version| LockedGraph {
            version: are_several.then(|| version.name.clone()),
            graph: version.graph,
        })
        .collect()
}

fn checked(file: &Path, graphs: &[LockedGraph<'_>], may_write: bool) -> Result<(), String> {
    let name = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let earlier = text.as_deref().unwrap_or_default();
    let differences = compare(earlier, graphs).map_err(|why| {
        let shown = why.render(earlier, &name.to_string(), false);
        format!("the lock file cannot be read; mend it, or take it from git again\n{shown}")
    })?;
    let (refused, accepted): (Vec<_>, Vec<_>) = differences.iter().partition(|it| it.is_refused());
    if !refused.is_empty() {
        return Err(refusal(&name.to_string(), &refused));
    }
    let current = write(earlier, graphs);
    if text.as_ref() == Some(&current) {
        return Ok(());
    }
    if may_write {
        return std::fs::write(file, current).map_err(|error| format!("{name}: {error}"));
    }
    let changes: String = accepted.iter().map(|it| line(it)).collect();
    Err(match text {
        None => format!("there is no {name}; write it: OKT_LOCK=write cargo test"),
        Some(_) => format!(
            "{name} differs from the code; if that is right, write it: OKT_LOCK=write cargo test\n{changes}"
        ),
    })
}

/// Returns the message about changes that are not accepted.
fn refusal(name: &str, refused: &[&Difference]) -> String {
    let mut text = format!("stored objects lose something by these changes of {name}:\n");
    for difference in refused {
        text.push_str(&line(difference));
        if let Some(risk) = difference.change.risk {
            text.push_str(&format!("    {risk}\n"));
        }
    }
    text.push_str(&format!(
        "if no release had it yet, no object is stored: delete {name} and write it again: OKT_LOCK=write cargo test\n\
         otherwise give a state its former name with `#[was(\"..\")]`, or accept the change by a line in the file:\n"
    ));
    for difference in refused {
        text.push_str(&format!("{}why\n", difference.line()));
    }
    text
}

fn line(difference: &Difference) -> String {
    format!("  {}: {}\n", difference.graph, difference.change)
}

#[cfg(test)]
mod tests {
    use super::checked;
    use okt_core::routes::Routes;
    use okt_core::{Graph, Kind, Mark, Marks, State, StateId};

    const fn state(name: &'static str, mark: Mark, children: &'static [StateId]) -> State<'static> {
        State {
            name,
            variant: name,
            doc: "",
            was: &[],
            marks: Marks(mark as u8),
            triggers: &[],
            children,
            conditions: &[],
            no_routes: &[],
        }
    }

    const fn graph<'g>(states: &'g [State<'g>]) -> Graph<'g> {
        Graph {
            name: "Life",
            doc: "",
            kind: Kind::Lifecycle,
            parts: &[],
            gates: &[],
            states,
            routes: Routes::NONE,
        }
    }

    #[test]
    fn the_file_is_written_when_asked_and_compared_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lifecycle.lock");
        let old_states = [
            state("Start", Mark::Entry, &[StateId(1)]),
            state("End", Mark::Leaf, &[]),
        ];
        let old = graph(&old_states);
        let missing = checked(&file, &[(&old).into()], false).expect_err("no file");
        assert!(missing.contains("OKT_LOCK=write cargo test"), "{missing}");
        assert_eq!(checked(&file, &[(&old).into()], true), Ok(()));
        assert_eq!(checked(&file, &[(&old).into()], false), Ok(()));

        let new_states = [
            state("Start", Mark::Entry, &[StateId(2)]),
            state("End", Mark::Leaf, &[]),
            state("Middle", Mark::NoTransit, &[StateId(1)]),
        ];
        let new = graph(&new_states);
        let differs = checked(&file, &[(&new).into()], false).expect_err("it differs");
        assert!(
            differs.contains("  Life: added state `Middle`\n"),
            "{differs}"
        );
        assert_eq!(checked(&file, &[(&new).into()], true), Ok(()));

        // Back again: a state is gone, which not even writing accepts.
        for may_write in [false, true] {
            let refused = checked(&file, &[(&old).into()], may_write).expect_err("refused");
            assert!(
                refused.contains("  Life: removed state `Middle`\n"),
                "{refused}"
            );
            assert!(refused.contains("no release had it yet"), "{refused}");
        }
        let line = "// accept Life: removed state `Middle`: no release had it";
        let text = std::fs::read_to_string(&file).expect("it is there");
        std::fs::write(&file, format!("{text}{line}\n")).expect("it is written");
        let differs = checked(&file, &[(&old).into()], false).expect_err("it differs");
        assert!(differs.contains("OKT_LOCK=write"), "{differs}");
        assert_eq!(checked(&file, &[(&old).into()], true), Ok(()));
        assert_eq!(checked(&file, &[(&old).into()], false), Ok(()));
        let text = std::fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(line), "{text}");

        std::fs::write(&file, "enum {").expect("it is written");
        let unreadable = checked(&file, &[(&old).into()], true).expect_err("no Rust");
        assert!(unreadable.contains("cannot be read"), "{unreadable}");
    }
}
