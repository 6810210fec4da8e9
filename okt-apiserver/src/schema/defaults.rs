//! Fills in the defaults of a schema and removes undeclared fields.

use serde_json::Value;

use super::{Additional, Schema};
use crate::object;

/// Fills in defaults, also for nulls that the schema does not allow. Returns whether it changed anything.
pub(crate) fn apply_defaults(schema: &Schema, value: &mut Value) -> bool {
    let mut changed = false;
    if let Value::Object(fields) = value {
        for (key, property) in &schema.properties {
            if let Some(default) = &property.default
                && !fields.contains_key(key)
            {
                fields.insert(key.clone(), default.clone());
                changed = true;
            }
        }
    }
    each_below(schema, value, |below, value| changed |= fill(below, value));
    changed
}

/// Visits the declared fields or the items of a value.
fn each_below(schema: &Schema, value: &mut Value, mut visit: impl FnMut(&Schema, &mut Value)) {
    match (value, &schema.items) {
        (Value::Object(fields), _) => {
            for (key, value) in fields {
                if let Some(below) = schema.field(key) {
                    visit(below, value);
                }
            }
        }
        (Value::Array(items), Some(below)) => items.iter_mut().for_each(|item| visit(below, item)),
        _ => {}
    }
}

fn fill(schema: &Schema, value: &mut Value) -> bool {
    let mut changed = false;
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        *value = default.clone();
        changed = !default.is_null();
    }
    apply_defaults(schema, value) || changed
}

/// Removes the nulls that the schema does not allow and has no default for. Returns whether there were any.
pub(crate) fn drop_nulls(schema: &Schema, value: &mut Value) -> bool {
    let mut changed = false;
    each_below(schema, value, |below, value| {
        changed |= drop_nulls(below, value);
    });
    if let Value::Object(fields) = value {
        changed |= object::retain(fields, |key, value| {
            let below = schema.field(key).filter(|_| value.is_null());
            below.is_none_or(|below| below.nullable || below.default.is_some())
        });
    }
    changed
}

/// Replaces nulls in maps of bytes by empty texts, as protobuf stores them. Returns whether there were any.
pub(crate) fn nulls_to_texts(schema: &Schema, object: &mut Value) -> bool {
    let mut found = false;
    for (key, value) in object.as_object_mut().into_iter().flatten() {
        let below = schema.properties.get(key).map(|below| &below.additional);
        if let (Some(Additional::Of(below)), Value::Object(fields)) = (below, value)
            && below.nullable
        {
            for text in fields.values_mut().filter(|text| text.is_null()) {
                *text = "".into();
                found = true;
            }
        }
    }
    found
}

/// The changes that removed undeclared fields from an object.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    /// The paths of the removed fields.
    pub(crate) dropped: Vec<String>,
    /// The metadata of an embedded object was normalized.
    tidied: bool,
}

impl Pruned {
    /// Whether the object was changed.
    pub(crate) fn changed(&self) -> bool {
        self.tidied || !self.dropped.is_empty()
    }
}

/// Removes undeclared fields.
pub(crate) fn prune(schema: &Schema, value: &mut Value) -> Pruned {
    let mut pruned = Pruned::default();
    walk(schema, value, &mut pruned);
    pruned
}

/// Removes undeclared fields and collects their paths relative to `value`.
fn walk(schema: &Schema, value: &mut Value, pruned: &mut Pruned) {
    match value {
        Value::Object(fields) => fields.retain(|key, value| {
            let before = pruned.dropped.len();
            match schema.field(key) {
                Some(below) => {
                    walk(below, value, pruned);
                    prefix(&mut pruned.dropped[before..], || key.clone());
                    if below.embedded && value.get("metadata").is_some_and(Value::is_object) {
                        pruned.tidied |= object::tidy_metadata(value);
                    }
                    true
                }
                None if schema.takes_any_field() => true,
                None => {
                    pruned.dropped.push(key.clone());
                    false
                }
            }
        }),
        Value::Array(items) => {
            // In a list where none is expected, every field is undeclared.
            let nothing = Schema::default();
            let below = match schema.items.as_deref() {
                None if schema.takes_any_field() => None,
                below => Some(below.unwrap_or(&nothing)),
            };
            if let Some(below) = below {
                for (index, item) in items.iter_mut().enumerate() {
                    let before = pruned.dropped.len();
                    walk(below, item, pruned);
                    prefix(&mut pruned.dropped[before..], || format!("[{index}]"));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Prepends a step to paths; usually there are none, so the step is built on demand.
fn prefix(paths: &mut [String], step: impl Fn() -> String) {
    for path in paths {
        let dot = if path.starts_with('[') { "" } else { "." };
        *path = format!("{}{dot}{path}", step());
    }
}
