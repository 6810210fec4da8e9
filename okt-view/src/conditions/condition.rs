//! Reads the conditions of an object.

use serde_json::Value;

/// Returns the conditions of an object, in order.
pub(super) fn conditions_of(object: &Value) -> impl Iterator<Item = &Value> {
    let conditions = object.pointer("/status/conditions");
    conditions.and_then(Value::as_array).into_iter().flatten()
}

/// Returns the condition of a type, if there is one.
pub(super) fn find<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    conditions_of(object).find(|condition| condition["type"] == name)
}

/// Returns a text of a condition; empty if it has none.
pub(super) fn text<'a>(condition: &'a Value, key: &str) -> &'a str {
    condition[key].as_str().unwrap_or_default()
}
