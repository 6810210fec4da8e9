//! Checks the identity of list items.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::path::join;
use crate::api::causes::Causes;
use crate::api::schema::{ListType, Schema};

/// Adds the duplicate items of sets and maps to `causes`.
pub(crate) fn validate_lists(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // The lists of metadata are not checked.
                let below = schema
                    .field(key)
                    .filter(|_| !path.is_empty() || key != "metadata");
                if let Some(below) = below
                    && (value.is_object() || value.is_array())
                {
                    let path = if schema.properties.contains_key(key) {
                        join(path, key)
                    } else {
                        format!("{path}[{key}]")
                    };
                    validate_lists(below, value, &path, causes);
                }
            }
        }
        Value::Array(items) => {
            check_duplicates(schema, items, path, causes);
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &schema.items {
                    validate_lists(below, item, &format!("{path}[{index}]"), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_duplicates(schema: &Schema, items: &[Value], path: &str, causes: &mut Causes) {
    if let ListType::Map(_) = &schema.list
        && let Some(index) = items
            .iter()
            .position(|item| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        causes.invalid(format!("{path}[{index}]"), &items[index], detail);
        return;
    }
    let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for (index, item) in items.iter().enumerate() {
        let identity = match &schema.list {
            ListType::Atomic => break,
            ListType::Set => item.clone(),
            // A null has no keys, like an item that omits them.
            ListType::Map(keys) => key_of(keys, item),
        };
        // A further duplicate is not reported again.
        let identity_text = identity.to_string();
        if !seen.insert(identity_text.clone()) && reported.insert(identity_text) {
            causes.duplicate(format!("{path}[{index}]"), &identity);
        }
    }
}

/// Returns the item of the old list with the same keys, if the list is a map.
pub(crate) fn old_item<'a>(
    schema: &Schema,
    item: &Value,
    old: Option<&'a Value>,
) -> Option<&'a Value> {
    let ListType::Map(keys) = &schema.list else {
        return None;
    };
    let wanted = key_of(keys, item);
    old?.as_array()?
        .iter()
        .find(|other| key_of(keys, other) == wanted)
}

fn key_of(keys: &[String], item: &Value) -> Value {
    keys.iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
        .collect::<Map<_, _>>()
        .into()
}
