//! The rules about the ways of a graph: every state is reachable, every desired state has a route, every deletion ends.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::search::{cycles, knots, obstacle, way, way_through_anything};
use super::{EXCLUDE, Faults, Place, Rule, SHOWN, is_dead_end};
use crate::graph::{Graph, Kind, Mark, State, StateId};
use crate::routes::{Paths, desirable, edges_of_deletion, net, on_delete, reached, ways_out};

impl Faults<'_, '_> {
    /// OKT004.
    pub(super) fn all_reachable(&mut self) {
        let Some(entry) = self.graph.entry() else {
            return;
        };
        let marked = self.graph.iter().filter(|(_, state)| state.is(Mark::Entry));
        // A second entry is a mistake of its own.
        let entries: Vec<StateId> = marked.map(|(id, _)| id).collect();
        let reached = reached(self.graph, &entries, |_, state| state.targets().collect());
        for (id, _) in self.graph.iter() {
            if !reached[id.index()] {
                self.report(
                    Rule::Unreachable,
                    Place::State(id),
                    format!(
                        "{} cannot be reached from the entry {}",
                        self.spell(id),
                        self.spell(entry)
                    ),
                    format!(
                        "write `#[child({0})]` or `#[trigger({0})]` above a state that leads to it, or remove the state",
                        self.variant(id)
                    ),
                );
            }
        }
    }

    /// OKT009: an object would never come to rest there.
    pub(super) fn no_livelock(&mut self) {
        let edges = net(self.graph, |_, state| {
            if state.is_passing() {
                state.next().into_iter().collect()
            } else {
                Vec::new()
            }
        });
        for cycle in cycles(&edges) {
            self.report(
                Rule::Livelock,
                Place::State(cycle[0]),
                format!(
                    "livelock: Next circles through passing states only, {}",
                    self.spell_way(&cycle)
                ),
                format!(
                    "write `#[rest]` above the state where objects should stay, e.g. {}, or let one of them have another last child",
                    self.spell(cycle[0])
                ),
            );
        }
    }

    /// OKT007. Dead ends have their own report, and a state that only leads to one is not a mistake of its own.
    pub(super) fn ways_out(&mut self) {
        let graph = self.graph;
        if !graph.states.iter().any(|state| state.is(Mark::Leaf)) {
            return;
        }
        let states: Vec<State<'_>> = graph.states.iter().map(dead_end_as_leaf).collect();
        let mended = Graph {
            states: &states,
            ..*graph
        };
        let out = ways_out(&mended);
        let caught = |id: StateId| {
            out[id.index()].is_none() && mended.get(id).is_some_and(|state| !state.is(Mark::Leaf))
        };
        // Only a deletion takes the trigger; without one, the work of such a state could not end.
        for (id, state) in mended.iter().filter(|(id, _)| out[id.index()].is_some()) {
            if state.is_passing() && state.children.is_empty() {
                self.report(
                    Rule::Trap,
                    Place::State(id),
                    format!(
                        "trap: {} is passing and has no child, so an object stays in it until it is deleted",
                        self.spell(id)
                    ),
                    format!("{}, or `#[rest]`", self.add_child(id, self.onward(id))),
                );
            }
        }
        for (knot, upstream) in knots(&mended, caught) {
            let cause = knot
                .iter()
                .find_map(|id| Some(Place::Cause(*id, on_delete(graph.get(*id)?)?)));
            let (message, help) = match cause {
                Some(_) => self.trap_of_a_trigger(&mended, &knot),
                None => self.trap(&mended, &knot, &upstream),
            };
            let place = cause.unwrap_or(Place::State(knot[0]));
            self.report(Rule::Trap, place, message, help);
        }
    }

    /// Returns the message about a trap out of which children may lead, but not the trigger that a deletion takes.
    fn trap_of_a_trigger(&self, graph: &Graph<'_>, knot: &[StateId]) -> (String, String) {
        let edges = net(graph, |id, state| {
            let edges = edges_of_deletion(state).into_iter();
            edges
                .filter(|to| knot.contains(&id) && knot.contains(to))
                .collect()
        });
        let cycle = cycles(&edges).into_iter().next();
        let way = cycle.map_or_else(|| self.spell(knot[0]), |cycle| self.spell_way(&cycle));
        (
            format!("trap: deletion takes `on_delete` and circles, {way}, so it would hang"),
            "remove this `on_delete`, or let it lead to a state that is nearer to a leaf".into(),
        )
    }

    /// Returns the message about one trap (the states without a way out, and those that only lead there) and the fix.
    fn trap(&self, graph: &Graph<'_>, knot: &[StateId], upstream: &[StateId]) -> (String, String) {
        let names = |ids: &[StateId]| {
            let names: Vec<String> = ids.iter().map(|id| self.spell(*id)).collect();
            names.join(", ")
        };
        let from = knot[0];
        let mut leaves = graph.iter().filter(|(_, state)| state.is(Mark::Leaf));
        let closed = leaves.find_map(|(leaf, _)| obstacle(graph, from, leaf));
        let mut message = format!(
            "trap: {} has no way out, so deletion would hang: ",
            self.spell(from)
        );
        message.push_str(&match closed {
            Some(closed) => format!(
                "every path of children to a leaf leads through {}, which {}",
                self.spell(closed),
                why_closed(graph, closed)
            ),
            None => "no path of children leads from it to a leaf".into(),
        });
        match knot.len() {
            1 => {}
            2 => message.push_str(&format!(
                "; {}, to which it leads, has none either",
                names(&knot[1..])
            )),
            _ => message.push_str(&format!(
                "; {}, to which it leads, have none either",
                names(&knot[1..])
            )),
        }
        if !upstream.is_empty() {
            let lead = if upstream.len() == 1 { "leads" } else { "lead" };
            message.push_str(&format!("; {} {lead} only there", names(upstream)));
        }
        let mut help = self.add_child(from, self.onward(from));
        // A deletion goes through it if the last children lead there.
        if let Some(closed) = closed
            && graph
                .get(from)
                .is_some_and(|state| state.children.contains(&closed))
            && graph
                .next_way(closed)
                .any(|id| graph.get(id).is_some_and(|state| state.is(Mark::Leaf)))
        {
            help = format!(
                "make {} the last child of {}, so that a deletion goes through it, or {help}",
                self.spell(closed),
                self.spell(from)
            );
        }
        (message, help)
    }

    /// Returns the advice to add a child, without changing which child is the last.
    fn add_child(&self, from: StateId, to: &str) -> String {
        let has_children = self
            .graph
            .get(from)
            .is_some_and(|state| !state.children.is_empty());
        let place = if has_children {
            ", before its last child"
        } else {
            ""
        };
        format!("add `#[child({to})]` to {}{place}", self.spell(from))
    }

    /// OKT013, the part that needs no routes.
    pub(super) fn no_routes_are_of_resting_states(&mut self) {
        for (id, state) in self.graph.iter() {
            if !state.is(Mark::Rest) && self.graph.kind == Kind::Lifecycle {
                for index in 0..state.no_routes.len() {
                    self.report(
                        Rule::FalseNoRoute,
                        Place::NoRoute(id, index),
                        format!(
                            "`#[no_route]` on {}, which is not resting: routes begin where the object comes to rest",
                            self.spell(id)
                        ),
                        "remove it",
                    );
                }
            }
        }
    }

    /// OKT012 and OKT013: every desired state has a route or a reason, and no reason is false.
    pub(super) fn routes(&mut self) {
        let states: Vec<State<'_>> = self.graph.states.iter().map(with_one_role).collect();
        let graph = &Graph {
            states: &states,
            ..*self.graph
        };
        if graph.entry().is_none() {
            return;
        }
        let desirable = desirable(graph);
        let out = ways_out(graph);
        let is_trapped = |from: StateId| out[from.index()].is_none();
        let resting: Vec<(StateId, &State<'_>)> = graph
            .iter()
            .filter(|(_, state)| state.is(Mark::Rest) && !state.is(Mark::Leaf))
            .collect();
        let paths = Paths::of(graph);
        let hops_to = |to: StateId| desirable[to.index()].then(|| paths.to(to));
        let targets: Vec<_> = graph.iter().map(|(to, _)| (to, hops_to(to))).collect();
        for (from, state) in resting {
            let mut missing: Vec<StateId> = Vec::new();
            for (to, hops) in &targets {
                let is_claimed = self.check_claims((from, state), *to, hops.as_deref());
                let has_no_route = from != *to
                    && hops
                        .as_ref()
                        .is_some_and(|hops| hops[from.index()].is_none());
                // That is OKT007: a state without a way out must not refuse its leaves.
                let is_out = is_trapped(from) && graph.states[to.index()].is(Mark::Leaf);
                if has_no_route && !is_claimed && !is_out {
                    missing.push(*to);
                }
            }
            // A claim about an unknown state may be meant for one of these.
            let mut claims = state.no_routes.iter();
            let is_doubtful = claims.any(|claim| graph.get(claim.to).is_none());
            if missing.is_empty() || is_doubtful || is_dead_end(state) {
                continue;
            }
            let (message, help) = self.unroutable(graph, from, &missing);
            self.report(Rule::NoRoute, Place::State(from), message, help);
        }
    }

    /// Reports the false claims that no route leads from one state to another; `hops` are those to a state that a spec may
    /// ask for. Returns whether there is a claim.
    fn check_claims(
        &mut self,
        (from, state): (StateId, &State<'_>),
        to: StateId,
        hops: Option<&[Option<StateId>]>,
    ) -> bool {
        let claims = state.no_routes.iter().enumerate();
        let mut places = claims
            .filter(|(_, claim)| claim.to == to)
            .map(|(index, _)| Place::NoRoute(from, index));
        let Some(first) = places.next() else {
            return false;
        };
        let name = self.spell(to);
        let lie = match hops {
            None => Some(format!(
                "no spec may ask for {name}: it is not reached along children, or neither resting, `#[visit]` nor a leaf"
            )),
            Some(_) if from == to => Some(format!("{name} needs no route to itself")),
            Some(hops) => hops[from.index()].map(|_| {
                let way = self.spell_way(&way(hops, from, to));
                format!("this `#[no_route]` is false: there is a route, {way}")
            }),
        };
        if let Some(lie) = lie {
            let help = format!("remove {name} from the `#[no_route]`");
            self.report(Rule::FalseNoRoute, first, lie, help);
        }
        for place in places {
            let message = format!("{name} is named twice");
            self.report(Rule::FalseNoRoute, place, message, "remove one");
        }
        true
    }

    /// Returns the message about the desired states without a route from a state, grouped by what closes the way, and
    /// the fix.
    fn unroutable(
        &self,
        graph: &Graph<'_>,
        from: StateId,
        missing: &[StateId],
    ) -> (String, String) {
        let mut groups: Vec<(Option<StateId>, Vec<StateId>)> = Vec::new();
        for to in missing {
            let obstacle = obstacle(graph, from, *to);
            match groups.iter_mut().find(|(known, _)| *known == obstacle) {
                Some((_, states)) => states.push(*to),
                None => groups.push((obstacle, [*to].into())),
            }
        }
        let has_args = |to: &StateId| graph.get(*to).is_some_and(|to| to.is(Mark::Args));
        let asks = if missing.iter().all(has_args) {
            "request"
        } else {
            "spec"
        };
        let mut message = format!(
            "no route from {} to {}, which a {asks} may ask for",
            self.spell(from),
            self.some(missing)
        );
        for (obstacle, states) in groups {
            let Some(obstacle) = obstacle else {
                continue;
            };
            message.push_str(&format!(
                "; the way {} leads through {}, which {}",
                self.spell_way(&way_through_anything(graph, from, states[0])),
                self.spell(obstacle),
                why_closed(graph, obstacle)
            ));
        }
        let help = format!(
            "{}, or refuse it with `#[no_route({}, reason = \"..\")]`",
            self.add_child(from, self.variant(missing[0])),
            self.list(missing)
        );
        (message, help)
    }

    /// Lists the first few states, and how many more there are.
    fn some(&self, states: &[StateId]) -> String {
        let names: Vec<String> = states
            .iter()
            .take(SHOWN)
            .map(|id| self.spell(*id))
            .collect();
        match states.len().checked_sub(SHOWN) {
            None | Some(0) => names.join(", "),
            Some(more) => format!("{} and {more} more", names.join(", ")),
        }
    }
}

/// Returns why no route may lead through a state.
fn why_closed(graph: &Graph<'_>, id: StateId) -> &'static str {
    let is = |mark| graph.get(id).is_some_and(|state| state.is(mark));
    if is(Mark::Hold) {
        "is a holding state"
    } else if is(Mark::Visit) {
        "is a visit"
    } else {
        "is marked `no_transit`"
    }
}

/// Returns the state without the marks that its other marks exclude, which OKT018 reports.
fn with_one_role<'g>(state: &State<'g>) -> State<'g> {
    let mut state = *state;
    for (one, other) in EXCLUDE {
        if state.is(one) && state.is(other) {
            state.marks = state.marks.without(one);
        }
    }
    state
}

fn dead_end_as_leaf<'g>(state: &State<'g>) -> State<'g> {
    let mut state = *state;
    if is_dead_end(&state) {
        state.marks = state.marks.with(Mark::Leaf);
    }
    state
}
