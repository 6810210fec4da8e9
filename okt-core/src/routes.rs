//! The routes of a graph: the next hop to every state that a spec may ask for, and the way out.

use alloc::vec;
use alloc::vec::Vec;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

use crate::graph::{Cause, Graph, Mark, State, StateId};
pub use crate::hops::{Routes, Table};

impl Graph<'_> {
    /// Returns whether a spec may ask for this state: children lead to it from the entry, and it is resting, a visit or
    /// a leaf.
    pub fn may_be_desired(&self, state: StateId) -> bool {
        self.routes.rows.get(state.index()).is_some()
    }

    /// Returns the next hop on the route from a state to a desired one.
    ///
    /// A route has children only, and the fewest edges. Among equally short routes, the one that leaves passing states
    /// by Next wins, then declaration order.
    /// No route leads through a leaf, a holding state, a visit or a state marked `no_transit`.
    /// Returns nothing if there is no route, and from a state to itself.
    // Every decision calls this; without inlining, the call would cost as much as the lookup.
    #[inline]
    pub fn hop(&self, from: StateId, to: StateId) -> Option<StateId> {
        if from == to {
            return None;
        }
        let row = self.routes.rows.get(to.index())?.index();
        let cell = row
            .checked_mul(self.states.len())?
            .checked_add(from.index())?;
        self.routes.hops.get(cell)
    }

    /// Returns the next hop of the way out, which deletion follows to a leaf.
    ///
    /// It is the Next way if that ends in a leaf, otherwise the way with the fewest edges to a leaf. From a state with a
    /// trigger `on_delete` it takes that.
    pub fn out(&self, from: StateId) -> Option<StateId> {
        self.routes.out.get(from.index())
    }

    /// Returns the desired state of a spec that sets none: the first resting state on the Next way from the entry, or
    /// else the leaf at its end.
    pub fn home(&self) -> Option<StateId> {
        Some(self.routes.home).filter(|home| self.get(*home).is_some())
    }

    /// Returns every state that a spec may ask for.
    pub fn desirable_states(&self) -> impl Iterator<Item = StateId> + '_ {
        self.iter()
            .map(|(id, _)| id)
            .filter(|id| self.may_be_desired(*id))
    }
}

/// The computed tables behind [`Routes`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables {
    rows: Vec<u8>,
    hops: Vec<u8>,
    out: Vec<u8>,
    home: StateId,
}

impl Tables {
    /// Computes every route of a graph.
    pub fn of(graph: &Graph<'_>) -> Self {
        let paths = Paths::of(graph);
        let (mut rows, mut hops) = (Vec::new(), Vec::new());
        let mut row = 0;
        for (id, desirable) in desirable(graph).into_iter().enumerate() {
            push(&mut rows, desirable.then_some(StateId(row)));
            if desirable {
                row += 1;
                for hop in paths.to(StateId::at(id)) {
                    push(&mut hops, hop);
                }
            }
        }
        let mut out = Vec::new();
        for hop in ways_out(graph) {
            push(&mut out, hop);
        }
        Self {
            rows,
            hops,
            out,
            home: home(graph).unwrap_or(StateId::UNKNOWN),
        }
    }

    /// Returns the tables in the form that a graph holds.
    pub fn routes(&self) -> Routes<'_> {
        Routes {
            rows: Table(&self.rows),
            hops: Table(&self.hops),
            out: Table(&self.out),
            home: self.home,
        }
    }
}

fn push(table: &mut Vec<u8>, id: Option<StateId>) {
    table.extend(id.unwrap_or(StateId::UNKNOWN).0.to_le_bytes());
}

fn home(graph: &Graph<'_>) -> Option<StateId> {
    let stands = |id: &StateId| graph.get(*id).is_some_and(|state| !state.is_passing());
    graph.next_way(graph.entry()?).find(stands)
}

/// Returns for each state whether a spec may ask for it, in declaration order.
pub(crate) fn desirable(graph: &Graph<'_>) -> Vec<bool> {
    let entry: Vec<StateId> = graph.entry().into_iter().collect();
    let along_children = reached(graph, &entry, |_, state| state.children.to_vec());
    graph
        .states
        .iter()
        .zip(along_children)
        .map(|(state, reached)| reached && (!state.is_passing() || state.is(Mark::Visit)))
        .collect()
}

/// Returns for each state whether it can be reached from some states along the given edges.
pub(crate) fn reached(
    graph: &Graph<'_>,
    from: &[StateId],
    edges: impl Fn(StateId, &State<'_>) -> Vec<StateId>,
) -> Vec<bool> {
    let net = net(graph, edges);
    let mut seen = vec![false; graph.states.len()];
    for entry in from {
        let mut walk = Dfs::new(&net, NodeIndex::new(entry.index()));
        while let Some(node) = walk.next(&net) {
            seen[node.index()] = true;
        }
    }
    seen
}

/// Returns the graph for petgraph, with the chosen edges; node indices are state ids.
pub(crate) fn net(
    graph: &Graph<'_>,
    edges: impl Fn(StateId, &State<'_>) -> Vec<StateId>,
) -> DiGraph<(), ()> {
    let mut net = DiGraph::with_capacity(graph.states.len(), graph.states.len());
    for _ in graph.states {
        net.add_node(());
    }
    for (from, state) in graph.iter() {
        for to in edges(from, state) {
            if graph.get(to).is_some() {
                net.add_edge(NodeIndex::new(from.index()), NodeIndex::new(to.index()), ());
            }
        }
    }
    net
}

/// Returns the hop of the way out per state: the Next way if that ends in a leaf, otherwise the fewest edges.
///
/// A trigger `on_delete` takes the place of the children of its state.
pub(crate) fn ways_out(graph: &Graph<'_>) -> Vec<Option<StateId>> {
    let nearest = Paths::of_deletion(graph).to_leaves();
    let spelled_out = next_ways_to_leaves(graph);
    graph
        .iter()
        .zip(nearest)
        .map(|((id, state), nearest)| {
            if state.is(Mark::Leaf) {
                None
            } else if spelled_out[id.index()] {
                edges_of_deletion(state).last().copied()
            } else {
                nearest
            }
        })
        .collect()
}

/// Returns the edges that a deletion can take out of a state: its trigger `on_delete`, or else its children.
pub(crate) fn edges_of_deletion(state: &State<'_>) -> Vec<StateId> {
    match on_delete(state) {
        Some(index) => [state.triggers[index].to].into(),
        None => state.children.to_vec(),
    }
}

/// Returns the trigger that a deletion takes out of a state, by its position.
pub(crate) fn on_delete(state: &State<'_>) -> Option<usize> {
    let mut triggers = state.triggers.iter();
    triggers.position(|trigger| trigger.cause == Cause::OnDelete)
}

/// Returns for each state whether its Next way ends in a leaf.
fn next_ways_to_leaves(graph: &Graph<'_>) -> Vec<bool> {
    let mut known: Vec<Option<bool>> = vec![None; graph.states.len()];
    for (start, _) in graph.iter() {
        let mut way = Vec::new();
        let mut at = Some(start);
        let ends = loop {
            let Some((id, state)) = at.and_then(|id| Some((id, graph.get(id)?))) else {
                break false;
            };
            if let Some(ends) = known[id.index()] {
                break ends;
            }
            if state.is(Mark::Leaf) {
                known[id.index()] = Some(true);
                break true;
            }
            // Only a circle returns to a state of this way.
            known[id.index()] = Some(false);
            way.push(id);
            at = edges_of_deletion(state).last().copied();
        };
        for id in way {
            known[id.index()] = Some(ends);
        }
    }
    known.into_iter().map(|ends| ends == Some(true)).collect()
}

/// The length of a way: its edges, then how often it leaves a state by another edge than Next.
type Length = (u32, u32);

/// Shortest ways along children, backwards from a target.
pub(crate) struct Paths<'a, 'g> {
    graph: &'a Graph<'g>,
    /// The edges of each state; the last is Next.
    edges: Vec<Vec<StateId>>,
    parents: Vec<Vec<usize>>,
}

impl<'a, 'g> Paths<'a, 'g> {
    pub(crate) fn of(graph: &'a Graph<'g>) -> Self {
        Self::along(graph, |state| state.children.to_vec())
    }

    /// Ways along the edges that a deletion takes.
    pub(crate) fn of_deletion(graph: &'a Graph<'g>) -> Self {
        Self::along(graph, edges_of_deletion)
    }

    fn along(graph: &'a Graph<'g>, edges: impl Fn(&State<'g>) -> Vec<StateId>) -> Self {
        let edges: Vec<Vec<StateId>> = graph.states.iter().map(edges).collect();
        let mut parents = vec![Vec::new(); graph.states.len()];
        for (from, edges) in edges.iter().enumerate() {
            for to in edges {
                if let Some(parents) = parents.get_mut(to.index()) {
                    parents.push(from);
                }
            }
        }
        Self {
            graph,
            edges,
            parents,
        }
    }

    /// Returns the hop towards one state, per state.
    pub(crate) fn to(&self, target: StateId) -> Vec<Option<StateId>> {
        self.towards(&[target], State::is_transit, State::is_passing)
    }

    /// Like `to`, but through any state except a leaf: the routes that would exist without `no_transit`, visits and
    /// holds.
    pub(crate) fn to_through_anything(&self, target: StateId) -> Vec<Option<StateId>> {
        self.towards(&[target], |state| !state.is(Mark::Leaf), State::is_passing)
    }

    /// Returns the hop towards the nearest leaf, per state; among equals, Next wins.
    fn to_leaves(&self) -> Vec<Option<StateId>> {
        let leaves: Vec<StateId> = self
            .graph
            .iter()
            .filter(|(_, state)| state.is(Mark::Leaf))
            .map(|(id, _)| id)
            .collect();
        self.towards(&leaves, State::is_transit, |_| true)
    }

    /// Returns the hop towards the nearest target, per state.
    ///
    /// `transit` returns whether a way may lead through a state, `by_next` whether a state is better left by Next.
    fn towards(
        &self,
        targets: &[StateId],
        transit: impl Fn(&State<'g>) -> bool,
        by_next: impl Fn(&State<'g>) -> bool,
    ) -> Vec<Option<StateId>> {
        let states = self.graph.states;
        let mut length: Vec<Option<Length>> = vec![None; states.len()];
        let mut hops = vec![None; states.len()];
        let mut ring: Vec<usize> = targets.iter().map(|id| id.index()).collect();
        for target in &ring {
            length[*target] = Some((0, 0));
        }
        // Works outwards ring by ring, so that every state of a ring has its final length before the next ring.
        for edges in 1.. {
            let mut further = Vec::new();
            for at in ring {
                if edges == 1 || transit(&states[at]) {
                    for from in &self.parents[at] {
                        let leaf = states[*from].is(Mark::Leaf);
                        if length[*from].is_none() && !leaf {
                            length[*from] = Some((edges, u32::MAX));
                            further.push(*from);
                        }
                    }
                }
            }
            if further.is_empty() {
                break;
            }
            for from in &further {
                let state = &states[*from];
                let next = self.edges[*from].last();
                for child in &self.edges[*from] {
                    let Some((left, deviations)) = length.get(child.index()).copied().flatten()
                    else {
                        continue;
                    };
                    if left + 1 != edges || (left > 0 && !transit(&states[child.index()])) {
                        continue;
                    }
                    let deviates = u32::from(by_next(state) && next != Some(child));
                    let candidate = (edges, deviations.saturating_add(deviates));
                    if length[*from].is_none_or(|best| candidate < best) {
                        length[*from] = Some(candidate);
                        hops[*from] = Some(*child);
                    }
                }
            }
            ring = further;
        }
        hops
    }
}
