//! The rules of a graph, stated once more: as plainly as possible, by trying every path.

use std::collections::BTreeSet;

use okt_core::check::{Place, Rule};
use okt_core::routes::Tables;
use okt_core::{Cause, Graph, Kind, Mark, State, StateId};

/// The marks that exclude each other; the second is where it is reported.
const EXCLUDE: [(Mark, Mark); 7] = [
    (Mark::Leaf, Mark::Entry),
    (Mark::Leaf, Mark::Rest),
    (Mark::Leaf, Mark::Visit),
    (Mark::Leaf, Mark::NoTransit),
    (Mark::Visit, Mark::Rest),
    (Mark::Visit, Mark::Entry),
    (Mark::NoTransit, Mark::Entry),
];

/// Returns every rule that a graph breaks, with the place.
pub(crate) fn broken(graph: &Graph<'static>) -> Vec<(Rule, Place)> {
    let mut found = Vec::new();
    marks(graph, &mut found);
    edges(graph, &mut found);
    if let Some(entry) = graph.entry() {
        for (id, _) in graph.iter() {
            let all = |id: StateId| state(graph, id).targets().collect();
            if id != entry && !reachable(entry, &all).contains(&id) {
                found.push((Rule::Unreachable, Place::State(id)));
            }
        }
    }
    match graph.kind {
        Kind::Pass => pass(graph, &mut found),
        Kind::Lifecycle => {
            livelocks(graph, &mut found);
            traps(graph, &mut found);
            routes(&with_one_role(graph), &mut found);
        }
    }
    found
}

/// Returns whether a spec may ask for a state.
pub(crate) fn may_be_desired(graph: &Graph<'_>, id: StateId) -> bool {
    let is = |mark| state(graph, id).is(mark);
    let children = |id: StateId| state(graph, id).children.to_vec();
    let reached = graph
        .entry()
        .is_some_and(|entry| entry == id || reachable(entry, &children).contains(&id));
    reached && (is(Mark::Rest) || is(Mark::Leaf) || is(Mark::Visit))
}

/// Returns the first hop of the best route: the fewest edges, then the fewest passing states that are left by another
/// child than the last, then declaration order.
pub(crate) fn hop(graph: &Graph<'_>, from: StateId, to: StateId) -> Option<StateId> {
    let rank = |way: &Vec<StateId>| {
        let deviates = way.windows(2).filter(|hop| {
            let state = state(graph, hop[0]);
            !state.is(Mark::Rest) && !state.is(Mark::Leaf) && state.children.last() != Some(&hop[1])
        });
        let positions = way.windows(2).map(|hop| {
            state(graph, hop[0])
                .children
                .iter()
                .position(|to| *to == hop[1])
        });
        (way.len(), deviates.count(), positions.collect::<Vec<_>>())
    };
    ways(graph, from, &|id| id == to)
        .into_iter()
        .min_by_key(rank)
        .map(|way| way[1])
}

/// Returns whether deletion gets from a state to a leaf: by the last children, or by a route.
pub(crate) fn has_way_out(graph: &Graph<'_>, from: StateId) -> bool {
    let is_leaf = |id: StateId| state(graph, id).is(Mark::Leaf);
    let mut at = from;
    let by_next = (0..graph.states.len()).any(|_| match state(graph, at).children.last() {
        Some(next) if !is_leaf(at) => {
            at = *next;
            is_leaf(at)
        }
        Some(_) | None => false,
    });
    !is_leaf(from) && (by_next || !ways(graph, from, &is_leaf).is_empty())
}

fn state<'g>(graph: &Graph<'g>, id: StateId) -> State<'g> {
    *graph.get(id).expect("a state")
}

/// Returns the states that one or more edges lead to.
fn reachable(from: StateId, edges: &dyn Fn(StateId) -> Vec<StateId>) -> BTreeSet<StateId> {
    let mut found = BTreeSet::new();
    let mut open = edges(from);
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(edges(id));
        }
    }
    found
}

/// Returns every path along children from a state to an end, without a circle, through states that routes lead through.
fn ways(graph: &Graph<'_>, from: StateId, ends: &dyn Fn(StateId) -> bool) -> Vec<Vec<StateId>> {
    let mut found = Vec::new();
    let mut open = vec![vec![from]];
    while let Some(way) = open.pop() {
        let at = state(graph, way[way.len() - 1]);
        let is_inner = way.len() > 1;
        let closed = [Mark::Hold, Mark::Visit, Mark::NoTransit]
            .into_iter()
            .any(|mark| at.is(mark));
        if at.is(Mark::Leaf) || (is_inner && closed) {
            continue;
        }
        for child in at.children.iter().filter(|child| !way.contains(child)) {
            let longer = [&way[..], &[*child]].concat();
            if ends(*child) {
                found.push(longer);
            } else {
                open.push(longer);
            }
        }
    }
    found
}

/// Returns the circles of some edges, each as its states: those that lead to each other.
fn circles(graph: &Graph<'_>, edges: &dyn Fn(StateId) -> Vec<StateId>) -> BTreeSet<Vec<StateId>> {
    let ids: Vec<StateId> = graph.iter().map(|(id, _)| id).collect();
    let found = ids.iter().map(|id| {
        let there = reachable(*id, edges);
        let leads_back =
            |other: &&StateId| there.contains(other) && reachable(**other, edges).contains(id);
        ids.iter().filter(leads_back).copied().collect::<Vec<_>>()
    });
    // An edge of a state to itself has a rule of its own.
    found.filter(|circle| circle.len() > 1).collect()
}

fn marks(graph: &Graph<'_>, found: &mut Vec<(Rule, Place)>) {
    let entries: Vec<StateId> = graph
        .iter()
        .filter(|(_, it)| it.is(Mark::Entry))
        .map(|(id, _)| id)
        .collect();
    if entries.is_empty() {
        found.push((Rule::OneEntry, Place::Graph));
    }
    found.extend(
        entries
            .iter()
            .skip(1)
            .map(|id| (Rule::OneEntry, Place::Mark(*id, Mark::Entry))),
    );
    if !graph.states.iter().any(|state| state.is(Mark::Leaf)) {
        found.push((Rule::NoLeaf, Place::Graph));
    }
    for (id, state) in graph.iter() {
        for (one, other) in EXCLUDE {
            if state.is(one) && state.is(other) {
                found.push((Rule::Exclude, Place::Mark(id, other)));
            }
        }
    }
}

fn edges(graph: &Graph<'_>, found: &mut Vec<(Rule, Place)>) {
    for (id, state) in graph.iter() {
        if !state.is(Mark::Leaf) && state.targets().count() == 0 {
            found.push((Rule::DeadEnd, Place::State(id)));
        }
        for (index, trigger) in state.triggers.iter().enumerate() {
            let at = Place::Trigger(id, index);
            if state.is(Mark::Leaf) {
                found.push((Rule::LeafLeads, at));
            }
            if trigger.to == id {
                found.push((Rule::SelfEdge, at));
            }
            let earlier = &state.triggers[..index];
            let is_named = |cause: Cause| cause == Cause::Named;
            let again = earlier
                .iter()
                .any(|it| it.to == trigger.to && (is_named(it.cause) || is_named(trigger.cause)));
            if again || (is_named(trigger.cause) && state.children.contains(&trigger.to)) {
                found.push((Rule::SameTarget, at));
            }
            let kind = std::mem::discriminant::<Cause>;
            if !is_named(trigger.cause)
                && earlier
                    .iter()
                    .any(|it| kind(&it.cause) == kind(&trigger.cause))
            {
                found.push((Rule::SameCause, Place::Cause(id, index)));
            }
        }
        for (index, child) in state.children.iter().enumerate() {
            let at = Place::Child(id, index);
            if state.is(Mark::Leaf) {
                found.push((Rule::LeafLeads, at));
            }
            if *child == id {
                found.push((Rule::SelfEdge, at));
            }
            if state.children[..index].contains(child) {
                found.push((Rule::SameTarget, at));
            }
        }
    }
}

fn pass(graph: &Graph<'_>, found: &mut Vec<(Rule, Place)>) {
    for (id, state) in graph.iter() {
        let foreign = [Mark::Rest, Mark::Visit, Mark::NoTransit]
            .into_iter()
            .filter(|mark| state.is(*mark));
        found.extend(foreign.map(|mark| (Rule::Pass, Place::Mark(id, mark))));
        found.extend(
            (0..state.no_routes.len()).map(|index| (Rule::Pass, Place::NoRoute(id, index))),
        );
        for (index, trigger) in state.triggers.iter().enumerate() {
            if matches!(
                trigger.cause,
                Cause::After(_) | Cause::Deadline(_) | Cause::OnChange
            ) {
                found.push((Rule::Pass, Place::Cause(id, index)));
            }
        }
    }
    let all = |id: StateId| state(graph, id).targets().collect();
    found.extend(
        circles(graph, &all)
            .iter()
            .map(|circle| (Rule::Pass, Place::State(circle[0]))),
    );
}

fn livelocks(graph: &Graph<'_>, found: &mut Vec<(Rule, Place)>) {
    let next = |id: StateId| {
        let state = state(graph, id);
        let stays = state.is(Mark::Rest) || state.is(Mark::Leaf);
        state
            .children
            .last()
            .copied()
            .filter(|_| !stays)
            .into_iter()
            .collect()
    };
    found.extend(
        circles(graph, &next)
            .iter()
            .map(|circle| (Rule::Livelock, Place::State(circle[0]))),
    );
}

/// Returns the graph with each dead end, which has a rule of its own, as a leaf.
fn without_dead_ends(graph: &Graph<'static>) -> Graph<'static> {
    let states = graph.states.iter().map(|state| {
        let mut state = *state;
        if state.targets().count() == 0 {
            state.marks = state.marks.with(Mark::Leaf);
        }
        state
    });
    Graph {
        states: states.collect::<Vec<_>>().leak(),
        ..*graph
    }
}

fn traps(graph: &Graph<'static>, found: &mut Vec<(Rule, Place)>) {
    if !graph.states.iter().any(|state| state.is(Mark::Leaf)) {
        return;
    }
    let graph = &without_dead_ends(graph);
    let caught = |id: StateId| !state(graph, id).is(Mark::Leaf) && !has_way_out(graph, id);
    let within = |id: StateId| -> Vec<StateId> {
        let children = state(graph, id).children.iter().copied();
        children
            .filter(|child| caught(id) && caught(*child))
            .collect()
    };
    let mut innermost = BTreeSet::new();
    for (id, _) in graph.iter().filter(|(id, _)| caught(*id)) {
        let mut trap = reachable(id, &within);
        let is_innermost = trap
            .iter()
            .all(|other| *other == id || reachable(*other, &within).contains(&id));
        trap.insert(id);
        if is_innermost {
            innermost.extend(trap.first().copied());
        }
    }
    found.extend(
        innermost
            .into_iter()
            .map(|id| (Rule::Trap, Place::State(id))),
    );
    // Deletion takes an `on_delete` trigger where there is one.
    let tables = Tables::of(graph);
    let routed = Graph {
        routes: tables.routes(),
        ..*graph
    };
    let on_delete = |id: StateId| {
        let triggers = state(graph, id).triggers;
        let index = triggers.iter().position(|it| it.cause == Cause::OnDelete)?;
        Some((index, triggers[index].to))
    };
    let leaves = |id: StateId| -> Vec<StateId> {
        let is_leaf = state(graph, id).is(Mark::Leaf);
        let trigger = on_delete(id).filter(|_| !is_leaf).map(|(_, to)| to);
        trigger.or(routed.out(id)).into_iter().collect()
    };
    for circle in circles(graph, &leaves) {
        // In the order of the way, from its first state.
        let mut way = vec![circle[0]];
        while way.len() < circle.len() {
            way.extend(leaves(way[way.len() - 1]));
        }
        let (id, (index, _)) = way
            .iter()
            .find_map(|id| Some((*id, on_delete(*id)?)))
            .expect("only a trigger leads back");
        found.push((Rule::Trap, Place::Cause(id, index)));
    }
}

/// Returns the graph without the marks that another mark of the state excludes, which has a rule of its own.
fn with_one_role(graph: &Graph<'static>) -> Graph<'static> {
    let states = graph.states.iter().map(|state| {
        let mut state = *state;
        for (one, other) in EXCLUDE {
            if state.is(one) && state.is(other) {
                state.marks = state.marks.without(one);
            }
        }
        state
    });
    Graph {
        states: states.collect::<Vec<_>>().leak(),
        ..*graph
    }
}

fn routes(graph: &Graph<'static>, found: &mut Vec<(Rule, Place)>) {
    for (from, origin) in graph.iter() {
        if !origin.is(Mark::Rest) {
            // Routes begin where an object rests.
            found.extend(
                (0..origin.no_routes.len())
                    .map(|index| (Rule::FalseNoRoute, Place::NoRoute(from, index))),
            );
            continue;
        }
        if graph.entry().is_none() || origin.is(Mark::Leaf) {
            continue;
        }
        let mut claimed = BTreeSet::new();
        for (index, claim) in origin.no_routes.iter().enumerate() {
            let is_true = claim.to != from
                && may_be_desired(graph, claim.to)
                && hop(graph, from, claim.to).is_none();
            if !claimed.insert(claim.to) || !is_true {
                found.push((Rule::FalseNoRoute, Place::NoRoute(from, index)));
            }
        }
        let is_missing = |to: StateId| {
            let of_the_trap = state(graph, to).is(Mark::Leaf) && !has_way_out(graph, from);
            to != from
                && may_be_desired(graph, to)
                && !claimed.contains(&to)
                && hop(graph, from, to).is_none()
                && !of_the_trap
        };
        if origin.targets().count() > 0 && graph.iter().any(|(to, _)| is_missing(to)) {
            found.push((Rule::NoRoute, Place::State(from)));
        }
    }
}
