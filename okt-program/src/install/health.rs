//! The health check of a kind for Argo CD: a script in Lua that reads the conditions.

use serde_json::{Value, json};

/// The script. It returns the content of the conditions, in the words of Argo CD.
///
/// Argo CD calls it with the object as `obj`, and shows the status and the message.
/// <https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#custom-health-checks>
pub(crate) const SCRIPT: &str = include_str!("health.lua");

/// Returns the `ConfigMap` of Argo CD with the checks of these kinds (group and kind), to be applied server-side.
pub(crate) fn config_map(kinds: &[(String, String)]) -> Value {
    let data = kinds.iter().map(|(group, kind)| {
        let key = format!("resource.customizations.health.{group}_{kind}");
        (key, Value::from(SCRIPT))
    });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": "argocd",
            "labels": { "app.kubernetes.io/part-of": "argocd" },
        },
        "data": data.collect::<serde_json::Map<_, _>>(),
    })
}
