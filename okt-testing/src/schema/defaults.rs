//! This file fills in what a schema gives by default and drops what it does not know.

use serde_json::Value;

use super::{Additional, Schema};
use crate::object;

/// Fills in defaults, also for nulls that the schema does not allow.
pub(crate) fn apply_defaults(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, property) in &schema.properties {
                if let Some(default) = &property.default
                    && fields
                        .get(key)
                        .is_none_or(|value| value.is_null() && !property.nullable)
                {
                    fields.insert(key.clone(), default.clone());
                }
            }
            for (key, value) in fields {
                if let Some(below) = schema.field(key) {
                    fill(below, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for item in items {
                    fill(below, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill(schema: &Schema, value: &mut Value) {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        *value = default.clone();
    }
    apply_defaults(schema, value);
}

/// Drops the nulls that the schema does not allow and has no default for.
pub(crate) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|key, value| {
            let Some(below) = schema.field(key) else {
                return true;
            };
            drop_nulls(below, value);
            !value.is_null() || below.nullable || below.default.is_some()
        }),
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for item in items {
                    drop_nulls(below, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes of nulls in maps of texts what the types of built-in kinds make of them.
pub(crate) fn nulls_to_texts(schema: &Schema, object: &mut Value) {
    for (key, value) in object.as_object_mut().into_iter().flatten() {
        let below = schema.properties.get(key).map(|below| &below.additional);
        if let (Some(Additional::Of(_)), Value::Object(fields)) = (below, value) {
            for text in fields.values_mut().filter(|text| text.is_null()) {
                *text = "".into();
            }
        }
    }
}

/// Drops the maps and lists that are empty: the types of built-in kinds leave them out.
pub(crate) fn drop_empty(schema: &Schema, object: &mut Value) {
    let Value::Object(fields) = object else {
        return;
    };
    fields.retain(|key, value| {
        let Some(below) = schema.properties.get(key).filter(|_| key != "metadata") else {
            return true;
        };
        drop_empty(below, value);
        let is_map = matches!(below.additional, Additional::Of(_));
        match value {
            Value::Object(fields) => !(is_map && fields.is_empty()),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        }
    });
}

/// Drops the fields that the schema does not know, and names them.
pub(crate) fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    walk(schema, value, &mut dropped);
    dropped
}

/// Names what it drops from `value` on.
fn walk(schema: &Schema, value: &mut Value, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.retain(|key, value| {
            let before = dropped.len();
            match schema.field(key) {
                Some(below) => {
                    walk(below, value, dropped);
                    prefix(&mut dropped[before..], || key.clone());
                    if below.embedded && value.get("metadata").is_some() {
                        object::tidy_metadata(value);
                    }
                    true
                }
                None if schema.takes_any_field() => true,
                None => {
                    dropped.push(key.clone());
                    false
                }
            }
        }),
        Value::Array(items) => {
            // In a list where none is expected, nothing is known.
            let nothing = Schema::default();
            let below = match schema.items.as_deref() {
                None if schema.takes_any_field() => None,
                below => Some(below.unwrap_or(&nothing)),
            };
            if let Some(below) = below {
                for (index, item) in items.iter_mut().enumerate() {
                    let before = dropped.len();
                    walk(below, item, dropped);
                    prefix(&mut dropped[before..], || format!("[{index}]"));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts a step before paths; mostly there are none, so the step is made when it is needed.
fn prefix(paths: &mut [String], step: impl Fn() -> String) {
    for path in paths {
        let dot = if path.starts_with('[') { "" } else { "." };
        *path = format!("{}{dot}{path}", step());
    }
}
