//! What kube-state-metrics is to say of each object: its states, its conditions and its generations.
//!
//! <https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/extend/customresourcestate-metrics.md>

use serde_json::{Value, json};

use super::kind::OperatedKind;

/// Returns the configuration.
pub(crate) fn configuration(kinds: &[OperatedKind]) -> Value {
    json!({
        "kind": "CustomResourceStateMetrics",
        "spec": { "resources": kinds.iter().map(resource).collect::<Vec<_>>() },
    })
}

/// Returns the configuration in a `ConfigMap`, which kube-state-metrics mounts.
pub(crate) fn config_map(program: &str, configuration: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": format!("{program}-kube-state-metrics") },
        "data": { "config.yaml": configuration },
    })
}

fn resource(kind: &OperatedKind) -> Value {
    let gauge = |name: &str, help: &str, path: &[&str]| {
        json!({
            "name": name,
            "help": help,
            "each": { "type": "Gauge", "gauge": { "path": path } },
        })
    };
    let mut metrics = vec![
        json!({
            "name": "condition",
            "help": "Whether a condition is true; 0 if it is false or unknown.",
            "each": { "type": "Gauge", "gauge": {
                "path": ["status", "conditions"],
                "labelsFromPath": { "type": ["type"], "reason": ["reason"] },
                "valueFrom": ["status"],
            } },
        }),
        gauge(
            "generation",
            "The generation of the object.",
            &["metadata", "generation"],
        ),
        gauge(
            "observed_generation",
            "The last generation that the operator has seen.",
            &["status", "observedGeneration"],
        ),
    ];
    if let Some((_, graph)) = &kind.lifecycle {
        let states: Vec<_> = graph
            .iter()
            .map(|(state, _)| graph.name_of(state))
            .collect();
        let set = |name: &str, help: &str, path: &[&str]| {
            json!({
                "name": name,
                "help": help,
                "each": { "type": "StateSet", "stateSet": {
                    "labelName": "state",
                    "path": path,
                    "list": states,
                } },
            })
        };
        metrics.extend([
            set(
                "state",
                "The state of the object.",
                &["status", "lifecycle", "state"],
            ),
            set(
                "desired_state",
                "The state that the object is to be in.",
                &["status", "lifecycle", "desired", "state"],
            ),
            gauge(
                "state_since_seconds",
                "When the object came to its state, in seconds since 1970.",
                &["status", "lifecycle", "since"],
            ),
            gauge(
                "transitions",
                "How many transitions the object has made.",
                &["status", "lifecycle", "transition"],
            ),
        ]);
    }
    json!({
        "groupVersionKind": { "group": kind.group, "version": kind.version, "kind": kind.kind },
        "metricNamePrefix": "okt_object",
        "labelsFromPath": { "name": ["metadata", "name"], "namespace": ["metadata", "namespace"] },
        "metrics": metrics,
    })
}
