//! Random graphs that pass every rule.

use std::mem::discriminant;
use std::time::Duration;

use okt_core::check::check;
use okt_core::{Cause, Graph, Mark, Marks, NoRoute, State, StateId, Trigger};

use crate::build::{bare, with_routes};
use crate::rng::Rng;

const NAMES: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];

/// Returns a random graph that passes the rules; it lives as long as the test.
pub(crate) fn random(rng: &mut Rng) -> Graph<'static> {
    loop {
        if let Some(graph) = complete(with_routes(draft(rng))) {
            return graph;
        }
    }
}

/// Adds a `no_route` for each missing route, then keeps the graph if nothing else is wrong with it.
fn complete(routed: Graph<'static>) -> Option<Graph<'static>> {
    let states = routed.iter().map(|(from, state)| {
        let is_missing =
            |to: &StateId| state.is(Mark::Rest) && *to != from && routed.hop(from, *to).is_none();
        let reason = "random";
        let missing =
            (routed.desirable_states().filter(is_missing)).map(|to| NoRoute { to, reason });
        State {
            no_routes: missing.collect::<Vec<_>>().leak(),
            ..*state
        }
    });
    let graph = Graph {
        states: states.collect::<Vec<_>>().leak(),
        ..routed
    };
    check(&graph).is_empty().then_some(graph)
}

fn draft(rng: &mut Rng) -> Vec<State<'static>> {
    let count = rng.between(2, NAMES.len());
    let states = (0..count).map(|index| {
        let marks = marks(rng, index, count);
        let (mut children, mut triggers) = (Vec::new(), Vec::new());
        if !marks.has(Mark::Leaf) {
            children = self::children(rng, index, count);
            triggers = self::triggers(rng, index, count, &children);
        }
        State {
            triggers: triggers.leak(),
            children: children.leak(),
            ..bare(NAMES[index], marks)
        }
    });
    states.collect()
}

/// Marks the first state as entry and the last as leaf; the others are random.
fn marks(rng: &mut Rng, index: usize, count: usize) -> Marks {
    let none = Marks::default();
    let idle = |marks: Marks, rng: &mut Rng| {
        if rng.one_in(2) {
            marks.with(Mark::Idle)
        } else {
            marks
        }
    };
    if index == 0 {
        let entry = none.with(Mark::Entry);
        return if rng.one_in(8) {
            idle(entry.with(Mark::Rest), rng)
        } else {
            entry
        };
    }
    if index + 1 == count {
        return idle(none.with(Mark::Leaf), rng);
    }
    match rng.below(8) {
        0..3 => idle(none.with(Mark::Rest), rng),
        3 => idle(none.with(Mark::Rest).with(Mark::Hold), rng),
        4 => none.with(Mark::Visit),
        5 if rng.one_in(3) => idle(none.with(Mark::Leaf), rng),
        5 => none.with(Mark::NoTransit),
        _ => none,
    }
}

fn children(rng: &mut Rng, index: usize, count: usize) -> Vec<StateId> {
    let mut children = Vec::new();
    for _ in 0..rng.between(1, 4) {
        let to = rng.below(count);
        let to = StateId::at(to);
        if to.index() != index && !children.contains(&to) {
            children.push(to);
        }
    }
    children
}

fn triggers(rng: &mut Rng, index: usize, count: usize, children: &[StateId]) -> Vec<Trigger> {
    let mut triggers: Vec<Trigger> = Vec::new();
    if !rng.one_in(3) {
        return triggers;
    }
    for _ in 0..rng.between(1, 3) {
        let to = StateId::at(rng.below(count));
        let cause = match rng.below(4) {
            0 => Cause::Named,
            1 => Cause::OnError { attempts: 3 },
            2 => Cause::OnDelete,
            _ => Cause::After(Duration::from_hours(1000)),
        };
        let same = |t: &Trigger| t.to == to || discriminant(&t.cause) == discriminant(&cause);
        if to.index() != index && !children.contains(&to) && !triggers.iter().any(same) {
            triggers.push(Trigger { to, cause });
        }
    }
    triggers
}
