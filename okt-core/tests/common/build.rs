//! Graphs for tests, one line per state.

use std::time::Duration;

use okt_core::routes::{Routes, Tables};
use okt_core::{
    Cause, Gate, GateKind, Graph, Kind, Mark, Marks, NoRoute, Parts, Passes, State, StateId,
    Trigger,
};

/// The parts of the spec that a trigger can name by their positions, as `change0` and `change01`.
const PARTS: [&str; 2] = ["version", "size"];

/// Builds a graph with its routes from one line per state: marks, name, edges.
///
/// `>Down` is a child, `-Down` a `no_route`, and `!Failed` a trigger, by name or with a cause:
/// `!Failed:error3`, `!Failed:after60` (seconds), `!Failed:deadline60`, `!Failed:delete`, `!Failed:change`,
/// `!Failed:change0` (of the first part)
/// (e.g. `"rest hold Up >Servicing >Down !Failed:error3"`).
/// A target that no line declares is [`StateId::UNKNOWN`].
///
/// A line that begins with the kind of a gate declares one (e.g. `"window night Down passes-triggers needs60"`).
pub(crate) fn graph(lines: &[&'static str]) -> Graph<'static> {
    let is_gate = |line: &&&'static str| {
        let mut kinds = ["window ", "approval ", "limit "].into_iter();
        kinds.any(|kind| line.starts_with(kind))
    };
    let gates: Vec<&str> = lines.iter().filter(is_gate).copied().collect();
    let lines: Vec<&str> = lines.iter().filter(|it| !is_gate(it)).copied().collect();
    let names: Vec<&str> = lines.iter().map(|line| name_in(line)).collect();
    let id = |name: &str| {
        let index = names.iter().position(|other| *other == name);
        index.map_or(StateId::UNKNOWN, StateId::at)
    };
    let graph = with_routes(lines.iter().map(|line| state(line, &id)).collect());
    let gates: Vec<Gate<'static>> = gates.iter().map(|line| gate(line, &id)).collect();
    Graph {
        gates: gates.leak(),
        ..graph
    }
}

fn gate(line: &'static str, id: &impl Fn(&str) -> StateId) -> Gate<'static> {
    let mut words = line.split(' ').skip(1);
    let name = words.next().expect("a name");
    let (mut states, mut passes, mut needs) = (Vec::new(), Passes::default(), Duration::ZERO);
    for word in words {
        match word {
            "passes-triggers" => passes.triggers = true,
            "passes-deletion" => passes.deletion = true,
            _ => match word.strip_prefix("needs") {
                Some(seconds) => needs = Duration::from_secs(seconds.parse().expect("seconds")),
                None => states.push(id(word)),
            },
        }
    }
    Gate {
        name,
        kind: match line.split(' ').next() {
            Some("approval") => GateKind::Approval,
            Some("limit") => GateKind::Limit,
            _ => GateKind::Window { needs },
        },
        states: states.leak(),
        passes,
    }
}

/// Builds a graph of these states, with its routes.
pub(crate) fn with_routes(states: Vec<State<'static>>) -> Graph<'static> {
    let graph = Graph {
        name: "App",
        doc: "",
        kind: Kind::Lifecycle,
        parts: &PARTS,
        gates: &[],
        states: states.leak(),
        routes: Routes::NONE,
    };
    let tables: &'static Tables = Box::leak(Box::new(Tables::of(&graph)));
    Graph {
        routes: tables.routes(),
        ..graph
    }
}

fn name_in(line: &'static str) -> &'static str {
    line.split(' ')
        .find(|word| word.starts_with(char::is_uppercase))
        .expect("a line names its state")
}

fn state(line: &'static str, id: &impl Fn(&str) -> StateId) -> State<'static> {
    let mut marks = Marks::default();
    let (mut triggers, mut children, mut no_routes) = (Vec::new(), Vec::new(), Vec::new());
    for word in line.split(' ') {
        let target = &word[1..];
        match word.as_bytes()[0] {
            b'>' => children.push(id(target)),
            b'-' => no_routes.push(NoRoute {
                to: id(target),
                reason: "because",
            }),
            b'!' => {
                let (to, cause) = target.split_once(':').unwrap_or((target, ""));
                triggers.push(Trigger {
                    to: id(to),
                    cause: cause_of(cause),
                });
            }
            b'A'..=b'Z' => {}
            _ => marks = marks.with(mark(word)),
        }
    }
    State {
        triggers: triggers.leak(),
        children: children.leak(),
        no_routes: no_routes.leak(),
        ..bare(name_in(line), marks)
    }
}

/// Returns a state without edges.
pub(crate) const fn bare(name: &'static str, marks: Marks) -> State<'static> {
    State {
        name,
        variant: name,
        doc: "",
        was: &[],
        marks,
        triggers: &[],
        children: &[],
        conditions: &[],
        no_routes: &[],
    }
}

fn cause_of(word: &str) -> Cause {
    let number = |word: &str| word.parse::<u32>().expect("a number");
    match word {
        "" => Cause::Named,
        "delete" => Cause::OnDelete,
        "change" => Cause::OnChange,
        "give-up" => Cause::OnGiveUp,
        "abort" => Cause::OnAbort,
        // The digits are positions in `PARTS`.
        _ if word.starts_with("change") => Cause::OnChangeOf(
            word.bytes()
                .filter(u8::is_ascii_digit)
                .fold(Parts::NONE, |parts, digit| {
                    parts.with((digit - b'0').into())
                }),
        ),
        _ => {
            let time = |word: &str| Duration::from_secs(number(word).into());
            if let Some(attempts) = word.strip_prefix("error") {
                let attempts = number(attempts);
                Cause::OnError { attempts }
            } else if let Some(seconds) = word.strip_prefix("deadline") {
                Cause::Deadline(time(seconds))
            } else {
                Cause::After(time(word.strip_prefix("after").expect("a cause")))
            }
        }
    }
}

fn mark(word: &str) -> Mark {
    match word {
        "entry" => Mark::Entry,
        "rest" => Mark::Rest,
        "hold" => Mark::Hold,
        "idle" => Mark::Idle,
        "leaf" => Mark::Leaf,
        "visit" => Mark::Visit,
        "args" => Mark::Args,
        "no_transit" => Mark::NoTransit,
        other => panic!("no mark: {other}"),
    }
}
