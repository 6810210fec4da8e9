//! The lock file of an operator's graphs: what objects in a cluster may be stored under.
//!
//! The file holds each graph as it is declared, in Rust, without docs. A change of the code that takes something from
//! stored objects is accepted by a line `// accept <graph>: <change>: <why>` in it.

use std::collections::BTreeMap;

use okt_core::check::Rule;
use okt_core::evolution::{Change, ChangeKind, changes};
use okt_core::{Cause, GateKind, Graph, Kind, Mark, Passes, State, StateId, Trigger, duration};

use crate::options::identifier;
use crate::source::{Cfg, Mistake, Source};

const HEAD: &str = "\
//! The lifecycle graphs of this operator: objects in a cluster may be stored in any of these states.
//!
//! `cargo test` compares this file with the code, and `OKT_LOCK=write cargo test` writes it.
//! To accept a change that takes something from stored objects, write below: `// accept <graph>: <change>: <why>`.
";

const ACCEPT: &str = "// accept ";

/// A graph of the code, and the version of its kind to which it belongs, if the kind has several.
#[derive(Clone, Debug)]
pub struct LockedGraph<'g> {
    /// The version (e.g. `v1alpha1`); none for a kind with one version.
    pub version: Option<String>,
    /// The graph.
    pub graph: &'g Graph<'g>,
}

impl<'g> From<&'g Graph<'g>> for LockedGraph<'g> {
    fn from(graph: &'g Graph<'g>) -> Self {
        Self {
            version: None,
            graph,
        }
    }
}

impl<'g> From<&&'g Graph<'g>> for LockedGraph<'g> {
    fn from(graph: &&'g Graph<'g>) -> Self {
        Self::from(*graph)
    }
}

impl LockedGraph<'_> {
    /// Returns its name in differences (e.g. `v1alpha1::TentState`).
    fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("{version}::{}", self.graph.name),
            None => self.graph.name.to_owned(),
        }
    }

    /// Returns its declaration without docs, in a module if it belongs to a version.
    pub fn declaration(&self) -> String {
        let declared = declaration(self.graph);
        match &self.version {
            Some(version) => {
                let lines = declared.lines().map(|line| match line {
                    "" => "\n".to_owned(),
                    line => format!("    {line}\n"),
                });
                format!("mod {version} {{\n{}}}\n", lines.collect::<String>())
            }
            None => declared,
        }
    }
}

/// A difference between the lock file and the code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The name of the enum, after the version of its kind if the kind has several.
    pub graph: String,
    /// The change.
    pub change: Change,
    /// Why the change is accepted; none if the file has no reason.
    pub accepted: Option<String>,
}

impl Difference {
    /// Returns whether somebody has to accept the change before the file can be written.
    pub fn is_refused(&self) -> bool {
        self.change.risk.is_some() && self.accepted.is_none()
    }

    /// Returns the line that accepts the change, up to the reason.
    pub fn line(&self) -> String {
        format!("{ACCEPT}{}: {}: ", self.graph, self.change)
    }
}

/// Returns how the graphs of the code differ from those of a lock file.
///
/// # Errors
///
/// The text of the file is not Rust, or a graph in it names a state that it does not have. Another attempt with the
/// same text does not help.
///
/// ```
/// use okt_syntax::lock::{compare, write};
/// use okt_syntax::source::{Cfg, Source};
///
/// let code = "#[lifecycle_graph] enum Life { #[entry] #[child(End)] Start, #[leaf] End }";
/// let differences = Source::parse(code, &Cfg::new([]))?.graphs(|graph| {
///     let lock = write("", &[graph.into()]);
///     compare(&lock.replace("End", "Over"), &[graph.into()])
/// });
/// let differences = differences.into_iter().next().expect("a graph")?;
/// assert_eq!(differences[0].line(), "// accept Life: removed state `Over`: ");
/// assert!(differences[0].is_refused());
/// # Ok::<(), Box<okt_syntax::source::Mistake>>(())
/// ```
pub fn compare(lock: &str, graphs: &[LockedGraph<'_>]) -> Result<Vec<Difference>, Box<Mistake>> {
    let source = Source::parse(lock, &Cfg::new([]))?;
    let mut mistakes = source.mistakes().iter();
    if let Some(unknown) = mistakes.find(|it| it.rule == Some(Rule::UnknownTarget)) {
        return Err(Box::new(unknown.clone()));
    }
    let found = with_locked(&source, |locked| {
        let mut found: Vec<(String, Change)> = Vec::new();
        for old in locked {
            let name = old.name();
            let all = match counterpart(old, graphs) {
                Some(new) => changes(old.graph, new.graph),
                None => vec![removed(old)],
            };
            found.extend(all.into_iter().map(|change| (name.clone(), change)));
        }
        let is_new = |name: &String| locked.iter().all(|old| old.name() != *name);
        let new = graphs.iter().map(LockedGraph::name).filter(is_new);
        found.extend(new.map(|name| (name, whole(ChangeKind::Added, None))));
        found
    });
    let accepted: Vec<&str> = accepted(lock).collect();
    let differences = found.into_iter().map(|(graph, change)| {
        let mut difference = Difference {
            graph,
            change,
            accepted: None,
        };
        let line = difference.line();
        let rest = accepted
            .iter()
            .find_map(|it| it.strip_prefix(line.as_str()));
        let reason = rest.map(str::trim).filter(|reason| !reason.is_empty());
        difference.accepted = reason.map(str::to_owned);
        difference
    });
    Ok(differences.collect())
}

/// Returns how the graphs that one text declares differ from those of another (e.g. of two lock files).
///
/// # Errors
///
/// As [`compare`].
pub fn compare_texts(old: &str, new: &str) -> Result<Vec<Difference>, Box<Mistake>> {
    with_locked(&Source::parse(new, &Cfg::new([]))?, |graphs| {
        compare(old, graphs)
    })
}

/// Returns the text of the lock file of these graphs, with the accepted changes of an earlier one.
pub fn write(earlier: &str, graphs: &[LockedGraph<'_>]) -> String {
    let mut text = HEAD.to_owned();
    for line in accepted(earlier) {
        text.push_str(&format!("\n{line}"));
    }
    if accepted(earlier).next().is_some() {
        text.push('\n');
    }
    for graph in graphs {
        text.push('\n');
        text.push_str(&graph.declaration());
    }
    text
}

/// Calls a function with all graphs of a text, as [`Source::with_graphs`] does.
pub fn with_locked<T>(source: &Source, look: impl FnOnce(&[LockedGraph<'_>]) -> T) -> T {
    source.with_graphs(|graphs| {
        let versions = source.versions().iter().cloned();
        let graphs = versions.zip(graphs);
        let graphs: Vec<_> = graphs
            .map(|(version, graph)| LockedGraph { version, graph })
            .collect();
        look(&graphs)
    })
}

/// Returns the graph of the code that a graph of the lock file has become. One without a version, from before its kind had
/// several, is that of the version from which it differs least.
fn counterpart<'a, 'g>(
    old: &LockedGraph<'_>,
    graphs: &'a [LockedGraph<'g>],
) -> Option<&'a LockedGraph<'g>> {
    let same = graphs.iter().filter(|new| new.graph.name == old.graph.name);
    let named = same.clone().find(|new| new.version == old.version);
    let difference = |new: &&LockedGraph<'_>| {
        let changes = changes(old.graph, new.graph);
        let risks = changes.iter().filter(|change| change.risk.is_some());
        (risks.count(), changes.len())
    };
    match old.version {
        None if named.is_none() => same.min_by_key(difference),
        _ => named,
    }
}

fn removed(graph: &LockedGraph<'_>) -> Change {
    let risk = match graph.version {
        Some(_) => {
            "an object that is stored in this version cannot be read, unless all are migrated"
        }
        None => "an object of its kind has no place in any graph",
    };
    whole(ChangeKind::Removed, Some(risk))
}

fn whole(kind: ChangeKind, risk: Option<&'static str>) -> Change {
    Change {
        kind,
        subject: "graph".to_owned(),
        risk,
    }
}

/// Returns the lines that accept a change.
fn accepted(lock: &str) -> impl Iterator<Item = &str> {
    lock.lines()
        .map(str::trim_end)
        .filter(|line| line.starts_with(ACCEPT))
}

/// Returns a graph as it is declared, without docs.
fn declaration(graph: &Graph<'_>) -> String {
    let options = match graph.kind {
        Kind::Pass => "(pass)",
        // The lock does not know the name of the spec, and nothing that reads it needs the name.
        Kind::Lifecycle if !graph.parts.is_empty() => "(spec(Spec))",
        Kind::Lifecycle => "",
    };
    let mut text = format!("#[lifecycle_graph{options}]\n");
    for (target, time, over) in deadlines(graph) {
        let over: Vec<String> = over.iter().map(|id| variant(graph, *id)).collect();
        text.push_str(&format!(
            "#[deadline({}, after = {time:?}, over({}))]\n",
            variant(graph, target),
            over.join(", ")
        ));
    }
    for gate in graph.gates {
        let states: Vec<String> = gate.states.iter().map(|id| variant(graph, *id)).collect();
        let Passes { triggers, deletion } = gate.passes;
        let passes = [(triggers, "triggers"), (deletion, "deletion")];
        let passes: Vec<&str> = passes.iter().filter(|it| it.0).map(|it| it.1).collect();
        let needs = match gate.kind {
            GateKind::Window { needs } if !needs.is_zero() => {
                format!(", needs = {:?}", duration::text(needs))
            }
            GateKind::Window { .. } | GateKind::Approval | GateKind::Limit => String::new(),
        };
        let passes = if passes.is_empty() {
            String::new()
        } else {
            format!(", passes({})", passes.join(", "))
        };
        text.push_str(&format!(
            "#[{}({}, states({}){needs}{passes})]\n",
            gate.kind.as_str(),
            gate.name,
            states.join(", ")
        ));
    }
    text.push_str(&format!("enum {} {{\n", graph.name));
    for (index, (id, state)) in graph.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        for attribute in attributes(graph, state) {
            text.push_str(&format!("    #[{attribute}]\n"));
        }
        text.push_str(&format!("    {},\n", variant(graph, id)));
    }
    text.push_str("}\n");
    text
}

/// Returns the deadlines over several states: the target, the time, and the states.
fn deadlines(graph: &Graph<'_>) -> Vec<(StateId, String, Vec<StateId>)> {
    let mut deadlines: BTreeMap<(StateId, String), Vec<StateId>> = BTreeMap::new();
    for (id, state) in graph.iter() {
        if let Some((to, time)) = state.deadline() {
            let key = (to, duration::text(time));
            deadlines.entry(key).or_default().push(id);
        }
    }
    deadlines
        .into_iter()
        .map(|((to, time), over)| (to, time, over))
        .collect()
}

fn attributes(graph: &Graph<'_>, state: &State<'_>) -> Vec<String> {
    let mut attributes = Vec::new();
    if state.name != state.variant {
        attributes.push(format!("serde(rename = {:?})", state.name));
    }
    attributes.extend(state.was.iter().map(|was| format!("was({was:?})")));
    let options = |options: &[(Mark, &'static str)]| -> String {
        let set = options.iter().filter(|(mark, _)| state.is(*mark));
        let words: Vec<&str> = set.map(|(_, word)| *word).collect();
        if words.is_empty() {
            String::new()
        } else {
            format!("({})", words.join(", "))
        }
    };
    for (mark, word, options) in [
        (Mark::Entry, "entry", String::new()),
        (
            Mark::Rest,
            "rest",
            options(&[(Mark::Hold, "hold"), (Mark::Idle, "idle")]),
        ),
        (Mark::Leaf, "leaf", options(&[(Mark::Idle, "idle")])),
        // The types are in the code alone: objects store none of them.
        (Mark::Visit, "visit", options(&[(Mark::Args, "args = _")])),
        (Mark::NoTransit, "no_transit", String::new()),
    ] {
        if state.is(mark) {
            attributes.push(format!("{word}{options}"));
        }
    }
    attributes.extend(
        state
            .conditions
            .iter()
            .map(|it| format!("condition({:?})", it.name)),
    );
    attributes.extend(triggers(graph, state));
    attributes.extend(state.no_routes.iter().map(|it| {
        format!(
            "no_route({}, reason = {:?})",
            variant(graph, it.to),
            it.reason
        )
    }));
    attributes.extend(
        state
            .children
            .iter()
            .map(|to| format!("child({})", variant(graph, *to))),
    );
    attributes
}

/// Returns one attribute for each target of triggers, with all of their causes.
fn triggers(graph: &Graph<'_>, state: &State<'_>) -> impl Iterator<Item = String> {
    let mut triggers: Vec<(StateId, String)> = Vec::new();
    for Trigger { to, cause } in state.triggers {
        let Some(cause) = cause_of(*cause, graph.parts) else {
            continue;
        };
        match triggers.iter_mut().find(|(known, _)| known == to) {
            Some((_, items)) => items.push_str(&cause),
            None => triggers.push((*to, variant(graph, *to) + &cause)),
        }
    }
    triggers
        .into_iter()
        .map(|(_, items)| format!("trigger({items})"))
}

/// Returns a cause as it follows the target, empty for a name; none for a deadline, which the enum declares.
fn cause_of(cause: Cause, parts: &[&str]) -> Option<String> {
    Some(match cause {
        Cause::Named => String::new(),
        Cause::After(time) => format!(", after = {:?}", duration::text(time)),
        Cause::Deadline(_) => return None,
        Cause::OnError { attempts: 1 } => ", on_error".to_owned(),
        Cause::OnError { attempts } => format!(", on_error(attempts = {attempts})"),
        Cause::OnDelete => ", on_delete".to_owned(),
        Cause::OnChange => ", on_change".to_owned(),
        Cause::OnChangeOf(these) => {
            let names: Vec<String> = these.names(parts).map(path).collect();
            format!(", on_change({})", names.join(", "))
        }
        Cause::OnGiveUp => ", on_give_up".to_owned(),
        Cause::OnAbort => ", on_abort".to_owned(),
    })
}

/// Returns a part of a spec as source code: a field may have the name of a keyword.
fn path(part: &str) -> String {
    let fields = part.split('.').map(|field| match field.strip_suffix("()") {
        Some(method) => written(method) + "()",
        None => written(field),
    });
    fields.collect::<Vec<_>>().join(".")
}

fn variant(graph: &Graph<'_>, id: StateId) -> String {
    written(graph.get(id).map_or("Unknown", |state| state.variant))
}

fn written(name: &str) -> String {
    identifier(name).map_or_else(|| name.to_owned(), |ident| ident.to_string())
}
