//! Definitions that are not what the operator prints: older, newer, wrong.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt_runtime::{GRAPH_ANNOTATION, LifecycleObject, crd};
use serde_json::{Value, json};

/// The CRD of a kind with its schema changed.
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

/// The CRD of a kind with its graph annotation changed; none takes it away.
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

/// A definition whose graph has this many states more, of long names, each with an edge to the ten before it.
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

/// A schema whose spec takes anything, as one that was written by hand may.
pub fn any_spec(schema: &mut Value) {
    schema["properties"]["spec"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    schema["required"] = json!([]);
}

/// A schema that takes anything at all.
pub fn anything(schema: &mut Value) {
    let any = json!({ "x-kubernetes-preserve-unknown-fields": true });
    schema["properties"] = json!({ "spec": any, "status": any });
    schema["required"] = json!([]);
}
