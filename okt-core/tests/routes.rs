//! Routes, compared with every permitted path of a small graph.

#[path = "common/build.rs"]
mod build;
#[path = "common/database.rs"]
mod database;
#[path = "common/graphs.rs"]
mod graphs;
#[path = "common/ids.rs"]
mod ids;
#[path = "common/rng.rs"]
mod rng;
#[path = "common/wild.rs"]
mod wild;

use okt_core::check::check;
use okt_core::routes::Tables;
use okt_core::{Cause, Graph, Mark, State, StateId};
use proptest::prelude::*;

use build::{graph, with_routes};
use database::database;
use rng::Rng;

/// The length of a way: its edges, then how often it leaves a state by another edge than Next.
type Length = (usize, usize);

/// Returns every way along children without a circle, from a state to those that `ends` accepts, through states that
/// `transit` accepts.
fn ways(
    graph: &Graph<'_>,
    from: StateId,
    ends: &dyn Fn(StateId) -> bool,
    transit: &dyn Fn(&State<'_>) -> bool,
) -> Vec<Vec<StateId>> {
    let mut found = Vec::new();
    let mut open = vec![vec![from]];
    while let Some(way) = open.pop() {
        let at = way[way.len() - 1];
        let Some(state) = graph.get(at) else { continue };
        if way.len() > 1 && ends(at) {
            found.push(way);
            continue;
        }
        if state.is(Mark::Leaf) || (way.len() > 1 && !transit(state)) {
            continue;
        }
        for child in state.children {
            if !way.contains(child) {
                open.push([&way[..], &[*child]].concat());
            }
        }
    }
    found
}

fn length(graph: &Graph<'static>, way: &[StateId], counts: fn(&State<'static>) -> bool) -> Length {
    let deviations = way.windows(2).filter(|edge| {
        let state = graph.get(edge[0]).expect("a state");
        counts(state) && state.next() != Some(edge[1])
    });
    (way.len() - 1, deviations.count())
}

/// Follows a table of hops; panics if they circle.
fn follow(
    graph: &Graph<'_>,
    from: StateId,
    hop: impl Fn(StateId) -> Option<StateId>,
) -> Vec<StateId> {
    let mut way = vec![from];
    while let Some(to) = hop(way[way.len() - 1]) {
        assert!(way.len() <= graph.states.len(), "circles: {way:?}");
        way.push(to);
    }
    way
}

/// Repeats the documentation of routes, independent of the implementation.
fn may_be_led_through(state: &State<'_>) -> bool {
    ![Mark::Leaf, Mark::Hold, Mark::NoTransit, Mark::Visit]
        .iter()
        .any(|mark| state.is(*mark))
}

/// Returns a random graph with routes, which passes the rules or not.
fn any_graph(rng: &mut Rng) -> Graph<'static> {
    if rng.one_in(2) {
        graphs::random(rng)
    } else {
        with_routes(wild::wild(rng).states.to_vec())
    }
}

/// Returns the graph with only one child where a deletion takes a trigger: that trigger's target.
fn as_a_deletion_sees_it(graph: &Graph<'static>) -> Graph<'static> {
    let states = graph.states.iter().map(|state| {
        let mut triggers = state.triggers.iter();
        match triggers.find(|it| it.cause == Cause::OnDelete) {
            Some(trigger) => State {
                children: vec![trigger.to].leak(),
                ..*state
            },
            None => *state,
        }
    });
    Graph {
        states: states.collect::<Vec<_>>().leak(),
        ..*graph
    }
}

/// Returns the states that children lead to from the entry, by following edges until nothing is new.
fn reached(graph: &Graph<'_>) -> Vec<StateId> {
    let mut reached = Vec::from_iter(graph.entry());
    for index in 0.. {
        let Some(at) = reached.get(index) else { break };
        for child in graph.get(*at).map_or(&[][..], |state| state.children) {
            if graph.get(*child).is_some() && !reached.contains(child) {
                reached.push(*child);
            }
        }
    }
    reached
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn a_hop_exists_if_a_permitted_way_does_and_follows_the_best_one(seed: u64) {
        let graph = any_graph(&mut Rng(seed));
        for to in graph.desirable_states() {
            for (from, _) in graph.iter() {
                let best = ways(&graph, from, &|id| id == to, &may_be_led_through)
                    .iter()
                    .map(|way| length(&graph, way, State::is_passing))
                    .min();
                let Some(_) = graph.hop(from, to) else {
                    prop_assert_eq!(best.filter(|_| from != to), None);
                    continue;
                };
                let way = follow(&graph, from, |at| graph.hop(at, to));
                prop_assert_eq!(way.last(), Some(&to));
                for through in &way[1..way.len() - 1] {
                    let state = graph.get(*through).expect("a state");
                    prop_assert!(may_be_led_through(state), "{way:?} leads through {}", state.name);
                }
                prop_assert_eq!(Some(length(&graph, &way, State::is_passing)), best);
            }
        }
    }

    #[test]
    fn among_equally_good_ways_the_first_declared_one_is_taken(seed: u64) {
        let graph = any_graph(&mut Rng(seed));
        for to in graph.desirable_states() {
            for (from, state) in graph.iter() {
                let Some(hop) = graph.hop(from, to) else { continue };
                let all = ways(&graph, from, &|id| id == to, &may_be_led_through);
                let measure = |way: &Vec<StateId>| length(&graph, way, State::is_passing);
                let best = all.iter().map(measure).min();
                let first = state.children.iter().find(|child| {
                    all.iter().any(|way| way[1] == **child && Some(measure(way)) == best)
                });
                prop_assert_eq!(first, Some(&hop));
            }
        }
    }

    #[test]
    fn a_spec_may_ask_for_resting_states_visits_and_leaves_that_children_reach(seed: u64) {
        let graph = any_graph(&mut Rng(seed));
        let reached = reached(&graph);
        for (id, state) in graph.iter() {
            let stands = [Mark::Rest, Mark::Leaf, Mark::Visit].iter().any(|mark| state.is(*mark));
            prop_assert_eq!(graph.may_be_desired(id), stands && reached.contains(&id));
        }
    }

    #[test]
    fn the_way_out_is_the_next_way_if_that_ends_in_a_leaf_and_otherwise_a_shortest_one(seed: u64) {
        let any = any_graph(&mut Rng(seed));
        let graph = as_a_deletion_sees_it(&any);
        let leaf = |id: StateId| graph.get(id).is_some_and(|state| state.is(Mark::Leaf));
        let ends_by_next = |from| {
            let mut at = from;
            for _ in graph.states {
                if leaf(at) {
                    return true;
                }
                let Some(next) = graph.get(at).and_then(State::next) else { return false };
                at = next;
            }
            leaf(at)
        };
        for (from, state) in graph.iter() {
            if state.is(Mark::Leaf) {
                prop_assert_eq!(any.out(from), None);
            } else if ends_by_next(from) {
                prop_assert_eq!(any.out(from), state.next());
            } else {
                let all = ways(&graph, from, &leaf, &may_be_led_through);
                let measure = |way: &Vec<StateId>| length(&graph, way, |_| true);
                let best = all.iter().map(measure).min();
                let first = state.children.iter().find(|child| {
                    all.iter().any(|way| way[1] == **child && Some(measure(way)) == best)
                });
                prop_assert_eq!(any.out(from), first.copied());
            }
        }
    }

    #[test]
    fn the_way_out_of_a_graph_that_passes_the_rules_ends_in_a_leaf_from_every_state(seed: u64) {
        let graph = graphs::random(&mut Rng(seed));
        for (from, _) in graph.iter() {
            let way = follow(&graph, from, |at| graph.out(at));
            let last = graph.get(way[way.len() - 1]).expect("a state");
            prop_assert!(last.is(Mark::Leaf), "{way:?}");
        }
    }

    #[test]
    fn a_graph_that_passes_the_rules_has_a_home_and_a_route_or_a_reason_for_every_desired_state(seed: u64) {
        let graph = graphs::random(&mut Rng(seed));
        prop_assert!(graph.home().is_some_and(|home| graph.may_be_desired(home)));
        for (from, state) in graph.iter().filter(|(_, state)| state.is(Mark::Rest)) {
            for to in graph.desirable_states().filter(|to| *to != from) {
                let refused = state.no_routes.iter().any(|claim| claim.to == to);
                prop_assert_eq!(refused, graph.hop(from, to).is_none());
            }
        }
    }

    #[test]
    fn routes_accept_any_graph(seed: u64) {
        let rng = &mut Rng(seed);
        let graph = wild::wild(rng);
        prop_assert_eq!(Tables::of(&graph), Tables::of(&graph));
        let tables = Tables::of(&graph);
        // The routes of one graph with the states of another: wrong, but no panic.
        let other = wild::wild(rng);
        let mixed = Graph { routes: tables.routes(), ..other };
        for from in (0..10).map(StateId::at).chain([StateId::UNKNOWN]) {
            for to in (0..10).map(StateId::at).chain([StateId::UNKNOWN]) {
                let _ = mixed.hop(from, to);
            }
            let _ = (mixed.out(from), mixed.home(), mixed.may_be_desired(from));
            prop_assert_eq!(graph.hop(from, from), None);
        }
        let _ = check(&mixed);
    }
}

/// Returns the states of the way, by name.
fn route(graph: &Graph<'_>, from: &str, to: &str) -> String {
    let id = |name| graph.named(name).expect("a state");
    let way = follow(graph, id(from), |at| graph.hop(at, id(to)));
    let names: Vec<&str> = way.iter().map(|at| graph.name_of(*at)).collect();
    names.join(" ")
}

#[test]
fn the_routes_of_the_database() {
    let graph = database();
    for (from, to, way) in [
        ("Start", "Servicing", "Start Running Servicing"),
        ("Running", "End", "Running Stopping End"),
        ("Failed", "Running", "Failed Running"),
        ("Failed", "End", "Failed Stopping End"),
        ("Servicing", "End", "Servicing End"),
        ("Stopping", "Running", "Stopping"),
        ("Running", "Failed", "Running"),
    ] {
        assert_eq!(route(&graph, from, to), way);
    }
    assert_eq!(graph.home(), graph.named("Running"));
}

#[test]
fn a_passing_state_is_left_by_next_if_the_ways_are_equally_long() {
    let graph = graph(&[
        "entry Fork >Left >Right",
        "Left >Up",
        "Right >Up",
        "rest Up >End",
        "leaf End",
    ]);
    assert_eq!(route(&graph, "Fork", "Up"), "Fork Right Up");
}

#[test]
fn a_resting_state_is_left_by_the_first_declared_edge_if_the_ways_are_equally_long() {
    let graph = graph(&[
        "entry rest Fork >Left >Right",
        "Left >Up",
        "Right >Up",
        "rest Up >End",
        "leaf End",
    ]);
    assert_eq!(route(&graph, "Fork", "Up"), "Fork Left Up");
}

#[test]
fn the_way_out_by_next_leads_through_states_that_no_route_leads_through() {
    let graph = graph(&[
        "entry Start >Up",
        "rest Up >End >Hold",
        "rest hold Hold >Wipe",
        "no_transit Wipe >End",
        "leaf End",
    ]);
    let up = graph.named("Up").expect("a state");
    let way = follow(&graph, up, |at| graph.out(at));
    let names: Vec<&str> = way.iter().map(|at| graph.name_of(*at)).collect();
    assert_eq!(names, ["Up", "Hold", "Wipe", "End"]);
}

#[test]
fn an_unknown_id_has_no_route() {
    assert_eq!(database().hop(StateId::UNKNOWN, StateId(1)), None);
    assert_eq!(database().hop(StateId(1), StateId::UNKNOWN), None);
    assert_eq!(database().out(StateId::UNKNOWN), None);
}
