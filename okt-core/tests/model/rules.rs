//! The rules of a graph, stated once more: as plainly as possible, by trying every path.

use std::collections::BTreeSet;

use okt_core::check::{Place, Rule};
use okt_core::{Cause, Gate, GateId, GateKind, Graph, Kind, Mark, State, StateId, Trigger};

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
    arguments(graph, &mut found);
    if graph.kind == Kind::Pass {
        found.extend(
            graph
                .all_gates()
                .map(|(id, _)| (Rule::Pass, Place::Gate(id))),
        );
    }
    let entries: Vec<StateId> = all_with(graph, Mark::Entry);
    for (id, _) in graph.iter().filter(|_| !entries.is_empty()) {
        let all = |id: StateId| state(graph, id).targets().collect();
        let leads = |entry: &StateId| *entry == id || reachable(*entry, &all).contains(&id);
        if !entries.iter().any(leads) {
            found.push((Rule::Unreachable, Place::State(id)));
        }
    }
    match graph.kind {
        Kind::Pass => pass(graph, &mut found),
        Kind::Lifecycle => {
            livelocks(graph, &mut found);
            traps(graph, &mut found);
            routes(&with_one_role(graph), &mut found);
            gates(graph, &mut found);
        }
    }
    found
}

/// An object waits before a gate on each child edge, and on each trigger by a change, that leads in from outside.
fn gates(graph: &Graph<'static>, found: &mut Vec<(Rule, Place)>) {
    for (id, gate) in graph.all_gates() {
        for (index, inside) in gate.states.iter().enumerate() {
            if state(graph, *inside).is(Mark::Entry) || state(graph, *inside).is(Mark::Leaf) {
                found.push((Rule::GatedEnd, Place::GateState(id, index)));
            }
        }
        let is_limit = |gate: &&Gate<'_>| gate.kind == GateKind::Limit;
        for (index, inside) in gate.states.iter().enumerate().filter(|_| is_limit(&gate)) {
            let mut earlier = graph.gates[..id.index()].iter().filter(is_limit);
            if earlier.any(|it| it.states.contains(inside)) {
                found.push((Rule::CrossedLimits, Place::GateState(id, index)));
            }
            let mut triggers = state(graph, *inside).triggers.iter();
            let passing =
                !state(graph, *inside).is(Mark::Rest) && !state(graph, *inside).is(Mark::Leaf);
            if passing
                && !triggers.any(|it| matches!(it.cause, Cause::After(_) | Cause::Deadline(_)))
            {
                found.push((Rule::EndlessStay, Place::State(*inside)));
            }
        }
        let (mut waits, mut forced, mut leaves) = (false, false, false);
        let outside = graph.iter().filter(|(id, _)| !gate.states.contains(id));
        for (from, outside) in outside {
            let mut waiting = Vec::new();
            for (index, trigger) in outside.triggers.iter().enumerate() {
                let place = Place::Trigger(from, index);
                let by_change = matches!(trigger.cause, Cause::OnChange | Cause::OnChangeOf(_));
                match (gate.states.contains(&trigger.to), by_change) {
                    (false, _) => {}
                    (true, true) => waiting.push(place),
                    (true, false) => {
                        forced = true;
                        if !gate.passes.triggers {
                            found.push((Rule::GatedTrigger, place));
                        }
                    }
                }
            }
            for (index, child) in outside.children.iter().enumerate() {
                if gate.states.contains(child) {
                    waiting.push(Place::Child(from, index));
                }
            }
            waits |= !waiting.is_empty();
            if !outside.is(Mark::Rest) && !outside.is(Mark::Leaf) {
                found.extend(waiting.into_iter().map(|place| (Rule::GatedWay, place)));
            }
            let leads = out(graph, from).is_some_and(|to| gate.states.contains(&to));
            leaves |= leads && !outside.is(Mark::Leaf);
        }
        let rules = [
            (leaves != gate.passes.deletion, Rule::GatedDeletion),
            (gate.passes.triggers && !forced, Rule::GatedTrigger),
            (!waits, Rule::IdleGate),
            (crosses(graph, id), Rule::CrossedLimits),
        ];
        let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
        found.extend(broken.map(|(_, rule)| (rule, Place::Gate(id))));
    }
}

/// An object has two places in limits if one move gives it both, or if it takes one while it rests with another. The first
/// limit of those that wait for each other is reported.
fn crosses(graph: &Graph<'static>, id: GateId) -> bool {
    let is_limit = |id: GateId| graph.gates[id.index()].kind == GateKind::Limit;
    let has = |id: GateId, state: &StateId| graph.gates[id.index()].states.contains(state);
    let waits_for = |holds: GateId| -> Vec<GateId> {
        let all = graph.all_gates().map(|(id, _)| id);
        let others = all.filter(|waits| is_limit(*waits) && *waits != holds);
        let waits = others.filter(|waits| {
            graph.iter().any(|(from, state)| {
                let by_change =
                    |it: &&Trigger| matches!(it.cause, Cause::OnChange | Cause::OnChangeOf(_));
                let changes = state.triggers.iter().filter(by_change).map(|it| it.to);
                let mut edges = state.children.iter().copied().chain(changes);
                let rests = state.is(Mark::Rest) && has(holds, &from) && !has(*waits, &from);
                rests && edges.any(|to| has(*waits, &to) && !has(holds, &to))
            })
        });
        waits.collect()
    };
    let leads = |from: GateId, to: GateId| {
        let mut seen = waits_for(from);
        let mut next = 0;
        while let Some(at) = seen.get(next).copied() {
            seen.extend(
                waits_for(at)
                    .into_iter()
                    .filter(|it| !seen.contains(it))
                    .collect::<Vec<_>>(),
            );
            next += 1;
        }
        seen.contains(&to)
    };
    let in_circle = |other: GateId| leads(id, other) && leads(other, id);
    is_limit(id)
        && leads(id, id)
        && !(0..id.0)
            .map(GateId)
            .any(|it| is_limit(it) && in_circle(it))
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

/// Returns the first hop of the best route, on which passing states are better left by their last child.
pub(crate) fn hop(graph: &Graph<'_>, from: StateId, to: StateId) -> Option<StateId> {
    let children = |id: StateId| state(graph, id).children.to_vec();
    let is_passing =
        |id: StateId| !state(graph, id).is(Mark::Rest) && !state(graph, id).is(Mark::Leaf);
    best_hop(graph, from, &children, &|id| id == to, &is_passing)
}

/// Returns the first hop of a deletion: by the last edges if they lead to a leaf, otherwise of the best route to one, on
/// which every state is better left by its last edge.
pub(crate) fn out(graph: &Graph<'_>, from: StateId) -> Option<StateId> {
    let is_leaf = |id: StateId| state(graph, id).is(Mark::Leaf);
    let edges = |id: StateId| {
        on_delete(graph, id).map_or(state(graph, id).children.to_vec(), |(_, to)| vec![to])
    };
    let mut at = from;
    let by_next = (0..graph.states.len()).any(|_| match edges(at).last() {
        Some(next) if !is_leaf(at) => {
            at = *next;
            is_leaf(at)
        }
        Some(_) | None => false,
    });
    if by_next {
        return edges(from).last().copied();
    }
    best_hop(graph, from, &edges, &is_leaf, &|_| true)
}

/// Returns the first hop of the best way along some edges: the fewest edges, then the fewest states that are better left by
/// their last edge and are not, then declaration order.
fn best_hop(
    graph: &Graph<'_>,
    from: StateId,
    edges: &dyn Fn(StateId) -> Vec<StateId>,
    ends: &dyn Fn(StateId) -> bool,
    by_last: &dyn Fn(StateId) -> bool,
) -> Option<StateId> {
    let rank = |way: &Vec<StateId>| {
        let hops = || way.windows(2).map(|hop| (hop[0], edges(hop[0]), hop[1]));
        let deviates = hops().filter(|(at, edges, to)| by_last(*at) && edges.last() != Some(to));
        let positions = hops().map(|(_, edges, to)| edges.iter().position(|it| *it == to));
        (way.len(), deviates.count(), positions.collect::<Vec<_>>())
    };
    let ways = ways(graph, from, edges, ends).into_iter();
    ways.min_by_key(rank).map(|way| way[1])
}

fn state<'g>(graph: &Graph<'g>, id: StateId) -> State<'g> {
    *graph.get(id).expect("a state")
}

/// Returns the trigger that a deletion takes out of a state, by its position, and its target.
fn on_delete(graph: &Graph<'_>, id: StateId) -> Option<(usize, StateId)> {
    let triggers = state(graph, id).triggers;
    let index = triggers.iter().position(|it| it.cause == Cause::OnDelete)?;
    Some((index, triggers[index].to))
}

fn all_with(graph: &Graph<'_>, mark: Mark) -> Vec<StateId> {
    let states = graph.iter().filter(|(_, state)| state.is(mark));
    states.map(|(id, _)| id).collect()
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

/// Returns every path along some edges from a state to an end, without a circle, through states that routes lead through.
fn ways(
    graph: &Graph<'_>,
    from: StateId,
    edges: &dyn Fn(StateId) -> Vec<StateId>,
    ends: &dyn Fn(StateId) -> bool,
) -> Vec<Vec<StateId>> {
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
        for to in edges(way[way.len() - 1])
            .into_iter()
            .filter(|to| !way.contains(to))
        {
            let longer = [&way[..], &[to]].concat();
            if ends(to) {
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
    let entries = all_with(graph, Mark::Entry);
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
    let ends = graph
        .iter()
        .filter(|(_, state)| !state.is(Mark::Leaf) && state.targets().count() == 0);
    let mut ends: Vec<StateId> = ends.map(|(id, _)| id).collect();
    if all_with(graph, Mark::Leaf).is_empty() {
        // The last one is probably the leaf that is missing, which has a rule of its own.
        ends.pop();
    }
    found.extend(ends.iter().map(|id| (Rule::DeadEnd, Place::State(*id))));
    for (id, state) in graph.iter() {
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
            // The random graphs have one part.
            let is_of_part = matches!(trigger.cause, Cause::OnChangeOf(_));
            let is_first = |it: &Trigger| {
                kind(&it.cause) == kind(&trigger.cause)
                    || (is_of_part && it.cause == Cause::OnChange)
            };
            if !is_named(trigger.cause) && earlier.iter().any(is_first) {
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

fn arguments(graph: &Graph<'_>, found: &mut Vec<(Rule, Place)>) {
    let served = all_with(graph, Mark::Args);
    for (id, state) in graph.iter() {
        for (index, trigger) in state.triggers.iter().enumerate() {
            if served.contains(&trigger.to) {
                found.push((Rule::Arguments, Place::Trigger(id, index)));
            }
            let is_lifecycle = graph.kind == Kind::Lifecycle;
            if is_lifecycle && trigger.cause == Cause::OnAbort && !served.contains(&id) {
                found.push((Rule::Arguments, Place::Cause(id, index)));
            }
        }
        if let Some(next) = state.children.last()
            && served.contains(next)
        {
            let last = state.children.len() - 1;
            found.push((Rule::Arguments, Place::Child(id, last)));
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
                Cause::After(_)
                    | Cause::Deadline(_)
                    | Cause::OnChange
                    | Cause::OnChangeOf(_)
                    | Cause::OnAbort
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
    let caught = |id: StateId| !state(graph, id).is(Mark::Leaf) && out(graph, id).is_none();
    let within = |id: StateId| -> Vec<StateId> {
        let children = state(graph, id).children.to_vec();
        let edges = on_delete(graph, id).map_or(children, |(_, to)| vec![to]);
        edges
            .into_iter()
            .filter(|to| caught(id) && caught(*to))
            .collect()
    };
    for (id, state) in graph.iter() {
        let is_passing = !state.is(Mark::Rest) && !state.is(Mark::Leaf);
        if is_passing && state.children.is_empty() && out(graph, id).is_some() {
            found.push((Rule::Trap, Place::State(id)));
        }
    }
    let mut innermost = BTreeSet::new();
    for (id, _) in graph.iter().filter(|(id, _)| caught(*id)) {
        let mut trap = reachable(id, &within);
        let leads_back = |other: &StateId| *other == id || reachable(*other, &within).contains(&id);
        if trap.iter().all(leads_back) {
            trap.insert(id);
            innermost.insert(trap);
        }
    }
    for trap in innermost {
        let cause = trap
            .iter()
            .find_map(|id| Some(Place::Cause(*id, on_delete(graph, *id)?.0)));
        let first = trap.first().copied().expect("a trap has a state");
        found.push((Rule::Trap, cause.unwrap_or(Place::State(first))));
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
            let of_the_trap = state(graph, to).is(Mark::Leaf) && out(graph, from).is_none();
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
