//! Random graphs that pass every rule.

use std::time::Duration;

use okt_core::check::check;
use okt_core::routes::{Routes, Tables};
use okt_core::{Cause, Graph, Kind, Mark, Marks, NoRoute, State, StateId, Trigger};

use crate::rng::Rng;

const NAMES: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];

/// Returns a random graph that passes the rules; it lives as long as the test.
pub(crate) fn random(rng: &mut Rng) -> Graph<'static> {
    loop {
        let states = leak(draft(rng));
        let graph = Graph {
            name: "Random",
            doc: "",
            kind: Kind::Lifecycle,
            states,
            routes: Routes::NONE,
        };
        if let Some(graph) = complete(graph) {
            return graph;
        }
    }
}

/// Adds a `no_route` for each missing route, then keeps the graph if nothing else is wrong with it.
fn complete(graph: Graph<'static>) -> Option<Graph<'static>> {
    let tables = leak_one(Tables::of(&graph));
    let routed = Graph {
        routes: tables.routes(),
        ..graph
    };
    let states: Vec<State<'static>> = routed
        .iter()
        .map(|(from, state)| {
            let missing: Vec<NoRoute<'static>> = routed
                .desirable_states()
                .filter(|to| state.is(Mark::Rest) && *to != from && routed.hop(from, *to).is_none())
                .map(|to| NoRoute {
                    to,
                    reason: "random",
                })
                .collect();
            State {
                no_routes: leak(missing),
                ..*state
            }
        })
        .collect();
    let graph = Graph {
        states: leak(states),
        ..routed
    };
    check(&graph).is_empty().then_some(graph)
}

fn draft(rng: &mut Rng) -> Vec<State<'static>> {
    let count = rng.between(2, NAMES.len());
    (0..count)
        .map(|index| {
            let marks = marks(rng, index, count);
            let leaf = marks.has(Mark::Leaf);
            let children = if leaf {
                Vec::new()
            } else {
                children(rng, index, count)
            };
            let triggers = if leaf {
                Vec::new()
            } else {
                triggers(rng, index, count, &children)
            };
            State {
                name: NAMES[index],
                variant: NAMES[index],
                doc: "",
                was: &[],
                marks,
                triggers: leak(triggers),
                children: leak(children),
                conditions: &[],
                no_routes: &[],
            }
        })
        .collect()
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
        let same = |t: &Trigger| {
            t.to == to || std::mem::discriminant(&t.cause) == std::mem::discriminant(&cause)
        };
        if to.index() != index && !children.contains(&to) && !triggers.iter().any(same) {
            triggers.push(Trigger { to, cause });
        }
    }
    triggers
}

fn leak<T>(items: Vec<T>) -> &'static [T] {
    Box::leak(items.into_boxed_slice())
}

fn leak_one<T>(item: T) -> &'static T {
    Box::leak(Box::new(item))
}
