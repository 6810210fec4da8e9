//! Random graphs that need not pass the rules: any marks, any edges, unknown ids.

use std::time::Duration;

use okt_core::routes::Routes;
use okt_core::{
    Cause, Gate, GateKind, Graph, Kind, Mark, Marks, NoRoute, Parts, Passes, State, Trigger,
};

use crate::build::bare;
use crate::ids::any_id;
use crate::rng::Rng;

const NAMES: [&str; 8] = ["A", "Bb", "C_c", "A", "Stay", "no name", "Self", ""];

const MARKS: [Mark; 8] = [
    Mark::Entry,
    Mark::Rest,
    Mark::Hold,
    Mark::Idle,
    Mark::Leaf,
    Mark::Visit,
    Mark::NoTransit,
    Mark::Args,
];

/// Returns any graph, without routes; it lives as long as the test.
pub(crate) fn wild(rng: &mut Rng) -> Graph<'static> {
    let count = rng.between(0, 7);
    let states: Vec<State<'static>> = (0..count).map(|_| state(rng, count)).collect();
    let gates: Vec<Gate<'static>> = (0..rng.below(3)).map(|_| gate(rng, count)).collect();
    Graph {
        name: "Wild",
        doc: "",
        kind: if rng.one_in(4) {
            Kind::Pass
        } else {
            Kind::Lifecycle
        },
        parts: &[],
        gates: gates.leak(),
        states: states.leak(),
        routes: Routes::NONE,
    }
}

fn state(rng: &mut Rng, count: usize) -> State<'static> {
    let mut marks = Marks::default();
    for mark in MARKS {
        if rng.one_in(5) {
            marks = marks.with(mark);
        }
    }
    let name = NAMES[rng.below(NAMES.len())];
    let children: Vec<_> = (0..rng.below(4)).map(|_| any_id(rng, count)).collect();
    let triggers: Vec<_> = (0..rng.below(3)).map(|_| trigger(rng, count)).collect();
    let no_routes: Vec<_> = (0..rng.below(2)).map(|_| no_route(rng, count)).collect();
    State {
        was: if rng.one_in(4) { &NAMES[..2] } else { &[] },
        triggers: triggers.leak(),
        children: children.leak(),
        no_routes: no_routes.leak(),
        ..bare(name, marks)
    }
}

fn gate(rng: &mut Rng, count: usize) -> Gate<'static> {
    let states: Vec<_> = (0..rng.below(4)).map(|_| any_id(rng, count)).collect();
    Gate {
        name: NAMES[rng.below(NAMES.len())],
        kind: match rng.below(3) {
            0 => GateKind::Approval,
            1 => GateKind::Limit,
            _ => GateKind::Window {
                needs: Duration::from_secs(rng.next() % 60),
            },
        },
        states: states.leak(),
        passes: Passes {
            triggers: rng.one_in(2),
            deletion: rng.one_in(2),
        },
    }
}

fn no_route(rng: &mut Rng, count: usize) -> NoRoute<'static> {
    NoRoute {
        to: any_id(rng, count),
        reason: "",
    }
}

fn trigger(rng: &mut Rng, count: usize) -> Trigger {
    let cause = match rng.below(9) {
        0 => Cause::Named,
        1 => Cause::After(Duration::from_secs(rng.next() % 60)),
        2 => Cause::OnError {
            attempts: u32::try_from(rng.below(3)).expect("small"),
        },
        3 => Cause::OnDelete,
        4 => Cause::OnGiveUp,
        7 => Cause::OnAbort,
        5 => Cause::Deadline(Duration::from_secs(rng.next() % 60)),
        6 => Cause::OnChangeOf(Parts(1)),
        _ => Cause::OnChange,
    };
    Trigger {
        to: any_id(rng, count),
        cause,
    }
}
