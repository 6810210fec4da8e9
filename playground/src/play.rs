//! Plays an object: what a person at the page does, one step after the other, always from the beginning.

use std::time::Duration;

use okt_core::facts::{ActionResult, Observed};
use okt_core::stored::StoredGraph;
use okt_core::{Graph, StateId};
use okt_syntax::source::{Cfg, Source};
use serde::{Deserialize, Serialize};

use crate::object::PlayedObject;

/// The number of failed observations that a lost application has had.
const FAILURES: u32 = 3;

/// What the page asks for.
#[derive(Deserialize)]
struct Request {
    source: String,
    /// The name of the graph.
    graph: String,
    steps: Vec<Step>,
}

/// What a person does.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
enum Step {
    /// Asks for a state; none for the default.
    Desire { state: Option<String> },
    /// Asks for a visit.
    Visit { state: String },
    /// Asks for the same again.
    Request,
    /// Changes something else in the spec.
    Edit,
    /// Deletes the object.
    Delete,
    /// The handler answers Next.
    Next,
    /// The handler answers that the object stays.
    Stay,
    /// The handler names a state.
    To { state: String },
    /// The handler wants to be called again in a minute.
    Wait,
    /// The handler fails.
    Fail,
    /// The handler fails, and no retry helps.
    FailPermanently,
    /// The operator crashes.
    Crash,
    /// The application is observed in a state.
    Observe { state: String },
    /// There is no application.
    Absent,
    /// The application does not answer.
    Unreachable,
    /// Time passes.
    Pass { seconds: u64 },
}

/// What the page shows.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is for a part of the page"
)]
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Played<'g> {
    /// Why nothing is played.
    error: Option<String>,
    /// What happened in each step; the first is the creation.
    log: Vec<Vec<String>>,
    state: Option<&'g str>,
    doing: String,
    is_gone: bool,
    /// Whether a handler runs, which may answer.
    is_working: bool,
    may_stay: bool,
    has_next: bool,
    /// The states that the handler may name.
    answers: Vec<&'g str>,
    states: Vec<&'g str>,
    desired: Vec<&'g str>,
    visits: Vec<&'g str>,
}

/// Plays an object: takes the JSON of what a person does, and returns the JSON of what comes of it.
pub fn play(request: &str) -> String {
    let played = match serde_json::from_str::<Request>(request) {
        Ok(request) => played(&request),
        Err(error) => failed(&error.to_string()),
    };
    serde_json::to_string(&played).unwrap_or_default()
}

fn failed(error: &str) -> Played<'static> {
    Played {
        error: Some(error.to_owned()),
        ..Played::default()
    }
}

fn played(request: &Request) -> Played<'static> {
    let Ok(source) = Source::parse(&request.source, &Cfg::new([])) else {
        return failed("the text is not Rust");
    };
    let stored =
        source.graphs(|graph| (graph.name == request.graph).then(|| StoredGraph::of(graph)));
    let Some(stored) = stored.into_iter().flatten().next() else {
        return failed("the graph has mistakes");
    };
    // Only a stored graph has routes. The page is not open for ever.
    let graph = stored.leak();
    let mut object = PlayedObject::create(graph);
    let mut log = vec![object.take_log()];
    for step in &request.steps {
        do_step(graph, &mut object, step);
        log.push(object.take_log());
    }
    let names = |states: Vec<StateId>| states.into_iter().map(|it| graph.name_of(it)).collect();
    let all = || graph.iter().map(|(id, _)| id);
    Played {
        error: None,
        log,
        state: object.state().map(|state| graph.name_of(state)),
        doing: object.doing(),
        is_gone: object.is_gone(),
        is_working: object.is_working(),
        may_stay: object.may_stay(),
        has_next: object.has_next(),
        answers: names(object.successors()),
        states: names(all().collect()),
        desired: names(
            graph
                .desirable_states()
                .filter(|state| !object.is_visit(*state))
                .collect(),
        ),
        visits: names(all().filter(|state| object.is_visit(*state)).collect()),
    }
}

/// A step that makes no sense here, because the graph was changed since, does nothing.
fn do_step(graph: &Graph<'_>, object: &mut PlayedObject<'_>, step: &Step) {
    let named = |name: &String| graph.named(name);
    let answer = match step {
        Step::Next => object.has_next().then_some(ActionResult::Next),
        Step::Stay => object.may_stay().then_some(ActionResult::Stay),
        Step::To { state } => named(state)
            .filter(|state| object.successors().contains(state))
            .map(ActionResult::To),
        Step::Wait => Some(ActionResult::Wait(Duration::from_mins(1))),
        Step::Fail => Some(ActionResult::Failed { permanent: false }),
        Step::FailPermanently => Some(ActionResult::Failed { permanent: true }),
        _ => None,
    };
    if let Some(answer) = answer.filter(|_| object.is_working()) {
        object.answer(answer);
        return;
    }
    let unreachable = Observed::Unreachable { failures: FAILURES };
    match step {
        Step::Desire { state } => object.desire(state.as_ref().and_then(named)),
        Step::Visit { state } => {
            if let Some(state) = named(state) {
                object.visit(state);
            }
        }
        Step::Request => object.request(),
        Step::Edit => object.edit(),
        Step::Delete => object.delete(),
        Step::Crash => object.crash(),
        Step::Observe { state } => {
            if let Some(state) = named(state) {
                object.observe(Observed::In(state));
            }
        }
        Step::Absent => object.observe(Observed::Absent),
        Step::Unreachable => object.observe(unreachable),
        Step::Pass { seconds } => object.wait(Duration::from_secs(*seconds)),
        Step::Next
        | Step::Stay
        | Step::To { .. }
        | Step::Wait
        | Step::Fail
        | Step::FailPermanently => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::play;
    use crate::check;

    const LIFE: &str = "
        #[lifecycle_graph]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Life {
            #[entry]
            #[trigger(Failed, on_error(attempts = 3))]
            #[child(Running)]
            Start,
            #[rest]
            #[trigger(Start)]
            #[child(Backup)]
            #[child(Stopping)]
            Running,
            #[visit]
            #[trigger(Failed, after = \"10m\")]
            #[child(Running)]
            Backup,
            #[child(Gone)]
            Stopping,
            #[rest(hold, idle)]
            #[child(Start)]
            #[child(Stopping)]
            Failed,
            #[leaf(idle)]
            Gone,
        }
    ";

    /// Plays steps, which are words: the name of a step, and a state or a number of seconds.
    fn after(steps: &str) -> Value {
        let steps = steps.split(", ").filter(|it| !it.is_empty()).map(|step| {
            let (name, rest) = step.split_once(' ').unwrap_or((step, ""));
            match rest.parse::<u64>() {
                Ok(seconds) => json!({ "do": name, "seconds": seconds }),
                Err(_) if rest.is_empty() => json!({ "do": name }),
                Err(_) => json!({ "do": name, "state": rest }),
            }
        });
        let steps: Vec<Value> = steps.collect();
        let request = json!({ "source": LIFE, "graph": "Life", "steps": steps });
        let played: Value = serde_json::from_str(&play(&request.to_string())).expect("JSON");
        assert_eq!(played["error"], Value::Null, "{played}");
        played
    }

    #[track_caller]
    fn is_in(steps: &str, state: &str, doing: &str) {
        let played = after(steps);
        let found = played["state"].as_str().unwrap_or("gone");
        let shown = played["doing"].as_str().expect("a text");
        assert!(found == state && shown.starts_with(doing), "{played:#}");
    }

    #[test]
    fn an_object_lives_as_the_operator_decides() {
        for (steps, state, doing) in [
            ("", "Start", "works, attempt 1"),
            ("next", "Running", "works, attempt 1"),
            ("next, stay", "Running", "rests"),
            ("fail", "Start", "calls the handler again in"),
            ("fail, pass 10", "Start", "works, attempt 2"),
            ("fail, pass 10, fail, pass 10, fail", "Failed", "rests"),
            ("failPermanently", "Failed", "rests"),
            ("failPermanently, request", "Start", "works"),
            ("wait", "Start", "calls the handler again in 60s"),
            ("wait, pass 60", "Start", "works, attempt 1"),
            ("next, stay, visit Backup", "Backup", "works"),
            ("next, stay, visit Backup, next", "Running", "works"),
            ("next, stay, visit Backup, pass 600", "Failed", "rests"),
            ("next, stay, crash", "Running", "rests"),
            ("next, stay, absent", "Start", "works"),
            ("next, stay, edit", "Running", "works"),
            ("next, to Start", "Start", "works"),
            ("next, stay, desire Gone", "Stopping", "works"),
            ("next, stay, desire Gone, next", "Gone", "rests"),
            (
                "next, stay, desire Gone, next, desire Running, request",
                "Start",
                "works",
            ),
            ("next, stay, delete", "Stopping", "works"),
            ("next, stay, delete, next", "gone", "gone"),
            ("delete", "Start", "works, attempt 1"),
            ("delete, next, next, next", "gone", "gone"),
            (
                "delete, next, next, crash, next, visit Backup",
                "gone",
                "gone",
            ),
        ] {
            is_in(steps, state, doing);
        }
    }

    #[test]
    fn the_loop_guard_delays_a_move_and_the_answer_is_not_lost() {
        let loops = "next, to Start, ".repeat(8);
        let loops = loops.trim_end_matches(", ");
        let delayed = after(loops)["doing"].to_string();
        assert!(delayed.contains("the loop guard delays it by"), "{delayed}");
        let later = after(&format!("{loops}, pass 600"));
        assert_eq!(later["doing"], "works, attempt 1", "{later:#}");
        let last = later["log"]
            .as_array()
            .expect("a log")
            .last()
            .expect("a step")
            .to_string();
        assert!(last.contains(" → "), "{last}");
    }

    #[test]
    fn a_crash_loses_the_work_and_not_the_place() {
        let log = after("crash")["log"][1].to_string();
        assert!(
            log.contains("the work of Start resumes, under the same id, attempt 1"),
            "{log}"
        );
    }

    #[test]
    fn what_makes_no_sense_is_an_error_or_does_nothing() {
        for request in ["", "{}", "[1]", "\u{0}"] {
            assert!(play(request).starts_with("{\"error\":\""), "{request}");
        }
        is_in(
            "to Nowhere, visit Nowhere, observe Nowhere, stay",
            "Start",
            "works",
        );
        let request = json!({ "source": "enum A { ", "graph": "A", "steps": [] });
        assert!(play(&request.to_string()).contains("is not Rust"));
        let request = json!({ "source": LIFE, "graph": "Other", "steps": [] });
        assert!(play(&request.to_string()).contains("the graph has mistakes"));
    }

    #[test]
    fn the_mistakes_of_a_text_have_their_places_in_the_units_of_a_browser() {
        let text = LIFE
            .replace("on_error", "on_eror")
            .replacen("#[entry]", "/* ä𝄞 */ #[entry]", 1);
        let checked: Value = serde_json::from_str(&check(&text)).expect("JSON");
        let mistake = &checked["mistakes"][0];
        let shown = mistake["text"].as_str().expect("a text");
        assert!(
            shown.starts_with("OKT017: unknown option `on_eror`\nhelp: did you mean"),
            "{shown}"
        );
        let units: Vec<u16> = text.encode_utf16().collect();
        let at = |place: &str| {
            usize::try_from(mistake[place].as_u64().expect("a number")).expect("a place")
        };
        let marked = String::from_utf16(&units[at("start")..at("end")]).expect("text");
        assert_eq!(marked, "on_eror");
        let checked: Value = serde_json::from_str(&check(LIFE)).expect("JSON");
        let svg = checked["graphs"][0]["svg"].as_str().expect("a picture");
        assert!(
            svg.starts_with("<svg") && checked["mistakes"] == json!([]),
            "{checked}"
        );
    }
}
