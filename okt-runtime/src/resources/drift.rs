//! Detects drift: whether OKT still owns every field that it declares, and who took the fields that it does not.
//!
//! The API server takes a field away from its manager when another manager changes it, so OKT need not compare values
//! that the server may have normalized:
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>.

use serde_json::{Map, Value};

/// Returns the fields of an object that a manager owns, as `fieldsV1`; none if it owns none.
pub(crate) fn owned_fields<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries
        .iter()
        .find(|entry| entry["manager"] == manager)
        .map(|entry| &entry["fieldsV1"])
}

/// Returns whether the owned fields include every declared field.
pub(crate) fn covers(owned: &Value, declared: &Value) -> bool {
    // No manager owns the fields that identify an object.
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
    let owned = owned
        .get("f:metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let declared = metadata.as_object().into_iter().flatten();
    declared
        .filter(|(name, _)| !matches!(name.as_str(), "name" | "namespace"))
        .all(|(name, value)| has_field(owned, name, value))
}

fn has_field(owned: &Map<String, Value>, name: &str, value: &Value) -> bool {
    let field = owned.get(&format!("f:{name}"));
    field
        .and_then(Value::as_object)
        .is_some_and(|owned| has_value(owned, value))
}

fn has_value(owned: &Map<String, Value>, value: &Value) -> bool {
    // The value is owned as a whole: a scalar, an atomic list or map, or an empty value.
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

/// Returns whether an item of a list is owned, as a whole or with each of its fields.
fn has_item(owned: &Map<String, Value>, item: &Value) -> bool {
    match item_in(owned, item) {
        Some(Value::Object(owned)) => has_value(owned, item),
        Some(_) | None => false,
    }
}

/// Returns the owned fields of an item of a list; none if it is not owned.
///
/// Its value identifies it (`v:`), or its key fields do (`k:`); the API server fills in a key field that it lacks.
fn item_in<'a>(owned: &'a Map<String, Value>, item: &Value) -> Option<&'a Value> {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let is_it = |key: &str| {
        if let Some(value) = key.strip_prefix("v:").and_then(parsed) {
            return value == *item;
        }
        let Some(Value::Object(keys)) = key.strip_prefix("k:").and_then(parsed) else {
            return false;
        };
        keys.iter().all(|(name, value)| match item.get(name) {
            Some(own) => own == value,
            // The only key field that the API server fills in, in lists of ports.
            None => name != "protocol" || value == "TCP",
        })
    };
    owned.iter().find(|(key, _)| is_it(key)).map(|it| it.1)
}

/// Returns the other managers that own a declared field of an object which `manager` does not own, in the order of the
/// object's managed fields.
pub(super) fn takers(object: &Value, manager: &str, declared: &Value) -> Vec<String> {
    let none = Value::Object(Map::new());
    let ours = owned_fields(object, manager).unwrap_or(&none);
    let entries = object["metadata"]["managedFields"].as_array();
    let others = entries.into_iter().flatten();
    let takers = others
        .filter(|entry| entry["manager"] != manager && takes(&entry["fieldsV1"], ours, declared))
        .filter_map(|entry| entry["manager"].as_str());
    let mut names: Vec<String> = Vec::new();
    for name in takers {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns whether a set of fields has a declared field that another set lacks.
fn takes(theirs: &Value, ours: &Value, declared: &Value) -> bool {
    // A side without fields owns the value as a whole.
    let (Some(theirs), Some(ours)) = (fields(theirs), fields(ours)) else {
        return false;
    };
    let differs = |taken: Option<&Value>, own: Option<&Value>, value: &Value| match (taken, own) {
        (Some(taken), Some(own)) => takes(taken, own, value),
        (taken, own) => taken.is_some() && own.is_none(),
    };
    match declared {
        Value::Object(all) => all.iter().any(|(name, value)| {
            let name = format!("f:{name}");
            differs(theirs.get(&name), ours.get(&name), value)
        }),
        Value::Array(items) => items
            .iter()
            .any(|item| differs(item_in(theirs, item), item_in(ours, item), item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn fields(set: &Value) -> Option<&Map<String, Value>> {
    set.as_object().filter(|fields| !fields.is_empty())
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
    fn an_object_with_all_declared_fields_owned_is_covered() {
        assert!(covers(&owned(), &deployment()));
    }

    #[test]
    fn a_field_lost_to_another_manager_is_detected_at_any_depth() {
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
            // An empty parent would mean that it is owned as a whole; the server removes it with its last field.
            if parent.as_object().is_some_and(Map::is_empty) {
                parent["."] = json!({});
            }
            assert!(taken.is_some(), "{path}");
            assert!(!covers(&owned, &deployment()), "{path}");
        }
    }

    #[test]
    fn items_of_a_set_are_identified_by_value() {
        let owned = json!({ "f:metadata": { "f:finalizers": { "v:\"a\"": {} } } });
        let object = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
        assert!(covers(&owned, &object(json!(["a"]))));
        assert!(!covers(&owned, &object(json!(["a", "b"]))));
    }
}
