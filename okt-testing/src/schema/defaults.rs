//! This file fills in what a schema gives by default and drops what it does not know.

use serde_json::Value;

use super::{Additional, Schema};

/// Fills in defaults, and drops the nulls that the schema does not allow.
pub(crate) fn apply_defaults(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, property) in &schema.properties {
                let missing = match fields.get(key) {
                    None => true,
                    Some(value) => value.is_null() && !property.nullable,
                };
                if !missing {
                    continue;
                }
                match &property.default {
                    Some(default) => {
                        fields.insert(key.clone(), default.clone());
                    }
                    None if fields.contains_key(key) => {
                        fields.remove(key);
                    }
                    None => {}
                }
            }
            if let Additional::Of(of) = &schema.additional {
                fields.retain(|key, value| {
                    schema.properties.contains_key(key) || !value.is_null() || of.nullable
                });
            }
            for (key, value) in fields {
                if let Some(below) = schema.field(key) {
                    apply_defaults(below, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for item in items {
                    if let (true, false, Some(default)) =
                        (item.is_null(), below.nullable, &below.default)
                    {
                        *item = default.clone();
                    }
                    apply_defaults(below, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
            if let Some(below) = &schema.items {
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
