//! Checks the rules of a graph with `okt_core`, and reports each fault at its token.

use std::collections::BTreeMap;

use okt_core::check::{self, Fault, Place, Rule};
use okt_core::{Mark, Parts, StateId};
use quote::ToTokens;

use crate::attr::Gate;
use crate::graph::with_graph;
use crate::model::{Model, Node, constant};
use crate::report::{ErrorReport, Spot};

/// Reports every rule that the model breaks.
pub(crate) fn check(report: &mut ErrorReport, model: &Model) {
    for fault in with_graph(model, check::check) {
        if is_reported_elsewhere(model, &fault) {
            continue;
        }
        report.error(fault.rule, spot(model, &fault), &fault.message, &fault.help);
    }
    constants_of_conditions_differ(report, model);
    parts_have_a_spec(report, model);
    requests_differ(report, model);
    gates_are_variants(report, model);
}

/// Returns whether rustc or a reader of the attributes already reports this mistake.
fn is_reported_elsewhere(model: &Model, fault: &Fault) -> bool {
    // The anchors make rustc report it, with its help and at the token.
    if fault.rule == Rule::UnknownTarget {
        return true;
    }
    // A cause that cannot be read may be about something else than another of its kind.
    if let (Rule::SameCause, Place::Cause(id, _)) = (fault.rule, fault.place) {
        return model.get(id).is_some_and(|node| {
            let mut triggers = node.attributes.triggers.iter();
            triggers.any(|trigger| trigger.is_doubtful)
        });
    }
    // A trigger with an unreadable cause looks like one without a cause, which cannot be distinguished from a child.
    let Place::Trigger(id, index) = fault.place else {
        return false;
    };
    model.get(id).is_some_and(|node| {
        let (earlier, rest) = node.attributes.triggers.split_at(index);
        let trigger = &rest[0];
        fault.rule == Rule::SameTarget
            && trigger.is_doubtful
            && earlier
                .iter()
                .all(|other| other.target.to != trigger.target.to)
    })
}

/// Returns the token of a fault.
fn spot(model: &Model, fault: &Fault) -> Spot {
    let node = |id: StateId| model.get(id);
    let found = match fault.place {
        Place::Graph => None,
        Place::Gate(id) => model.gates.get(id.index()).map(|gate| gate.spot),
        Place::GateState(id, index) => {
            let gate = model.gates.get(id.index());
            gate.map(|gate| gate.states[index].spot)
        }
        Place::State(id) => node(id).map(|node| node.spot),
        Place::Was(id, index) => node(id).map(|node| node.attributes.was[index].spot),
        Place::Mark(id, mark) => node(id).map(|node| mark_spot(node, mark)),
        Place::Trigger(id, index) => {
            node(id).map(|node| node.attributes.triggers[index].target.spot)
        }
        Place::Cause(id, index) => node(id).map(|node| {
            let trigger = &node.attributes.triggers[index];
            if fault.rule == Rule::Option {
                trigger.value
            } else {
                trigger.word
            }
        }),
        Place::Child(id, index) => node(id).map(|node| node.attributes.children[index].spot),
        Place::Condition(id, index) => node(id).map(|node| node.attributes.conditions[index].spot),
        Place::Reason(id, index) => {
            node(id).map(|node| node.attributes.conditions[index].reason_spot)
        }
        Place::NoRoute(id, index) => {
            node(id).map(|node| node.attributes.no_routes[index].target.spot)
        }
    };
    found.unwrap_or(model.spot)
}

fn mark_spot(node: &Node, mark: Mark) -> Spot {
    let marks = &node.attributes.marks;
    let own = marks.iter().find(|(own, _)| *own == mark);
    own.map_or(node.spot, |(_, spot)| *spot)
}

/// Reports parts of a spec if the graph names no spec, and more parts than a graph can have (OKT017).
fn parts_have_a_spec(report: &mut ErrorReport, model: &Model) {
    let triggers = model
        .nodes
        .iter()
        .flat_map(|node| &node.attributes.triggers);
    let mut with_parts = triggers.filter(|trigger| !trigger.parts.is_empty());
    let Some(first) = with_parts.next() else {
        return;
    };
    let parts: Vec<&str> = model.parts().map(|part| part.name.as_str()).collect();
    if model.spec.is_none() {
        report.error(
            Rule::Option,
            first.word,
            format!(
                "`on_change({})` names a part of the spec, and the graph does not name the spec",
                parts[0]
            ),
            "write `#[lifecycle_graph(spec(DatabaseSpec))]`, with the type of your spec",
        );
    }
    if parts.len() > Parts::LIMIT {
        report.error(
            Rule::Option,
            first.word,
            format!(
                "triggers name {} parts of the spec, and a graph can have {}",
                parts.len(),
                Parts::LIMIT
            ),
            "name a field that contains several of them, or a method that returns them together",
        );
    }
}

/// Reports arguments of the same type as those of another visit (OKT028).
fn requests_differ(report: &mut ErrorReport, model: &Model) {
    let requests: Vec<StateId> = model.requests().map(|(id, ..)| id).collect();
    for (id, node) in model.iter() {
        let spot = mark_spot(node, Mark::Args);
        if let Some(args) = &node.attributes.args
            && !requests.contains(&id)
        {
            let args = args.to_token_stream();
            report.error(
                Rule::Arguments,
                spot,
                format!("another visit takes the arguments `{args}` too: a request names its visit by their type"),
                "give each visit a type of its own",
            );
        }
    }
}

/// Reports gates that cannot be variants of one enum (OKT020).
fn gates_are_variants(report: &mut ErrorReport, model: &Model) {
    let mut known: Vec<String> = Vec::new();
    for gate in &model.gates {
        let variant = gate.variant().map(|ident| ident.to_string());
        // Another gate of the same name is reported as that.
        let is_named = |other: &&Gate| other.wire_name() == gate.wire_name();
        let is_first = model.gates.iter().filter(is_named).count() == 1;
        if variant
            .as_ref()
            .is_none_or(|variant| is_first && known.contains(variant))
        {
            report.error(
                Rule::Name,
                gate.spot,
                format!("`{}` gives no variant of its own", gate.wire_name()),
                "rename the gate",
            );
        }
        known.extend(variant);
    }
}

/// Reports condition types that differ only in case or punctuation, and so would be the same constant (OKT016).
fn constants_of_conditions_differ(report: &mut ErrorReport, model: &Model) {
    let mut types: BTreeMap<String, &str> = BTreeMap::new();
    for condition in model.conditions() {
        let Some(constant) = constant(&condition.name) else {
            continue;
        };
        let first = *types.entry(constant.to_string()).or_insert(&condition.name);
        if first != condition.name {
            report.error(
                Rule::Condition,
                condition.spot,
                format!(
                    "`{}` and `{first}` would both be the constant `{constant}`",
                    condition.name
                ),
                "use one spelling",
            );
        }
    }
}
