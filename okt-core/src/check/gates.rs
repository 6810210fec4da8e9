//! The rules of gates: an object waits where its graph promises it, and nowhere else.

use alloc::format;
use alloc::vec::Vec;
use core::iter;

use super::{Faults, Place, Rule};
use crate::gate::{Gate, GateId, GateKind, Gates};
use crate::graph::{Cause, Graph, Kind, Mark, State, StateId};
use crate::names;
use crate::routes::ways_out;

impl<'g> Faults<'_, 'g> {
    /// The part of OKT019, OKT014 and OKT020 about gates.
    pub(super) fn gate_names(&mut self) {
        let gates = self.graph.gates;
        for (id, gate) in self.graph.all_gates() {
            if self.graph.kind == Kind::Pass {
                self.report(
                    Rule::Pass,
                    Place::Gate(id),
                    "a gate of a pass: nothing waits in a pass between two reconciliations",
                    "remove it; a step waits with `Wait`",
                );
            }
            if self.is_second(id, gate) {
                self.report(
                    Rule::SameName,
                    Place::Gate(id),
                    format!("a second gate `{}`", gate.name),
                    "rename one",
                );
            }
            if !names::is_state(gate.name) {
                self.report(
                    Rule::Name,
                    Place::Gate(id),
                    format!("`{}` cannot be the name of a gate", gate.name),
                    format!(
                        "use at most {} ASCII letters, digits and `_`, beginning with a letter",
                        names::STATE_LIMIT
                    ),
                );
            }
        }
        if gates.len() > Gates::LIMIT {
            self.report(
                Rule::Option,
                Place::Graph,
                format!(
                    "{} gates, and a graph has at most {}",
                    gates.len(),
                    Gates::LIMIT
                ),
                "join gates that have the same states",
            );
        }
    }

    /// OKT021 to OKT027.
    pub(super) fn gates(&mut self) {
        let out = ways_out(self.graph);
        for (id, gate) in self.graph.all_gates() {
            if self.is_second(id, gate) {
                continue;
            }
            self.gate_has_outside(id, gate);
            self.gate_is_entered_from_rest(gate);
            self.gate_lets_out(id, gate, &out);
            self.gate_lets_triggers_in(id, gate);
            self.gate_holds(id, gate);
            if gate.kind == GateKind::Limit {
                self.limit_is_alone(id, gate);
                self.limit_ends(gate);
            }
        }
        self.limits_cross();
    }

    fn is_second(&self, id: GateId, gate: &Gate<'g>) -> bool {
        let earlier = &self.graph.gates[..id.index()];
        earlier.iter().any(|it| it.name == gate.name)
    }

    /// OKT021.
    fn gate_has_outside(&mut self, id: GateId, gate: &Gate<'g>) {
        for (index, state) in gate.states.iter().enumerate() {
            let is = |mark| self.graph.get(*state).is_some_and(|it| it.is(mark));
            let (mistake, help) = if is(Mark::Entry) {
                (
                    "is where objects are created: none could wait before it",
                    "name the states behind it, and let a resting state lead there",
                )
            } else if is(Mark::Leaf) {
                (
                    "is a leaf: nothing may keep an object from its end",
                    "leave it out",
                )
            } else {
                continue;
            };
            let message = format!("{} {mistake}", self.spell(*state));
            self.report(Rule::GatedEnd, Place::GateState(id, index), message, help);
        }
    }

    /// OKT022.
    fn gate_is_entered_from_rest(&mut self, gate: &Gate<'g>) {
        for (from, state) in self.outside(gate) {
            if !state.is_passing() {
                continue;
            }
            for (place, to) in waiting_edges(from, state) {
                if gate.states.contains(&to) {
                    let message = format!(
                        "{} is passing, and an object would wait there before the {} `{}`, in the midst of its way",
                        self.spell(from),
                        gate.kind.as_str(),
                        gate.name
                    );
                    let help = format!(
                        "put {} into `states(..)` too, so that the object waits before it; or make it `#[rest]`",
                        self.spell(from)
                    );
                    self.report(Rule::GatedWay, place, message, help);
                }
            }
        }
    }

    /// OKT023.
    fn gate_lets_out(&mut self, id: GateId, gate: &Gate<'g>, out: &[Option<StateId>]) {
        let leads_in = self.outside(gate).find_map(|(from, _)| {
            let to = out.get(from.index()).copied().flatten()?;
            gate.states.contains(&to).then_some((from, to))
        });
        match (leads_in, gate.passes.deletion) {
            (Some((from, to)), false) => self.report(
                Rule::GatedDeletion,
                Place::Gate(id),
                format!(
                    "the way out of {} leads into {}, and a deletion does not wait",
                    self.spell(from),
                    self.spell(to)
                ),
                format!(
                    "lead it around the {}, or write `passes(deletion)` if that is meant",
                    gate.kind.as_str()
                ),
            ),
            (None, true) => self.report(
                Rule::GatedDeletion,
                Place::Gate(id),
                "`passes(deletion)`, but no way out leads into these states",
                "remove it",
            ),
            (Some(_), true) | (None, false) => {}
        }
    }

    /// OKT024.
    fn gate_lets_triggers_in(&mut self, id: GateId, gate: &Gate<'g>) {
        let mut leads_in = false;
        for (from, state) in self.outside(gate) {
            for (index, trigger) in state.triggers.iter().enumerate() {
                if !gate.states.contains(&trigger.to) || trigger.cause.is_change() {
                    continue;
                }
                leads_in = true;
                if !gate.passes.triggers {
                    let message = format!(
                        "a trigger leads into {}, and does not wait before the {} `{}`",
                        self.spell(trigger.to),
                        gate.kind.as_str(),
                        gate.name
                    );
                    self.report(
                        Rule::GatedTrigger,
                        Place::Trigger(from, index),
                        message,
                        "write `#[child(..)]` if it is to wait, or `passes(triggers)` on the gate if it is not",
                    );
                }
            }
        }
        if gate.passes.triggers && !leads_in {
            self.report(
                Rule::GatedTrigger,
                Place::Gate(id),
                "`passes(triggers)`, but no such trigger leads into these states",
                "remove it",
            );
        }
    }

    /// OKT025.
    fn gate_holds(&mut self, id: GateId, gate: &Gate<'g>) {
        let waits = self.outside(gate).any(|(from, state)| {
            let mut edges = waiting_edges(from, state);
            edges.any(|(_, to)| gate.states.contains(&to))
        });
        if !waits {
            let states = self.list(gate.states);
            self.report(
                Rule::IdleGate,
                Place::Gate(id),
                format!("nothing waits before `{states}`: no child and no `on_change` leads in"),
                "let a resting state lead in by `#[child(..)]` or `on_change`, or remove the gate",
            );
        }
    }

    /// The part of OKT026 about one move.
    fn limit_is_alone(&mut self, id: GateId, limit: &Gate<'g>) {
        for (index, state) in limit.states.iter().enumerate() {
            let mut earlier = self.graph.gates[..id.index()].iter();
            let is_in =
                |gate: &&Gate<'_>| gate.kind == GateKind::Limit && gate.states.contains(state);
            if let Some(other) = earlier.find(is_in) {
                let message = format!(
                    "{} is in the limit `{}` too: a move there would wait for two places, and hold one of them",
                    self.spell(*state),
                    other.name
                );
                let help = "leave it out of one of them";
                self.report(
                    Rule::CrossedLimits,
                    Place::GateState(id, index),
                    message,
                    help,
                );
            }
        }
    }

    /// The part of OKT026 about objects that hold a place and wait for another one.
    fn limits_cross(&mut self) {
        let graph = self.graph;
        let leads = |from: GateId, to: GateId| graph.limits_behind(from).any(|it| it.0 == to);
        let limits = graph.all_gates().map(|(id, _)| id);
        for id in limits.filter(|id| leads(*id, *id)) {
            let mut earlier = (0..id.0).map(GateId);
            if earlier.any(|it| leads(it, id) && leads(id, it)) {
                continue;
            }
            let behind: Vec<(GateId, GateId)> = graph.limits_behind(id).collect();
            let before = |of: GateId| behind.iter().find(|it| it.0 == of).map_or(id, |it| it.1);
            let way = iter::successors(Some(before(id)), |at| (*at != id).then(|| before(*at)));
            let mut names: Vec<&str> = iter::once(id)
                .chain(way)
                .map(|at| graph.gates[at.index()].name)
                .collect();
            names.reverse();
            let message = format!(
                "objects in these limits can wait for each other's places for ever: `{}`",
                names.join("` → `")
            );
            let help = "write one limit over all of their states";
            self.report(Rule::CrossedLimits, Place::Gate(id), message, help);
        }
    }

    /// OKT027.
    fn limit_ends(&mut self, limit: &Gate<'g>) {
        for (index, id) in limit.states.iter().enumerate() {
            if limit.states[..index].contains(id) {
                continue;
            }
            let Some(state) = self.graph.get(*id).filter(|state| state.is_passing()) else {
                continue;
            };
            let mut triggers = state.triggers.iter();
            let ends = triggers.any(|it| matches!(it.cause, Cause::After(_) | Cause::Deadline(_)));
            if !ends {
                let message = format!(
                    "an object that hangs in {} keeps its place in the limit `{}` for ever",
                    self.spell(*id),
                    limit.name
                );
                let help = format!(
                    "write `#[trigger(.., after = \"1h\")]` on {}, or a `#[deadline(..)]` over it",
                    self.spell(*id)
                );
                self.report(Rule::EndlessStay, Place::State(*id), message, help);
            }
        }
    }

    /// Returns the states that a gate does not name.
    fn outside(&self, gate: &Gate<'g>) -> impl Iterator<Item = (StateId, &'g State<'g>)> + use<'g> {
        let states = gate.states;
        self.graph
            .iter()
            .filter(move |(id, _)| !states.contains(id))
    }
}

impl<'g> Graph<'g> {
    /// Returns the limits for whose places objects in this one may wait, also by way of others; each with the one before
    /// it on a shortest way.
    fn limits_behind(&self, limit: GateId) -> impl Iterator<Item = (GateId, GateId)> + use<'g> {
        let mut found: Vec<(GateId, GateId)> = Vec::new();
        let mut at = Some(limit).filter(|id| self.gates[id.index()].kind == GateKind::Limit);
        let mut next = 0;
        while let Some(holds) = at {
            for (waits, gate) in self.all_gates() {
                let is_new = found.iter().all(|(known, _)| *known != waits);
                if is_new && gate.kind == GateKind::Limit && self.waits_inside(holds, gate) {
                    found.push((waits, holds));
                }
            }
            at = found.get(next).map(|it| it.0);
            next += 1;
        }
        found.into_iter()
    }

    /// Returns whether an object that rests in a limit may wait for a place in another one.
    fn waits_inside(&self, limit: GateId, other: &Gate<'_>) -> bool {
        let inside = self.gates[limit.index()].states;
        let resting = inside.iter().filter_map(|id| Some((*id, self.get(*id)?)));
        let mut resting =
            resting.filter(|(id, state)| state.is(Mark::Rest) && !other.states.contains(id));
        resting.any(|(id, state)| {
            let mut edges = waiting_edges(id, state);
            edges.any(|(_, to)| other.states.contains(&to) && !inside.contains(&to))
        })
    }
}

/// Returns the edges of a state before which an object waits at a gate, each with its place.
fn waiting_edges<'g>(
    from: StateId,
    state: &'g State<'g>,
) -> impl Iterator<Item = (Place, StateId)> + use<'g> {
    let triggers = state.triggers.iter().enumerate();
    let changes = triggers.filter(|(_, trigger)| trigger.cause.is_change());
    let changes = changes.map(move |(index, it)| (Place::Trigger(from, index), it.to));
    let children = state.children.iter().enumerate();
    changes.chain(children.map(move |(index, to)| (Place::Child(from, index), *to)))
}
