//! The customization of a kind for Argo CD: a health check that reads the conditions, and the actions of the graph.
//!
//! Argo CD runs the scripts in Lua with the object as `obj`: the health check returns a status and a message, the
//! discovery which actions there are and which of them make no sense at present, and an action the changed object.
//! <https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#custom-health-checks>
//! <https://argo-cd.readthedocs.io/en/stable/operator-manual/resource_actions/>

use std::fmt::Write;

use okt_core::{Graph, Mark, StateId};
use okt_wire::keys::PAUSED_ANNOTATION;
use serde_json::{Map, Value, json};

use super::generated::yaml;
use super::kind::OperatedKind;

/// The health check. It returns the content of the conditions, in the words of Argo CD.
const HEALTH: &str = include_str!("argo_cd/health.lua");
/// The beginning of the other scripts.
const ACTIONS: &str = include_str!("argo_cd/actions.lua");

/// Returns the `ConfigMap` of Argo CD with the customizations of these kinds, to be applied server-side.
///
/// # Errors
/// If the actions cannot be written.
pub(crate) fn config_map(kinds: &[OperatedKind]) -> Result<Value, String> {
    let mut data = Map::new();
    for OperatedKind {
        group,
        kind,
        lifecycle,
        ..
    } in kinds
    {
        let key = |what: &str| format!("resource.customizations.{what}.{group}_{kind}");
        let actions = yaml(&actions(lifecycle.as_ref()))?;
        data.insert(key("health"), HEALTH.into());
        data.insert(key("actions"), actions.into());
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": "argocd",
            "labels": { "app.kubernetes.io/part-of": "argocd" },
        },
        "data": data,
    }))
}

/// An action on an object.
struct ArgoAction {
    name: String,
    /// The condition in Lua under which it makes no sense.
    disabled: String,
    /// What it does, in Lua.
    script: String,
}

/// Returns all actions of a kind: the discovery, and what each does.
fn actions(lifecycle: Option<&(String, &'static Graph<'static>)>) -> Value {
    let (field, graph) = match lifecycle {
        Some((field, graph)) => (field.as_str(), Some(*graph)),
        None => ("", None),
    };
    let entry = graph.and_then(|graph| Some(graph.name_of(graph.entry()?)));
    let beginning = ACTIONS.replace("ENTRY", &quoted(entry.unwrap_or_default()));
    let beginning = beginning.replace("FIELD", &quoted(field));
    let actions: Vec<_> = of_all_kinds()
        .into_iter()
        .chain(graph.into_iter().flat_map(of_graph))
        .collect();
    let mut discovery = format!(
        "{beginning}local deleting = obj.metadata.deletionTimestamp ~= nil\nlocal actions = {{}}\n"
    );
    for ArgoAction { name, disabled, .. } in &actions {
        // Writing to a text cannot fail.
        _ = writeln!(
            discovery,
            "actions[{}] = {{ disabled = {disabled} }}",
            quoted(name)
        );
    }
    discovery.push_str("return actions\n");
    let definitions = actions.iter().map(|ArgoAction { name, script, .. }| {
        json!({ "name": name, "action.lua": format!("{beginning}{script}\n") })
    });
    json!({
        "discovery.lua": discovery,
        "definitions": definitions.collect::<Vec<_>>(),
    })
}

/// Returns the actions that need no states.
fn of_all_kinds() -> [ArgoAction; 2] {
    let paused = quoted(PAUSED_ANNOTATION);
    let action = |name: &str, disabled: String, value: &str| ArgoAction {
        name: name.to_owned(),
        disabled,
        script: format!("return annotate({paused}, {value})"),
    };
    [
        action(
            "pause",
            format!("annotations[{paused}] == \"true\""),
            "\"true\"",
        ),
        action(
            "resume",
            format!("annotations[{paused}] ~= \"true\""),
            "nil",
        ),
    ]
}

/// Returns another attempt, and the ways to the states that may be asked for.
fn of_graph(graph: &'static Graph<'static>) -> Vec<ArgoAction> {
    let retry = ArgoAction {
        name: "retry".to_owned(),
        disabled: "deleting".to_owned(),
        script: "return ask(\"request\", now)".to_owned(),
    };
    let wanted = graph
        .iter()
        .filter(|(to, state)| graph.may_be_desired(*to) && !state.is(Mark::Args));
    let ways = wanted.map(|(to, state)| {
        let name = quoted(graph.name_of(to));
        let origins = set(graph, |from| graph.hop(from, to).is_some());
        if state.is(Mark::Visit) {
            return ArgoAction {
                name: format!("visit-{}", graph.name_of(to)),
                disabled: format!("deleting or not {origins}[state]"),
                script: format!("return ask(\"visit\", {{ state = {name}, request = now }})"),
            };
        }
        // A holding state, or a leaf, is left for a new request only.
        let held = set(graph, |from| {
            from != to
                && graph
                    .get(from)
                    .is_some_and(|from| from.is(Mark::Hold) || from.is(Mark::Leaf))
        });
        ArgoAction {
            name: format!("go-{}", graph.name_of(to)),
            disabled: format!(
                "deleting or not ({origins}[state] or (state == {name} and lifecycle.state ~= nil and lifecycle.state ~= {name}))"
            ),
            script: format!(
                "if {held}[state] then\n  ask(\"request\", now)\nend\nreturn ask(\"state\", {name})"
            ),
        }
    });
    std::iter::once(retry).chain(ways).collect()
}

/// Returns a set of names of states as Lua writes it.
fn set(graph: &Graph<'_>, has: impl Fn(StateId) -> bool) -> String {
    let names = graph.iter().filter(|(state, _)| has(*state));
    let names = names.map(|(state, _)| format!("[{}] = true", quoted(graph.name_of(state))));
    format!("({{ {} }})", names.collect::<Vec<_>>().join(", "))
}

/// Returns a name as Lua writes it; names of Rust and Kubernetes have no quotes.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}
