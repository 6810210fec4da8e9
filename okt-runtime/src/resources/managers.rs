//! The managers of an object's fields: takes fields over from other managers, and gives fields up to them.
//!
//! An apply removes the fields that its manager owned alone and does not declare any more, and leaves those of others:
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership>. So the fields of an earlier
//! manager stay for ever unless they become those of the operator first, as client-go's upgrade to server-side apply does
//! it; and a field that the operator gives up is reset unless its ownership goes first.

use serde_json::{Map, Value, json};

/// Returns the managed fields of an object after the fields of `takes_over` have become those of `manager`, and `manager`
/// has given up those at the pointers `gives_up`; none if that changes nothing.
pub(super) fn settled(
    all: &Value,
    manager: &str,
    takes_over: &[String],
    gives_up: &[String],
) -> Option<Value> {
    let entries = all.as_array()?;
    let is_of = |entry: &Value, names: &[String]| {
        let is_main = entry["subresource"].as_str().unwrap_or_default().is_empty();
        is_main && names.iter().any(|name| entry["manager"] == **name)
    };
    let is_ours = |entry: &Value| {
        let is_main = entry["subresource"].as_str().unwrap_or_default().is_empty();
        entry["manager"] == manager && entry["operation"] == "Apply" && is_main
    };
    let mut fields = Value::Object(Map::new());
    let mut ours = None;
    let mut left = Vec::new();
    for entry in entries {
        if is_ours(entry) {
            unite(&mut fields, &entry["fieldsV1"]);
            ours = Some(entry.clone());
        } else if is_of(entry, takes_over) {
            unite(&mut fields, &entry["fieldsV1"]);
            ours.get_or_insert_with(|| entry.clone());
        } else {
            left.push(entry.clone());
        }
    }
    let mut ours = ours?;
    for pointer in gives_up {
        remove(&mut fields, &segments(pointer));
    }
    ours["manager"] = manager.into();
    ours["operation"] = "Apply".into();
    ours["fieldsV1"] = fields;
    left.push(ours);
    let is_same = left.len() == entries.len() && left.iter().all(|it| entries.contains(it));
    (!is_same).then_some(Value::Array(left))
}

/// Adds the fields of one set to another.
fn unite(fields: &mut Value, others: &Value) {
    let (Some(fields), Some(others)) = (fields.as_object_mut(), others.as_object()) else {
        return;
    };
    for (name, others) in others {
        unite(fields.entry(name).or_insert_with(|| json!({})), others);
    }
}

/// Removes a field from a set, and the sets that are empty then.
fn remove(fields: &mut Value, path: &[String]) {
    let Some(fields) = fields.as_object_mut() else {
        return;
    };
    let [first, rest @ ..] = path else {
        return;
    };
    if rest.is_empty() {
        fields.remove(first);
    } else if let Some(inner) = fields.get_mut(first) {
        remove(inner, rest);
        if inner.as_object().is_some_and(Map::is_empty) {
            fields.remove(first);
        }
    }
}

/// Returns whether a set has the field at a pointer.
pub(super) fn owns_at(fields: &Value, pointer: &str) -> bool {
    let path = segments(pointer);
    let found = path
        .iter()
        .try_fold(fields, |fields, name| fields.get(name));
    found.is_some()
}

/// Returns the names of a pointer as a set of fields has them.
fn segments(pointer: &str) -> Vec<String> {
    let names = pointer.split('/').skip(1);
    names
        .map(|name| format!("f:{}", name.replace("~1", "/").replace("~0", "~")))
        .collect()
}

/// Removes the value at a pointer from an object, and returns it.
///
/// # Errors
///
/// If the pointer is none, or leads through a list: items of lists have no fixed places.
pub(super) fn take_at(object: &mut Value, pointer: &str) -> Result<Option<Value>, String> {
    let wrong = || {
        Err(format!(
            "{pointer} is not the place of a field outside of lists"
        ))
    };
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return wrong();
    };
    if name.is_empty() || parent.is_empty() {
        return wrong();
    }
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            Ok(fields.remove(&name))
        }
        Some(Value::Array(_)) => wrong(),
        Some(_) | None => Ok(None),
    }
}

/// Puts a value at a pointer from which it was taken.
pub(super) fn put_at(object: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
    if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
        fields.insert(name.replace("~1", "/").replace("~0", "~"), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: &str = "okt/shops.demo.okt.dev";

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields })
    }

    #[test]
    fn the_fields_of_named_managers_become_ours_and_those_of_others_stay() {
        let spec = |fields: Value| json!({ "f:spec": fields });
        let all = json!([
            entry(
                "helm",
                "Update",
                &spec(json!({ "f:a": {}, "f:b": { ".": {}, "f:x": {} } }))
            ),
            entry("kubectl", "Apply", &spec(json!({ "f:c": {} }))),
            entry("other", "Update", &spec(json!({ "f:d": {} }))),
            entry(MANAGER, "Apply", &spec(json!({ "f:b": { "f:y": {} } }))),
        ]);
        let names = ["helm".to_owned(), "kubectl".to_owned()];
        let now = settled(&all, MANAGER, &names, &[]).expect("a change");
        let ours = json!({ "f:a": {}, "f:b": { ".": {}, "f:x": {}, "f:y": {} }, "f:c": {} });
        let wanted = json!([
            entry("other", "Update", &spec(json!({ "f:d": {} }))),
            entry(MANAGER, "Apply", &spec(ours)),
        ]);
        assert_eq!(now, wanted);
        assert_eq!(settled(&now, MANAGER, &names, &[]), None);
    }

    #[test]
    fn a_field_that_is_given_up_is_nobodys_and_an_empty_set_goes_with_it() {
        let fields = json!({ "f:spec": { "f:a": { "f:b": {} }, "f:replicas": {} } });
        let all = json!([entry(MANAGER, "Apply", &fields)]);
        let gives_up = |pointer: &str| {
            let now = settled(&all, MANAGER, &[], &[pointer.to_owned()]);
            now.map(|now| now[0]["fieldsV1"].clone())
        };
        assert_eq!(
            gives_up("/spec/replicas"),
            Some(json!({ "f:spec": { "f:a": { "f:b": {} } } }))
        );
        assert_eq!(
            gives_up("/spec/a/b"),
            Some(json!({ "f:spec": { "f:replicas": {} } }))
        );
        assert_eq!(gives_up("/spec/other"), None);
        assert!(owns_at(&fields, "/spec/replicas") && !owns_at(&fields, "/spec/other"));
    }

    #[test]
    fn a_value_is_taken_from_its_place_and_put_back() {
        let whole = json!({ "spec": { "replicas": 3, "list": [1], "a/b": 1 } });
        for pointer in ["/spec/replicas", "/spec/a~1b"] {
            let mut object = whole.clone();
            let value = take_at(&mut object, pointer)
                .expect("a place")
                .expect("a value");
            assert_ne!(object, whole);
            put_at(&mut object, pointer, value);
            assert_eq!(object, whole);
        }
        let mut object = whole.clone();
        assert_eq!(take_at(&mut object, "/spec/other"), Ok(None));
        assert_eq!(take_at(&mut object, "/status/other"), Ok(None));
        for wrong in ["", "spec", "/", "/spec", "/spec/list/0", "/spec/"] {
            assert!(take_at(&mut object, wrong).is_err(), "{wrong}");
        }
    }
}
