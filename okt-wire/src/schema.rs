//! The schema of a status: bounded strings, list types, and the graph as CEL rules.

use std::borrow::Cow;

use okt_core::names::STATE_LIMIT;
use okt_core::stored::StoredGraph;
use okt_core::{Graph, Lifecycle, Mark, Parts, trail};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::desired::REQUEST_LIMIT;
use crate::limits::{
    CHANGED_LIMIT, CONDITIONS_LIMIT, ENTRY_LIMIT, FAILURE_LIMIT, HISTORY_LIMIT, ID_LIMIT,
    OPENINGS_LIMIT, PROGRESS_LIMIT, REASON_LIMIT, RECORDED_LIMIT, RECORDED_RESERVE, STEPS_LIMIT,
};
use crate::status::Status;

impl<S: Lifecycle, Extra: JsonSchema, Memory: JsonSchema> JsonSchema for Status<S, Extra, Memory> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Status{}", S::GRAPH.name).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Schema::try_from(json!({
            "type": "object",
            "properties": {
                "observedGeneration": { "type": "integer", "format": "int64" },
                "lifecycle": lifecycle(S::GRAPH),
                "conditions": conditions(),
                "recordedResources": {
                    "type": "array",
                    "description": "The owned resources that no owner reference shows, and those that have finished, written by the operator: the uid of each, its path in the API, and marks.",
                    "maxItems": RECORDED_LIMIT + RECORDED_RESERVE,
                    "x-kubernetes-list-type": "set",
                    "items": { "type": "string", "maxLength": ENTRY_LIMIT },
                },
            },
            "x-kubernetes-validations": [{
                "rule": "!has(oldSelf.lifecycle) || has(self.lifecycle)",
                "message": "a recorded lifecycle cannot be removed",
                "reason": "FieldValueForbidden",
            }],
        }))
        .unwrap_or_default();
        if S::GRAPH.states.is_empty() {
            without_lifecycle(&mut schema);
        }
        remember::<Memory>(&mut schema, generator);
        let extra = generator.subschema_for::<Extra>();
        let added = extra.get("properties").and_then(Value::as_object).cloned();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (name, property) in added.unwrap_or_default() {
                // OKT's own fields win; `crd` reports the conflict.
                properties.entry(name).or_insert(property);
            }
        }
        schema
    }
}

/// Adds what handlers remember to the schema of a status, if they remember anything.
fn remember<Memory: JsonSchema>(status: &mut Schema, generator: &mut SchemaGenerator) {
    let memory = generator.subschema_for::<Memory>();
    if memory.get("type") == Some(&json!("null")) {
        return;
    }
    let Some(position) = status.pointer_mut("/properties/lifecycle/properties") else {
        return;
    };
    position["memory"] = sealed(memory.as_value());
    position["memory"]["description"] =
        json!("What the handlers of the operator remember of the object, written by the operator.");
}

/// Returns the schema of a value with its checksum.
fn sealed(value: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["value"],
        // An apply replaces it as a whole: fields that another manager claims would stay otherwise.
        "x-kubernetes-map-type": "atomic",
        "properties": { "value": value, "sum": { "type": "string", "maxLength": 64 } },
    })
}

/// Removes the position from the schema of a status.
fn without_lifecycle(status: &mut Schema) {
    status.remove("x-kubernetes-validations");
    if let Some(Value::Object(properties)) = status.get_mut("properties") {
        properties.remove("lifecycle");
    }
}

/// Returns the schema of `status.lifecycle`, with the rules of the graph.
fn lifecycle(graph: &Graph<'_>) -> Value {
    let state =
        json!({ "type": "string", "maxLength": STATE_LIMIT, "pattern": "^[A-Za-z][A-Za-z0-9_]*$" });
    let text = |limit: usize| json!({ "type": "string", "maxLength": limit });
    let count = json!({ "type": "integer", "format": "int64", "minimum": 0 });
    let generation = json!({ "type": "integer", "format": "int64" });
    let time = json!({ "type": "string", "format": "date-time" });
    let flag = json!({ "type": "boolean" });
    let object = |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let reason = json!({ "reason": text(REASON_LIMIT), "message": text(FAILURE_LIMIT) });
    let failure = object(&["reason"], reason);
    let acting = json!({ "at": time, "inState": count, "inDeadline": count });
    let desired = json!({
        // The desired state may be any word: the operator records and reports an unknown one.
        "state": text(REQUEST_LIMIT),
        "request": text(REQUEST_LIMIT),
        "transition": count,
        "reached": flag,
    });
    let visit = json!({
        "state": text(REQUEST_LIMIT),
        "request": text(REQUEST_LIMIT),
        "transition": count,
        "outcome": text(STATE_LIMIT),
    });
    let action = json!({
        "id": text(ID_LIMIT),
        "attempt": count,
        "phase": text(16),
        "generation": generation,
        "leaving": flag,
        "startedAt": time,
        "message": text(PROGRESS_LIMIT),
        "steps": sealed(&json!({
            "type": "array",
            "maxItems": STEPS_LIMIT,
            "x-kubernetes-list-type": "atomic",
            "items": object(&["name"], json!({
                "name": text(2 * STATE_LIMIT + 1),
                "result": { "x-kubernetes-preserve-unknown-fields": true },
                "attempts": count,
                "failure": failure,
            })),
        })),
        "failure": failure,
    });
    let transition = json!({
        "transition": count,
        "from": text(REQUEST_LIMIT),
        "to": state,
        "at": time,
        "cause": text(STATE_LIMIT),
        "generation": generation,
    });
    let mut lifecycle = json!({
        "type": "object",
        "description": "The position of the object in its graph, written by the operator.",
        "required": ["state", "transition", "jumps"],
        "x-kubernetes-validations": rules(&StoredGraph::of(graph)),
        "properties": {
            "state": state,
            "since": time,
            "deadlineSince": time,
            "acting": object(&["at"], acting),
            "absentSince": time,
            "transition": count,
            "jumps": count,
            "rounds": count,
            "desired": object(&["state"], desired),
            "visit": object(&["state"], visit),
            "revision": text(64),
            "changed": text(64),
            "revisionGeneration": generation,
            "referred": text(64),
            "action": object(&["id"], action),
            "failure": failure,
            "trail": text(trail::LIMIT),
            "history": {
                "type": "array",
                "maxItems": HISTORY_LIMIT,
                "x-kubernetes-list-type": "atomic",
                "items": object(&["transition", "to"], transition),
            },
            "delivered": count,
            "graph": text(80),
        },
    });
    if graph.states.iter().any(|state| state.is(Mark::Args)) {
        lifecycle["properties"]["request"] = request(&text, &count, &failure);
    }
    if !graph.gates.is_empty() {
        lifecycle["properties"]["waiting"] = waiting(&text(STATE_LIMIT), &time);
        lifecycle["properties"]["returned"] = count;
    }
    if !graph.parts.is_empty() {
        add_parts(&mut lifecycle["properties"], &text);
    }
    lifecycle
}

/// Adds what is recorded of the parts of the spec that triggers name.
fn add_parts(properties: &mut Value, text: &impl Fn(usize) -> Value) {
    properties["parts"] = json!({
        "type": "object",
        "maxProperties": Parts::LIMIT,
        "additionalProperties": text(64),
    });
    properties["history"]["items"]["properties"]["changed"] = text(CHANGED_LIMIT);
}

/// Returns the schema of a move that waits before a gate.
fn waiting(name: &Value, time: &Value) -> Value {
    let openings = json!({
        "type": "array",
        "maxItems": OPENINGS_LIMIT,
        "x-kubernetes-list-type": "atomic",
        "items": time,
    });
    json!({
        "type": "object",
        "required": ["gate", "to", "cause"],
        "properties": {
            "gate": name,
            "to": name,
            "cause": name,
            "since": time,
            "openings": openings,
            "plan": { "type": "string", "maxLength": 8 },
            "group": { "type": "string", "maxLength": 253 },
        },
    })
}

/// Returns the schema of the request on record.
fn request(text: &impl Fn(usize) -> Value, count: &Value, failure: &Value) -> Value {
    let any = sealed(&json!({ "x-kubernetes-preserve-unknown-fields": true }));
    json!({
        "type": "object",
        "required": ["kind", "name", "uid", "state", "args"],
        "properties": {
            "kind": text(STATE_LIMIT),
            "name": text(REQUEST_LIMIT),
            "uid": text(64),
            "state": text(REQUEST_LIMIT),
            "transition": count,
            "args": any,
            "outcome": text(STATE_LIMIT),
            "result": any,
            "failure": failure,
        },
    })
}

/// Returns the graph as transition rules, with which the API server itself refuses a move that is not an edge.
///
/// The rules map a former name to the present one before they compare, so that a renaming is not a move.
/// The rule on the first state is separate, because with `optionalOldSelf` a `messageExpression` falls back to the text
/// of the rule.
pub fn rules(graph: &StoredGraph) -> Value {
    let (now, before) = (
        canonical(graph, "self.state"),
        canonical(graph, "oldSelf.state"),
    );
    let entries = graph.entries();
    let first: Vec<String> = entries
        .iter()
        .map(|entry| format!("{now} == '{entry}'"))
        .collect();
    let edges = edges(graph);
    let moved = format!("{now} != {before}");
    json!([
        {
            // A tool that restores a backup writes a later transition.
            "rule": format!(
                "oldSelf.hasValue() || {} || self.jumps > 0 || self.transition > 1",
                first.join(" || ")
            ),
            "optionalOldSelf": true,
            "message": format!(
                "the first state of an object is {}; another one is a jump, which `jumps` counts",
                entries.join(" or ")
            ),
            "reason": "FieldValueForbidden",
        },
        {
            // The edges appear twice, because with a CEL variable the server cannot estimate the cost of the rule.
            "rule": format!(
                "{now} == {before} || self.jumps > oldSelf.jumps || ({before} in {edges} && {now} in {edges}[{before}])"
            ),
            "messageExpression": "'the graph has no edge from ' + oldSelf.state + ' to ' + self.state + ', and `jumps` counts no jump'",
            "reason": "FieldValueForbidden",
        },
        {
            "rule": format!(
                "{moved} ? self.transition == oldSelf.transition + 1 : self.transition == oldSelf.transition{}",
                within(graph, &now)
            ),
            "message": "`transition` goes up by one with each change of state, and only then",
            "reason": "FieldValueForbidden",
        },
        {
            "rule": "self.jumps >= oldSelf.jumps",
            "message": "`jumps` never goes down",
            "reason": "FieldValueForbidden",
        },
    ])
}

/// Returns the CEL expression that maps a name, possibly a former one, to the present name.
fn canonical(graph: &StoredGraph, name: &str) -> String {
    let former: Vec<String> = graph
        .former()
        .map(|(was, is)| format!("'{was}': '{is}'"))
        .collect();
    if former.is_empty() {
        return name.to_owned();
    }
    let map = format!("{{{}}}", former.join(", "));
    format!("({name} in {map} ? {map}[{name}] : {name})")
}

/// Returns the targets of each state as a CEL map.
fn edges(graph: &StoredGraph) -> String {
    let entries: Vec<String> = graph
        .states
        .iter()
        .map(|state| {
            let names = graph.targets(state).into_iter();
            let targets: Vec<String> = names.map(|to| format!("'{to}'")).collect();
            format!("'{}': [{}]", state.name, targets.join(", "))
        })
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// Returns an additional rule for joined graphs in which the newer graph merges two states of the older one: moves of
/// the older operator between the two states count as transitions.
fn within(graph: &StoredGraph, now: &str) -> String {
    let edges = graph.edges();
    let circles: Vec<String> = edges
        .iter()
        .filter(|(state, targets)| targets.contains(*state))
        .map(|(state, _)| format!("'{state}'"))
        .collect();
    if circles.is_empty() {
        return String::new();
    }
    let circles = circles.join(", ");
    format!(
        " || (self.state != oldSelf.state && {now} in [{circles}] && self.transition == oldSelf.transition + 1)"
    )
}

/// Returns the list of conditions with the patterns of metav1.Condition, which the generated schema lacks.
pub fn conditions() -> Value {
    json!({
        "type": "array",
        "maxItems": CONDITIONS_LIMIT,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": { "type": "string", "maxLength": 32768 },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
            },
        },
    })
}
