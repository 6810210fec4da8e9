//! The rules of gates: an object waits where its graph promises it, and nowhere else.

use alloc::format;

use super::{Faults, Place, Rule};
use crate::gate::{Gate, GateId, Gates};
use crate::graph::{Kind, Mark, State, StateId};
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

    /// OKT021 to OKT025.
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
        }
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

    /// Returns the states that a gate does not name.
    fn outside(&self, gate: &Gate<'g>) -> impl Iterator<Item = (StateId, &'g State<'g>)> + use<'g> {
        let states = gate.states;
        self.graph
            .iter()
            .filter(move |(id, _)| !states.contains(id))
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
