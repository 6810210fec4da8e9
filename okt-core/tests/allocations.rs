//! `decide`, the record after it and `Graph::next` do not allocate, whether the object is settled or moves; nor does a
//! reconciliation by the machine of a settled object.

#[path = "common/build.rs"]
mod build;
#[path = "common/case.rs"]
#[expect(dead_code, reason = "one object is enough here")]
mod case;
#[path = "common/database.rs"]
mod database;
#[path = "common/graphs.rs"]
mod graphs;
#[path = "common/ids.rs"]
mod ids;
#[path = "common/moment.rs"]
mod moment;
#[path = "common/rng.rs"]
mod rng;
#[path = "common/settled.rs"]
mod settled;

use std::hint::black_box;

use allocation_counter::measure;
use okt_core::decide::{StayReason, Verdict, decide};
use okt_core::{Event, Graph};

use case::Case;
use database::database;
use moment::moment;
use rng::Rng;

/// Decides and records at a random moment of a graph; returns whether the object is settled, and whether it moves.
fn allocates_nothing(graph: &Graph<'_>, rng: &mut Rng) -> (bool, bool) {
    let (recorded, facts) = moment(rng, graph);
    let mut decision = Verdict::Stay(StayReason::Settled);
    let counted = measure(|| {
        decision = decide(black_box(graph), black_box(&recorded), black_box(&facts));
        black_box(recorded.after(graph, &facts, &decision));
    });
    assert_eq!(counted.count_total, 0, "{recorded:?} {facts:?}");
    let settled = decision == Verdict::Stay(StayReason::Settled);
    (settled, matches!(decision, Verdict::Go(_)))
}

#[test]
fn no_decision_allocates() {
    let rng = &mut Rng(1);
    let (mut settled, mut moved) = (0, 0);
    for turn in 0..50_000 {
        let graph = if turn % 2 == 0 {
            database()
        } else {
            graphs::random(rng)
        };
        let (settles, moves) = allocates_nothing(&graph, rng);
        settled += u32::from(settles);
        moved += u32::from(moves);
    }
    assert!(settled > 1_000 && moved > 1_000, "{settled} {moved}");
}

#[test]
fn the_reconciliation_of_a_settled_object_allocates_nothing() {
    let graph = database();
    let case = Case::of(&graph, "Running, desired Running 1");
    let (mut machine, object) = settled::object(case.recorded(), case::REVISION);
    let state = graph.named("Running").expect("a state");
    let counted = measure(|| {
        let requeue = settled::reconcile(&mut machine, &graph, black_box(&object), state);
        assert_eq!(requeue.wait(), Some(settled::OBSERVE_EVERY));
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn the_selection_of_the_next_state_allocates_nothing() {
    let graph = database();
    let events = [Event::Next, Event::To(okt_core::StateId(2))];
    for (from, _) in graph.iter() {
        let counted = measure(|| {
            black_box(graph.next(black_box(from), black_box(&events)));
        });
        assert_eq!(counted.count_total, 0);
    }
}

#[test]
fn allocations_are_counted_here() {
    let counted = measure(|| {
        black_box(Vec::<u8>::with_capacity(black_box(9)));
    });
    assert_eq!(counted.count_total, 1);
}
