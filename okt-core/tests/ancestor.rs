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

/// The test graph of the ancestor's repository.
fn t() -> Graph<'static> {
    graph(&[
        "entry Start >End >Run",
        "Run >Servicing >Stopping",
        "Servicing >Stopping >Run",
        "Stopping >End",
        "leaf End",
    ])
}

/// The graph of the ancestor's README.
fn r() -> Graph<'static> {
    graph(&[
        "entry Start >Running",
        "Running >Servicing >Stopping",
        "Servicing >Running >End",
        "Stopping >End",
        "leaf End",
    ])
}

/// Selects the next state for events by name; `Default` is the ancestor's word for Next.
fn next(graph: &Graph<'static>, from: &str, events: &[&str]) -> Option<&'static str> {
    let named = |name: &&str| match *name {
        "Default" => Event::Next,
        name => Event::To(graph.named(name).unwrap_or(StateId::UNKNOWN)),
    };
    let events: Vec<Event> = events.iter().map(named).collect();
    let from = graph.named(from).expect("a state");
    graph.next(from, &events).map(|to| graph.name_of(to))
}

/// Sets the first state and fires one list of events after the other; refused events move nothing.
fn walk(graph: &Graph<'static>, start: &str, fired: &[&[&str]]) -> String {
    let mut trail = Trail::default();
    let mut at = start.to_string();
    trail.push(&at);
    for events in fired {
        if let Some(to) = next(graph, &at, events) {
            trail.push(to);
            at = to.to_string();
        }
    }
    let id = graph.named(&at).expect("a state");
    if graph.get(id).is_some_and(|state| state.children.is_empty()) {
        trail.end();
    }
    trail.to_string()
}

#[test]
fn c1_an_event_names_the_child_to_go_to() {
    assert_eq!(next(&t(), "Start", &["End"]), Some("End"));
    assert_eq!(walk(&t(), "Start", &[&["End"]]), ">Start>End");
}

#[test]
fn c2_nothing_leads_out_of_a_leaf() {
    assert_eq!(next(&t(), "End", &["Start"]), None);
    assert_eq!(next(&t(), "End", &["Default"]), None);
    let fired: [&[&str]; 3] = [&["End"], &["Start"], &["Default"]];
    assert_eq!(walk(&t(), "Start", &fired), ">Start>End");
}

#[test]
fn c3_an_event_that_names_no_child_is_refused() {
    for events in [&["Start"][..], &["End"], &["Run"], &[], &["unknown"]] {
        assert_eq!(next(&t(), "Run", events), None, "{events:?}");
    }
}

#[test]
fn c4_next_goes_to_the_last_child() {
    let fired = [&["Default"][..]; 3];
    assert_eq!(walk(&t(), "Start", &fired), ">Start>Run>Stopping>End");
}

#[test]
fn c5_two_states_to_and_fro_fold_into_one_segment() {
    let mut fired: Vec<&[&str]> = vec![&["Servicing"]];
    for _ in 0..11 {
        fired.extend([&["Default"][..], &["Servicing"]]);
    }
    fired.extend([&["Run", "Stopping"][..], &["Default"]]);
    assert_eq!(
        walk(&t(), "Run", &fired),
        ">(Run<<>>Servicing)x12>Stopping>End"
    );
}

#[test]
fn c6_a_name_beats_next_in_any_order() {
    for events in [["Default", "Servicing"], ["Servicing", "Default"]] {
        assert_eq!(next(&t(), "Run", &events), Some("Servicing"));
    }
}

#[test]
fn c7_the_order_of_the_children_decides_and_not_that_of_the_events() {
    for events in [["Run", "Stopping"], ["Stopping", "Run"]] {
        assert_eq!(next(&t(), "Servicing", &events), Some("Stopping"));
    }
}

#[test]
fn c8_the_first_child_that_is_named_wins() {
    assert_eq!(next(&t(), "Start", &["Run", "End"]), Some("End"));
}

#[test]
fn c9_a_path_by_names() {
    let mut at = "Start";
    for to in [
        "Run",
        "Servicing",
        "Run",
        "Servicing",
        "Run",
        "Stopping",
        "End",
    ] {
        assert_eq!(next(&t(), at, &[to]), Some(to));
        at = to;
    }
}

#[test]
fn c13_a_state_is_not_its_own_child() {
    assert_eq!(next(&t(), "Start", &["Run"]), Some("Run"));
    assert_eq!(next(&t(), "Run", &["Run"]), None);
}

#[test]
fn c16_next_all_the_way_through_the_readme() {
    let fired = [&["Default"][..]; 3];
    assert_eq!(walk(&r(), "Start", &fired), ">Start>Running>Stopping>End");
}

#[test]
fn c17_of_two_children_that_are_named_the_first_wins() {
    assert_eq!(
        next(&r(), "Running", &["Servicing", "Stopping"]),
        Some("Servicing")
    );
}

#[test]
fn c18_out_of_servicing() {
    assert_eq!(next(&r(), "Servicing", &["Default"]), Some("End"));
    assert_eq!(
        next(&r(), "Servicing", &["Running", "End"]),
        Some("Running")
    );
    assert_eq!(next(&r(), "Servicing", &["End"]), Some("End"));
}

#[test]
fn c19_a_path_through_the_readme() {
    let mut at = "Start";
    for to in ["Running", "Servicing", "Running", "Stopping", "End"] {
        assert_eq!(next(&r(), at, &[to]), Some(to));
        at = to;
    }
}

#[test]
fn c20_next_circles_where_the_last_child_leads_back() {
    let cycle = graph(&["entry A >B", "B >C", "C >Z >A", "leaf Z"]);
    for (from, to) in [("A", "B"), ("B", "C"), ("C", "A")] {
        assert_eq!(next(&cycle, from, &["Default"]), Some(to));
    }
    let fired = [&["Default"][..]; 3];
    assert_eq!(walk(&cycle, "A", &fired), ">A>B>C>A>");
}
