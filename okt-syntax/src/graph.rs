//! Converts the model into a graph of `okt_core`, for the checks and the routes.

use okt_core::routes::Routes;
use okt_core::{Cause, Declared, Gate, Graph, Marks, NoRoute, Parts, State, StateId, Trigger};

use crate::attr;
use crate::model::{Model, Node};

/// Calls a function with the model as a graph without routes.
///
/// Every edge keeps its position, so that a place in the graph is a place in the declaration.
pub(crate) fn with_graph<T>(model: &Model, look: impl FnOnce(&Graph<'_>) -> T) -> T {
    let variants: Vec<String> = model.nodes.iter().map(Node::variant).collect();
    let parts: Vec<&str> = model.parts().map(|part| part.name.as_str()).collect();
    let lists = model.nodes.iter().map(|node| Lists::of(node, &parts));
    let lists: Vec<Lists<'_>> = lists.collect();
    let states: Vec<State<'_>> = model
        .nodes
        .iter()
        .zip(&variants)
        .zip(&lists)
        .map(|((node, variant), lists)| State {
            name: &node.name,
            variant,
            doc: &node.attributes.doc,
            was: &lists.was,
            marks: marks(node),
            triggers: &lists.triggers,
            children: &lists.children,
            conditions: &lists.conditions,
            no_routes: &lists.no_routes,
        })
        .collect();
    let gate_names: Vec<String> = model.gates.iter().map(attr::Gate::wire_name).collect();
    let guarded = model.gates.iter();
    let guarded: Vec<Vec<StateId>> = guarded
        .map(|gate| gate.states.iter().map(|state| state.to).collect())
        .collect();
    let gates = model.gates.iter().zip(&gate_names).zip(&guarded);
    let gates: Vec<Gate<'_>> = gates
        .map(|((gate, name), states)| Gate {
            name,
            kind: gate.kind,
            states,
            passes: gate.passes,
        })
        .collect();
    look(&Graph {
        name: &model.name(),
        doc: &model.doc,
        kind: model.kind,
        parts: &parts,
        gates: &gates,
        states: &states,
        routes: Routes::NONE,
    })
}

pub(crate) fn marks(node: &Node) -> Marks {
    let marks = node.attributes.marks.iter();
    marks.fold(Marks::default(), |marks, (mark, _)| marks.with(*mark))
}

fn cause(trigger: &attr::Trigger, parts: &[&str]) -> Cause {
    if trigger.parts.is_empty() {
        return trigger.cause;
    }
    let index = |own: &attr::Part| parts.iter().position(|part| *part == own.name);
    let own = trigger.parts.iter().filter_map(index);
    Cause::OnChangeOf(own.fold(Parts::NONE, Parts::with))
}

/// The lists that a [`State`] borrows.
struct Lists<'m> {
    was: Vec<&'m str>,
    triggers: Vec<Trigger>,
    children: Vec<StateId>,
    conditions: Vec<Declared<'m>>,
    no_routes: Vec<NoRoute<'m>>,
}

impl<'m> Lists<'m> {
    fn of(node: &'m Node, parts: &[&str]) -> Self {
        let attributes = &node.attributes;
        Self {
            was: attributes.was.iter().map(|was| was.name.as_str()).collect(),
            triggers: attributes
                .triggers
                .iter()
                .map(|trigger| Trigger {
                    to: trigger.target.to,
                    cause: cause(trigger, parts),
                })
                .collect(),
            children: attributes.children.iter().map(|target| target.to).collect(),
            conditions: attributes
                .conditions
                .iter()
                .map(|condition| Declared {
                    name: &condition.name,
                    status: condition.status,
                    reason: &condition.reason,
                    message: &condition.message,
                })
                .collect(),
            no_routes: attributes
                .no_routes
                .iter()
                .map(|no_route| NoRoute {
                    to: no_route.target.to,
                    reason: &no_route.reason,
                })
                .collect(),
        }
    }
}
