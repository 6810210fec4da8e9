//! What the API server drops of a stored object that the schema of a release does not have.
//!
//! It drops such fields whenever it reads or writes an object:
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning>.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// What the API server keeps of an embedded object, whatever the schema says.
const OF_AN_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns the schema of a version of a definition; null if it has none.
pub(super) fn schema_of(crd: &CustomResourceDefinition, version: &str) -> Value {
    let versions = crd.spec.versions.iter();
    let mut schemas = versions
        .filter(|it| it.name == version)
        .filter_map(|it| it.schema.as_ref()?.open_api_v3_schema.as_ref());
    let schema = schemas.next().and_then(|it| serde_json::to_value(it).ok());
    schema.unwrap_or_default()
}

/// Removes from an object what a schema does not have. Returns where that was, with what is no text: a text may be a
/// secret.
pub(super) fn prune(object: &mut Value, schema: &Value) -> Vec<String> {
    let mut dropped = Vec::new();
    for part in ["spec", "status"] {
        if let Some(value) = object.get_mut(part) {
            prune_at(value, &schema["properties"][part], part, &mut dropped);
        }
    }
    // The operator's own record is not a user's data.
    dropped.retain(|it| !it.starts_with("status.lifecycle."));
    dropped
}

fn prune_at(value: &mut Value, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
    match value {
        Value::Object(fields) => {
            let properties = &schema["properties"];
            let others = &schema["additionalProperties"];
            let is_object = schema["x-kubernetes-embedded-resource"] == true;
            fields.retain(|name, value| {
                let path = format!("{path}.{name}");
                let is_kept = match properties
                    .get(name)
                    .or(others.is_object().then_some(others))
                {
                    Some(schema) => {
                        prune_at(value, schema, &path, dropped);
                        true
                    }
                    None if is_object && OF_AN_OBJECT.contains(&name.as_str()) => true,
                    None => keeps_unknown || *others == true,
                };
                if !is_kept && !value.is_null() {
                    note(dropped, shown(&path, value));
                }
                is_kept
            });
        }
        Value::Array(items) if schema["items"].is_object() || !keeps_unknown => {
            let path = format!("{path}[]");
            for item in items {
                prune_at(item, &schema["items"], &path, dropped);
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Notes a place once: a list may have many items.
fn note(dropped: &mut Vec<String>, place: String) {
    if !dropped.contains(&place) {
        dropped.push(place);
    }
}

fn shown(path: &str, value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) => format!("{path} ({value})"),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_schema_lacks_is_dropped_at_any_depth_and_what_it_leaves_open_stays() {
        let schema = json!({ "properties": { "spec": { "properties": {
            "size": { "type": "integer" },
            "disks": { "items": { "properties": { "class": { "type": "string" } } } },
            "labels": { "additionalProperties": { "type": "string" } },
            "limits": { "additionalProperties": { "properties": { "cpu": {} } } },
            "raw": { "x-kubernetes-preserve-unknown-fields": true },
            "template": { "x-kubernetes-embedded-resource": true, "properties": { "spec": {
                "x-kubernetes-preserve-unknown-fields": true,
            } } },
        } } } });
        let kept = json!({
            "size": 3,
            "disks": [{ "class": "ssd" }],
            "labels": { "a": "b" },
            "limits": { "web": { "cpu": 1 } },
            "raw": { "anything": { "at": [{ "all": 1 }] } },
            "template": { "kind": "Pod", "metadata": { "name": "a" }, "spec": { "hostNetwork": true } },
        });
        let mut whole = kept.clone();
        whole["replicas"] = json!(5);
        whole["password"] = json!("hunter2");
        whole["nothing"] = json!(null);
        whole["disks"][0]["size"] = json!(10);
        whole["template"]["status"] = json!({ "phase": "Running" });
        whole["limits"]["web"]["memory"] = json!({ "max": 1 });
        let mut object = json!({ "metadata": { "name": "a" }, "spec": whole });
        let mut dropped = prune(&mut object, &schema);
        dropped.sort();
        let expected = [
            "spec.disks[].size (10)",
            "spec.limits.web.memory",
            "spec.password",
            "spec.replicas (5)",
            "spec.template.status",
        ];
        assert_eq!(dropped, expected);
        assert_eq!(object["spec"], kept);
        assert_eq!(prune(&mut object, &schema), [""; 0]);
    }
}
