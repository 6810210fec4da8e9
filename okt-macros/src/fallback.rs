//! A wrong graph made harmless: what is generated from it brings no error beside its own.
//!
//! The enum is used by handlers, bounds and dispatchers all over a program; when its graph is wrong,
//! each of them should still compile, so that the author reads about the graph and nothing else.

use std::collections::BTreeSet;

use okt_core::{Mark, StateId};

use crate::attr::Target;
use crate::model::{Model, Node};

/// The model of a graph that has mistakes, with more than was declared.
///
/// Every state has a method, which need not be implemented, and may answer `Stay`, `Next` and `Wait`;
/// the graph constant is empty (the model says so by [`Model::is_wrong`]).
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

/// Takes the method from each state whose method is another's; one that is not idle has the first claim.
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

/// A misspelt target is rightly spelled in the handler, or the other way round; whatever it says is taken.
fn lead_everywhere(node: &mut Node, states: usize) {
    let spot = node.spot;
    let all = (0..states).map(|index| Target {
        ident: None,
        spot,
        to: StateId::at(index),
    });
    node.attributes.children.extend(all);
}
