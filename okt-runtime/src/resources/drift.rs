//! Whether an object still is as it was applied: whether OKT still owns every field that it declares.
//!
//! A server takes a field away from its manager when somebody else changes it, so nothing has to be compared with
//! what the server made of a value: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>.

use serde_json::{Map, Value};

/// What a manager owns of an object, as `fieldsV1` has it; none where it owns nothing.
pub(crate) fn owned_fields<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries
        .iter()
        .find(|entry| entry["manager"] == manager)
        .map(|entry| &entry["fieldsV1"])
}

/// Whether every field of what is declared is among those that are owned.
pub(crate) fn covers(owned: &Value, declared: &Value) -> bool {
    // What says which object it is belongs to nobody.
    const IDENTITY: [&str; 2] = ["apiVersion", "kind"];
    let (Some(owned), Some(declared)) = (owned.as_object(), declared.as_object()) else {
        return false;
    };
    declared
        .iter()
        .filter(|(name, _)| !IDENTITY.contains(&name.as_str()))
        .all(|(name, value)| match name.as_str() {
            "metadata" => of_metadata(owned, value),
            _ => has_field(owned, name, value),
        })
}

fn of_metadata(owned: &Map<String, Value>, metadata: &Value) -> bool {
    let empty = Map::new();
    let owned = (owned.get("f:metadata").and_then(Value::as_object)).unwrap_or(&empty);
    let declared = metadata.as_object().into_iter().flatten();
    declared
        .filter(|(name, _)| !matches!(name.as_str(), "name" | "namespace"))
        .all(|(name, value)| has_field(owned, name, value))
}

fn has_field(owned: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let field = owned.get(&format!("f:{name}"));
    (field.and_then(Value::as_object)).is_some_and(|owned| has_value(owned, value))
}

fn has_value(owned: &Map<String, Value>, value: &Value) -> bool {
    // All of it, as one: a scalar, an atomic list or map, or something empty.
    if owned.is_empty() {
        return true;
    }
    match value {
        Value::Object(fields) => fields
            .iter()
            .all(|(name, value)| has_field(owned, name, value)),
        Value::Array(items) => items.iter().all(|item| has_item(owned, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// An item of a list is known by its value, or by some of its fields; a key that it does not say was filled in.
fn has_item(owned: &Map<String, Value>, item: &Value) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    owned.iter().any(|(key, fields)| {
        if let Some(value) = key.strip_prefix("v:").and_then(parsed) {
            return value == *item;
        }
        let Some(Value::Object(keys)) = key.strip_prefix("k:").and_then(parsed) else {
            return false;
        };
        let is_it = keys.iter().all(|(name, value)| match item.get(name) {
            Some(own) => own == value,
            // The one key that is filled in, wherever ports are listed.
            None => name != "protocol" || value == "TCP",
        });
        is_it && (fields.as_object()).is_some_and(|owned| has_value(owned, item))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "web", "labels": { "app": "web" } },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "web" } },
                "template": { "spec": { "containers": [
                    { "name": "web", "image": "web:1", "args": ["a"], "ports": [{ "containerPort": 80 }] },
                ] } },
            },
        })
    }

    fn owned() -> Value {
        json!({
            "f:metadata": { "f:labels": { "f:app": {} } },
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": { "f:spec": { "f:containers": {
                    "k:{\"name\":\"web\"}": {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:args": {},
                        "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } },
                    },
                } } },
            },
        })
    }

    #[test]
    fn what_is_owned_to_the_last_field_is_as_it_was_applied() {
        assert!(covers(&owned(), &deployment()));
    }

    #[test]
    fn a_field_that_somebody_took_is_missed_at_any_depth() {
        for path in [
            "/f:spec/f:replicas",
            "/f:spec/f:selector",
            "/f:metadata/f:labels/f:app",
            "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}/f:image",
            "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}",
            "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"web\"}/f:ports",
            "/f:metadata",
        ] {
            let mut owned = owned();
            let (parent, key) = path.rsplit_once('/').expect("a path");
            let parent = owned.pointer_mut(parent).expect("it is there");
            let taken = parent.as_object_mut().expect("fields").remove(key);
            // A server drops a parent with the last of its fields: without any it is one that is owned whole.
            if parent.as_object().is_some_and(Map::is_empty) {
                parent["."] = json!({});
            }
            assert!(taken.is_some(), "{path}");
            assert!(!covers(&owned, &deployment()), "{path}");
        }
    }

    #[test]
    fn items_of_a_set_are_known_by_their_value() {
        let owned = json!({ "f:metadata": { "f:finalizers": { "v:\"a\"": {} } } });
        let object = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
        assert!(covers(&owned, &object(json!(["a"]))));
        assert!(!covers(&owned, &object(json!(["a", "b"]))));
    }
}
