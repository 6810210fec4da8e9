//! The part of an object that somebody wrote.

use serde_json::{Map, Value};

/// Returns the fields of an object that have a manager: without the defaults and what the server chose, such as
/// addresses and uids. Without managers it is the whole object.
pub(super) fn part(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut fields = Value::Null;
    for entry in entries.into_iter().flatten() {
        join(&mut fields, &entry["fieldsV1"]);
    }
    match fields.as_object() {
        Some(fields) => kept(object, fields),
        None => object.clone(),
    }
}

fn join(all: &mut Value, more: &Value) {
    match (&mut *all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (step, below) in more {
                join(all.entry(step).or_insert(Value::Null), below);
            }
        }
        (_, more) => *all = more.clone(),
    }
}

/// Returns a value with the fields and items of a set in the form of `fieldsV1`.
fn kept(value: &Value, set: &Map<String, Value>) -> Value {
    let below = |step: &str| set.get(step).and_then(Value::as_object);
    match value {
        // Nothing below has a manager of its own.
        value if set.is_empty() => value.clone(),
        Value::Object(all) => {
            let all = all.iter().filter_map(|(name, value)| {
                let below = below(&format!("f:{name}"))?;
                Some((name.clone(), kept(value, below)))
            });
            all.collect()
        }
        Value::Array(all) => {
            let all = all.iter().filter_map(|item| {
                let below = below(&format!("v:{item}")).or_else(|| {
                    let mut steps = set.iter();
                    let found = steps.find(|(step, _)| has_keys(item, step))?;
                    found.1.as_object()
                });
                Some(kept(item, below?))
            });
            all.collect()
        }
        value => value.clone(),
    }
}

/// Returns whether an item has the keys of a step (e.g. `k:{"name":"a"}`).
fn has_keys(item: &Value, step: &str) -> bool {
    let keys = step.strip_prefix("k:").map(serde_json::from_str);
    let Some(Ok(Value::Object(keys))) = keys else {
        return false;
    };
    keys.iter().all(|(name, value)| item[name] == *value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_chose_is_left_out() {
        let set = json!({ "f:spec": {
            "f:selector": {},
            "f:ports": { ".": {}, "k:{\"port\":80}": { ".": {}, "f:port": {} } },
            "f:names": { "v:\"a\"": {} },
        } });
        let labels = json!({ "f:metadata": { "f:labels": { "f:a": {} } } });
        let object = json!({
            "metadata": {
                "labels": { "a": "b", "other": "c" },
                "managedFields": [{ "fieldsV1": set }, { "fieldsV1": labels }],
            },
            "spec": {
                "selector": { "app": "a" },
                "clusterIP": "10.96.0.12",
                "ports": [{ "port": 80, "nodePort": 30_001 }, { "port": 81 }],
                "names": ["a", "b"],
            },
        });
        let written = json!({
            "metadata": { "labels": { "a": "b" } },
            "spec": { "selector": { "app": "a" }, "ports": [{ "port": 80 }], "names": ["a"] },
        });
        assert_eq!(part(&object), written);
    }

    #[test]
    fn an_object_without_managers_is_there_as_a_whole() {
        let object = json!({ "metadata": { "managedFields": [] }, "data": { "a": "b" } });
        assert_eq!(part(&object), object);
    }
}
