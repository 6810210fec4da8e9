//! The cost of a decision, compared with a `match` written by hand for the same graph.

#[path = "../../tests/common/build.rs"]
mod build;
mod by_hand;
#[path = "../../tests/common/case.rs"]
mod case;
#[path = "../../tests/common/settled.rs"]
mod settled;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use okt_core::Event::{Next, To};
use okt_core::decide::decide;
use okt_core::{Event, Graph, Recorded, StateId};

use case::Case;

fn five_states() -> Graph<'static> {
    build::graph(&[
        "entry Start >Running",
        "rest Running >Servicing >Stopping",
        "visit Servicing >Running >End",
        "Stopping >End",
        "leaf idle End",
    ])
}

/// Checks that both decide the same, or the comparison would not be fair.
fn compared(case: &Case) -> Recorded {
    let recorded = case.recorded();
    assert_eq!(by_hand::decide(&recorded, &case.facts), case.decide());
    recorded
}

/// Checks cases that are not timed, but that both must decide the same.
fn by_hand_decides_the_same(graph: &Graph<'static>) {
    for words in [
        "nothing",
        "Start, says Next",
        "Running, visit Servicing 1",
        "Running, says Stay",
        "Running, deleting",
        "Servicing, names End",
        "Stopping, says Next, deleting",
        "End, desired End 1",
    ] {
        compared(&Case::of(graph, words));
    }
    let mut arrived = Case::of(graph, "Running");
    let after = Case::of(graph, "Start, says Next").after();
    arrived.record = after.at().copied();
    compared(&arrived);
}

fn decisions(c: &mut Criterion) {
    let graph = five_states();
    by_hand_decides_the_same(&graph);
    let running = "Running, desired Running 1, seen Running";
    for (name, words) in [
        ("settled", running.to_owned()),
        (
            "moving to the desired state",
            format!("{running}, newly desired End"),
        ),
        (
            "moving to a visit",
            format!("{running}, new visit Servicing"),
        ),
        ("moving by Next", "Servicing, says Next".to_owned()),
    ] {
        let case = Case::of(&graph, &words);
        let (recorded, facts) = (compared(&case), case.facts);
        let mut group = c.benchmark_group(name);
        group.bench_function("decide", |b| {
            b.iter(|| decide(black_box(&graph), black_box(&recorded), black_box(&facts)));
        });
        group.bench_function("by hand", |b| {
            b.iter(|| by_hand::decide(black_box(&recorded), black_box(&facts)));
        });
        group.bench_function("Recorded::after", |b| {
            let decision = case.decide();
            b.iter(|| {
                black_box(&recorded).after(
                    black_box(&graph),
                    black_box(&facts),
                    black_box(&decision),
                )
            });
        });
    }
}

/// All that the machine of a settled object decides in one reconciliation: to observe, to render, to rest.
fn reconciliation(c: &mut Criterion) {
    let graph = five_states();
    let case = Case::of(&graph, "Running, desired Running 1");
    let (mut machine, object) = settled::object(case.recorded(), case::REVISION);
    let state = graph.named("Running").expect("a state");
    c.bench_function("Machine, a settled object", |b| {
        b.iter(|| settled::reconcile(&mut machine, black_box(&graph), black_box(&object), state));
    });
}

fn runs(c: &mut Criterion) {
    let graph = five_states();
    let events: [Event; 2] = [Next, To(StateId(0))];
    for (id, _) in graph.iter() {
        assert_eq!(by_hand::next(id, &events), graph.next(id, &events));
    }
    let mut group = c.benchmark_group("next");
    group.bench_function("Graph::next", |b| {
        b.iter(|| black_box(&graph).next(black_box(StateId(1)), black_box(&events)));
    });
    group.bench_function("by hand", |b| {
        b.iter(|| by_hand::next(black_box(StateId(1)), black_box(&events)));
    });
}

criterion_group!(benches, decisions, reconciliation, runs);
criterion_main!(benches);
