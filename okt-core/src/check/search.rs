//! Searches in a graph: traps, cycles, and obstacles on a way.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

use crate::graph::{Graph, StateId};
use crate::routes::{Paths, edges_of_deletion, net};

/// Returns the innermost traps among the caught states, each with the caught states outside that lead to it.
///
/// One missing edge catches every state that leads there; only the place of the missing edge is a mistake.
pub(super) fn knots(
    graph: &Graph<'_>,
    caught: impl Fn(StateId) -> bool,
) -> Vec<(Vec<StateId>, Vec<StateId>)> {
    let inside = net(graph, |id, state| {
        let edges = edges_of_deletion(state).into_iter();
        edges.filter(|to| caught(id) && caught(*to)).collect()
    });
    let reaches = |from: StateId, knot: &[StateId]| {
        let mut walk = Dfs::new(&inside, NodeIndex::new(from.index()));
        let mut reached = core::iter::from_fn(|| walk.next(&inside));
        reached.any(|node| knot.contains(&StateId::at(node.index())))
    };
    let mut found: Vec<(Vec<StateId>, Vec<StateId>)> = tarjan_scc(&inside)
        .into_iter()
        .map(|knot| {
            let mut knot: Vec<StateId> =
                knot.iter().map(|node| StateId::at(node.index())).collect();
            knot.sort();
            knot
        })
        .filter(|knot| {
            let leaves = |id: &StateId| {
                let mut heads = inside.neighbors(NodeIndex::new(id.index()));
                heads.any(|head| !knot.contains(&StateId::at(head.index())))
            };
            caught(knot[0]) && !knot.iter().any(leaves)
        })
        .map(|knot| {
            let ids = graph.iter().map(|(id, _)| id);
            let upstream = ids
                .filter(|id| caught(*id) && !knot.contains(id) && reaches(*id, &knot))
                .collect();
            (knot, upstream)
        })
        .collect();
    found.sort();
    found
}

/// Returns the way along the hops, both ends included.
pub(super) fn way(hops: &[Option<StateId>], from: StateId, to: StateId) -> Vec<StateId> {
    let mut way = vec![from];
    let mut at = from;
    while let Some(hop) = hops[at.index()] {
        way.push(hop);
        if hop == to {
            break;
        }
        at = hop;
    }
    way
}

/// Returns the first state of the way that no route may lead through; none if there is no way at all.
pub(super) fn obstacle(graph: &Graph<'_>, from: StateId, to: StateId) -> Option<StateId> {
    let way = way_through_anything(graph, from, to);
    let inner = way.get(1..way.len().saturating_sub(1))?;
    inner
        .iter()
        .find(|id| graph.get(**id).is_some_and(|state| !state.is_transit()))
        .copied()
}

/// Returns the shortest way, also through states that no route may lead through; only its start if there is none.
pub(super) fn way_through_anything(graph: &Graph<'_>, from: StateId, to: StateId) -> Vec<StateId> {
    way(&Paths::of(graph).to_through_anything(to), from, to)
}

/// Returns the cycles of a graph, one per knot, each from its first state back to it, in declaration order.
pub(super) fn cycles(net: &DiGraph<(), ()>) -> Vec<Vec<StateId>> {
    let mut found: Vec<Vec<StateId>> = tarjan_scc(net)
        .into_iter()
        .filter(|knot| knot.len() > 1)
        .filter_map(|knot| {
            let start = *knot.iter().min()?;
            Some(cycle(net, &knot, start))
        })
        .collect();
    found.sort();
    found
}

/// Returns a shortest cycle through `start` within its knot.
fn cycle(net: &DiGraph<(), ()>, knot: &[NodeIndex], start: NodeIndex) -> Vec<StateId> {
    let mut came_from: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::new();
    let mut ring = vec![start];
    while !ring.is_empty() {
        let mut further = Vec::new();
        for at in ring {
            // petgraph lists the newest edge first; declaration order is the other way round.
            let mut heads: Vec<NodeIndex> = net.neighbors(at).collect();
            heads.reverse();
            for head in heads {
                if head == start {
                    let mut way = vec![start, at];
                    while let Some(previous) = came_from.get(way.last().unwrap_or(&start)) {
                        way.push(*previous);
                    }
                    way.reverse();
                    return way
                        .into_iter()
                        .map(|node| StateId::at(node.index()))
                        .collect();
                }
                if knot.contains(&head) && !came_from.contains_key(&head) {
                    came_from.insert(head, at);
                    further.push(head);
                }
            }
        }
        ring = further;
    }
    vec![StateId::at(start.index())]
}
