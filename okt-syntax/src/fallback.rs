//! Makes a wrong graph harmless, so that its generated code causes no errors except the graph's own.
//!
//! Handlers, bounds and dispatchers all over a program use the enum. If its graph is wrong, they should still compile,
//! so that you see only the errors of the graph.

use std::collections::BTreeSet;

use okt_core::{Mark, StateId};

use crate::attr::{Attributes, EdgeTarget, Trigger};
use crate::model::{Model, Node};

/// Extends the model of a wrong graph beyond its declaration.
///
/// Every state gets a method, which need not be implemented, and may answer `Stay`, `Next` and `Wait`. The graph
/// constant is empty (because of [`Model::is_wrong`]).
pub(crate) fn mend(mut model: Model) -> Model {
    model.is_wrong = true;
    one_method_per_name(&mut model);
    let states = model.nodes.len();
    for node in &mut model.nodes {
        if node.edges().any(|target| target.to == StateId::UNKNOWN) {
            lead_everywhere(node, states);
        }
    }
    model
}

/// Removes the method of each state that shares its name with another state's; a state that is not idle keeps it first.
fn one_method_per_name(model: &mut Model) {
    let mut taken = BTreeSet::new();
    for idle in [false, true] {
        let nodes = model.nodes.iter_mut();
        for node in nodes.filter(|node| node.is(Mark::Idle) == idle) {
            let name = node.method.as_ref().map(ToString::to_string);
            if name.is_some_and(|name| !taken.insert(name)) {
                node.method = None;
            }
        }
    }
}

/// Adds every other state as a target: a target misspelled in the attribute may be correct in the handler, or the reverse.
///
/// They are children if a child is misspelled, because the answer that names a child carries the result of a visit.
fn lead_everywhere(node: &mut Node, states: usize) {
    let spot = node.spot;
    let known: Vec<StateId> = node.edges().map(|target| target.to).collect();
    let others = (0..states)
        .map(StateId::at)
        .filter(|id| !known.contains(id));
    let others = others.map(|to| EdgeTarget {
        ident: None,
        spot,
        to,
    });
    let Attributes {
        children, triggers, ..
    } = &mut node.attributes;
    if children.iter().any(|child| child.to == StateId::UNKNOWN) {
        children.extend(others);
    } else {
        triggers.extend(others.map(Trigger::named));
    }
}
