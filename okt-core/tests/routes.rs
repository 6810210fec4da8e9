//! Routes, beside what the model of them (`model.rs`) compares: of sound graphs, of any graph, and of the database.

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
use okt_core::{Graph, Mark, StateId};
use proptest::prelude::*;

use database::database;
use rng::Rng;

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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn a_graph_that_passes_the_rules_has_a_home_and_ways_out_that_end_in_a_leaf(seed: u64) {
        let graph = graphs::random(&mut Rng(seed));
        prop_assert!(graph.home().is_some_and(|home| graph.may_be_desired(home)));
        for (from, _) in graph.iter() {
            let way = follow(&graph, from, |at| graph.out(at));
            let last = graph.get(way[way.len() - 1]).expect("a state");
            prop_assert!(last.is(Mark::Leaf), "{way:?}");
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
        let id = |name| graph.named(name).expect("a state");
        let hops = follow(&graph, id(from), |at| graph.hop(at, id(to)));
        let names: Vec<&str> = hops.iter().map(|at| graph.name_of(*at)).collect();
        assert_eq!(names.join(" "), way);
    }
    assert_eq!(graph.home(), graph.named("Running"));
    assert_eq!(graph.hop(StateId::UNKNOWN, StateId(1)), None);
    assert_eq!(graph.hop(StateId(1), StateId::UNKNOWN), None);
    assert_eq!(graph.out(StateId::UNKNOWN), None);
}
