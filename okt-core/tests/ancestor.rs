//! The ancestor's own cases: OKT takes the same edges, and has the same trail where the ancestor's path agrees with
//! OKT's rules.
//!
//! The rows are those of the table "Black-box cases" in the notes about the ancestor. C10 to C12, C14, C15 and C21 to
//! C23 are faults of the ancestor or differ on purpose; other tests define OKT's behavior there.

#[path = "common/build.rs"]
mod build;

use okt_core::trail::Trail;
use okt_core::{Event, Graph, StateId};

use build::graph;

/// A graph and a state, then lists of events that are fired one after the other, and the trail; refused events move
/// nothing. `Default` is the ancestor's word for Next.
const CASES: &str = "
    C1: an event names the child to go to.
        T Start; End -> >Start>End
    C2: nothing leads out of a leaf.
        T Start; End; Start; Default -> >Start>End
    C3: an event that names no child is refused.
        T Run; Start; End; Run; ; unknown -> >Run>
    C4: Next goes to the last child.
        T Start; Default; Default; Default -> >Start>Run>Stopping>End
    C6: a name beats Next in any order.
        T Run; Default Servicing -> >Run>Servicing>
        T Run; Servicing Default -> >Run>Servicing>
    C7: the order of the children decides, and not that of the events.
        T Servicing; Run Stopping -> >Servicing>Stopping>
        T Servicing; Stopping Run -> >Servicing>Stopping>
    C8: the first child that is named wins.
        T Start; Run End -> >Start>End
    C9: a path by names.
        T Start; Run; Servicing; Run; Servicing; Run; Stopping; End -> >Start>(Run<<>>Servicing)x2>Run>Stopping>End
    C13: a state is not its own child.
        T Start; Run; Run -> >Start>Run>
    C16: Next all the way through the README.
        R Start; Default; Default; Default -> >Start>Running>Stopping>End
    C17: of two children that are named the first wins.
        R Running; Servicing Stopping -> >Running>Servicing>
    C18: out of Servicing.
        R Servicing; Default -> >Servicing>End
        R Servicing; Running End -> >Servicing>Running>
        R Servicing; End -> >Servicing>End
    C19: a path through the README.
        R Start; Running; Servicing; Running; Stopping; End -> >Start>Running>Servicing>Running>Stopping>End
    C20: Next circles where the last child leads back.
        A A; Default; Default; Default -> >A>B>C>A>
";

/// Returns the test graph of the ancestor's repository, that of its README, or one that circles.
fn graph_of(name: &str) -> Graph<'static> {
    graph(match name {
        "T" => &[
            "entry Start >End >Run",
            "Run >Servicing >Stopping",
            "Servicing >Stopping >Run",
            "Stopping >End",
            "leaf End",
        ],
        "R" => &[
            "entry Start >Running",
            "Running >Servicing >Stopping",
            "Servicing >Running >End",
            "Stopping >End",
            "leaf End",
        ],
        _ => &["entry A >B", "B >C", "C >Z >A", "leaf Z"],
    })
}

fn walk(fired: &str) -> String {
    let mut fired = fired.split("; ");
    let start = fired.next().and_then(|it| it.split_once(' '));
    let (name, start) = start.expect("a graph and a state");
    let graph = graph_of(name);
    let mut at = graph.named(start).expect("a state");
    let mut trail = Trail::default();
    trail.push(start);
    for events in fired {
        let named = |name: &str| match name {
            "Default" => Event::Next,
            name => Event::To(graph.named(name).unwrap_or(StateId::UNKNOWN)),
        };
        let events: Vec<Event> = events.split_whitespace().map(named).collect();
        if let Some(to) = graph.next(at, &events) {
            trail.push(graph.name_of(to));
            at = to;
        }
    }
    if graph.get(at).is_some_and(|state| state.children.is_empty()) {
        trail.end();
    }
    trail.to_string()
}

#[test]
fn okt_takes_the_edges_of_the_ancestor() {
    for row in CASES.lines().filter_map(|line| line.split_once(" -> ")) {
        assert_eq!(walk(row.0.trim()), row.1, "{}", row.0);
    }
}

#[test]
fn c5_two_states_to_and_fro_fold_into_one_segment() {
    let to_and_fro = "Default; Servicing; ".repeat(11);
    let fired = format!("T Run; Servicing; {to_and_fro}Run Stopping; Default");
    assert_eq!(walk(&fired), ">(Run<<>>Servicing)x12>Stopping>End");
}
