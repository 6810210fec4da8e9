//! CRDs that differ from the one that the operator prints: older, newer and wrong ones.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt::{GRAPH_ANNOTATION, LifecycleObject, crd};
use serde_json::{Value, json};

use crate::Database;

/// Returns the CRD of a kind with a changed schema.
pub fn with_schema<K: LifecycleObject>(
    change: impl FnOnce(&mut Value),
) -> CustomResourceDefinition {
    let mut definition = serde_json::to_value(crd::<K>().expect("a CRD")).expect("JSON");
    let schema = definition
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
        .expect("a schema");
    change(schema);
    serde_json::from_value(definition).expect("a CRD")
}

/// Returns the CRD of a kind with a changed graph annotation; `None` removes it.
pub fn with_graph<K: LifecycleObject>(
    change: impl FnOnce(Value) -> Option<Value>,
) -> CustomResourceDefinition {
    let mut definition = crd::<K>().expect("a CRD");
    let annotations = definition.metadata.annotations.get_or_insert_default();
    let graph = annotations.remove(GRAPH_ANNOTATION).expect("a graph");
    if let Some(graph) = change(serde_json::from_str(&graph).expect("JSON")) {
        annotations.insert(GRAPH_ANNOTATION.to_owned(), graph.to_string());
    }
    definition
}

/// Returns a CRD whose graph has this number of additional states with long names, each with an edge to the ten before
/// it.
pub fn crowded<K: LifecycleObject>(states: usize) -> CustomResourceDefinition {
    with_graph::<K>(|mut graph| {
        let name = |number: usize| format!("S{number:0>62}");
        let more = (0..states).map(|number| {
            let children: Vec<_> = (number.saturating_sub(10)..number).map(name).collect();
            json!({ "name": name(number), "children": children })
        });
        graph["states"].as_array_mut().expect("states").extend(more);
        Some(graph)
    })
}

/// Makes the spec accept anything, like a schema that was written by hand.
pub fn any_spec(schema: &mut Value) {
    schema["properties"]["spec"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    schema["required"] = json!([]);
}

/// Makes a schema accept anything.
pub fn anything(schema: &mut Value) {
    let any = json!({ "x-kubernetes-preserve-unknown-fields": true });
    schema["properties"] = json!({ "spec": any, "status": any });
    schema["required"] = json!([]);
}

/// Returns the CRD of databases, whose rules lack the edge from `Start` to `Running`, although its graph has it.
pub fn without_an_edge() -> CustomResourceDefinition {
    let whole = json!(crd::<Database>().expect("a CRD")).to_string();
    let edited = whole.replace("'Start': ['Failed', 'Running']", "'Start': ['Failed']");
    assert_ne!(edited, whole);
    serde_json::from_str(&edited).expect("a CRD")
}
