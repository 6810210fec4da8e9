//! Random graphs of up to eight states, from sound ones to those that break many rules.

use std::time::Duration;

use okt_core::routes::Routes;
use okt_core::{
    Cause, Gate, GateKind, Graph, Kind, Mark, Marks, NoRoute, Parts, Passes, State, StateId,
    Trigger,
};

use crate::rng::Rng;

const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// Returns a graph that lives as long as the test; every target is a state, and every name is good.
pub(crate) fn graph(rng: &mut Rng) -> Graph<'static> {
    let count = rng.between(1, 8);
    let kind = if rng.one_in(6) {
        Kind::Pass
    } else {
        Kind::Lifecycle
    };
    // Half of the graphs are nearly sound, so that one fault is not hidden among ten.
    let is_wild = rng.one_in(2);
    let states: Vec<_> = (0..count)
        .map(|index| state(rng, index, count, kind, is_wild))
        .collect();
    let gates: Vec<Gate<'static>> = if kind == Kind::Pass && !rng.one_in(8) {
        Vec::new()
    } else {
        let names = ["night", "day", "noon"];
        let names = names.into_iter().take(rng.below(4));
        names.map(|name| gate(rng, name, count)).collect()
    };
    Graph {
        name: "Random",
        doc: "",
        kind,
        parts: &[],
        gates: gates.leak(),
        states: states.leak(),
        routes: Routes::NONE,
    }
}

fn gate(rng: &mut Rng, name: &'static str, count: usize) -> Gate<'static> {
    // The ends of the graph are rarely meant.
    let first = usize::from(!rng.one_in(6));
    let last = count - usize::from(!rng.one_in(6)).min(count - 1);
    let states = (first..last).filter(|_| rng.one_in(3)).map(StateId::at);
    let states: Vec<StateId> = states.collect();
    Gate {
        name,
        kind: if rng.one_in(3) {
            GateKind::Window {
                needs: Duration::ZERO,
            }
        } else {
            GateKind::Limit
        },
        states: states.leak(),
        passes: Passes {
            triggers: rng.one_in(3),
            deletion: rng.one_in(3),
        },
    }
}

fn state(rng: &mut Rng, index: usize, count: usize, kind: Kind, is_wild: bool) -> State<'static> {
    let is_last = index + 1 == count;
    let mut marks = Marks::default();
    let mut mark = |rng: &mut Rng, mark, usual: bool, odds| {
        // Now and then the opposite of what a sound graph has.
        let is_odd = rng.one_in(if is_wild { 5 } else { 40 });
        if usual && (!is_odd || rng.one_in(3)) || !usual && is_odd && rng.one_in(odds) {
            marks = marks.with(mark);
        }
    };
    mark(rng, Mark::Entry, index == 0, 2);
    mark(rng, Mark::Leaf, is_last, 2);
    let rests = kind == Kind::Lifecycle && index > 0 && !is_last && rng.one_in(2);
    mark(rng, Mark::Rest, rests, 2);
    if marks.has(Mark::Rest) && rng.one_in(3) {
        marks = marks.with(Mark::Hold);
    }
    for other in [Mark::Visit, Mark::NoTransit] {
        if rng.one_in(if is_wild { 6 } else { 12 }) && (is_wild || kind == Kind::Lifecycle) {
            marks = marks.with(other);
        }
    }
    if marks.has(Mark::Visit) && rng.one_in(3) {
        marks = marks.with(Mark::Args);
    }
    let target = |rng: &mut Rng| StateId::at(rng.below(count));
    let (mut children, mut triggers) = (Vec::new(), Vec::new());
    if !is_last || (is_wild && rng.one_in(3)) {
        if rng.one_in(2) {
            children.extend((0..rng.below(3)).map(|_| target(rng)));
        }
        if !rng.one_in(8) && !is_last {
            children.push(StateId::at(index + 1));
        }
        triggers.extend((0..rng.below(3)).map(|_| Trigger {
            to: target(rng),
            cause: cause(rng, kind),
        }));
    }
    if !is_wild {
        // No edge leads back or twice to one state; the last child stays.
        let mut seen = vec![StateId::at(index)];
        children.reverse();
        children.retain(|to| {
            !seen.contains(to) && {
                seen.push(*to);
                true
            }
        });
        children.reverse();
        triggers.retain(|it: &Trigger| {
            !seen.contains(&it.to) && {
                seen.push(it.to);
                true
            }
        });
    }
    let claims = if rng.one_in(if is_wild { 3 } else { 6 }) {
        rng.below(3)
    } else {
        0
    };
    let no_routes: Vec<_> = (0..claims)
        .map(|_| NoRoute {
            to: target(rng),
            reason: "because",
        })
        .collect();
    State {
        name: NAMES[index],
        variant: NAMES[index],
        doc: "",
        was: &[],
        marks,
        no_routes: no_routes.leak(),
        triggers: triggers.leak(),
        children: children.leak(),
        conditions: &[],
    }
}

fn cause(rng: &mut Rng, kind: Kind) -> Cause {
    let time = Duration::from_secs(1);
    match (rng.below(8), kind) {
        (0, _) => Cause::After(time),
        (1, _) => Cause::OnError { attempts: 1 },
        (2, _) => Cause::OnDelete,
        (3, _) => Cause::OnChange,
        (4, _) => Cause::Deadline(time),
        (5, Kind::Pass) => Cause::OnGiveUp,
        (6, _) => Cause::OnChangeOf(Parts(1)),
        (7, _) if rng.one_in(4) => Cause::OnAbort,
        (5 | 7.., _) => Cause::Named,
    }
}
