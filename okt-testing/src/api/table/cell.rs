//! Helpers that format cells.

use jiff::Timestamp;
use serde_json::Value;

use super::age;
use crate::api::object::{at, items};

pub(super) const NONE: &str = "<none>";

/// Formats labels as `a=b,c=d`, in order.
pub(super) fn labels(map: Option<&Value>) -> String {
    let map = map.and_then(Value::as_object);
    let mut pairs: Vec<_> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", plain(value)))
        .collect();
    pairs.sort();
    pairs.join(",")
}

pub(super) fn each(object: &Value, path: &[&str], show: impl Fn(&Value) -> String) -> Vec<String> {
    items(object, path).iter().map(show).collect()
}

pub(super) fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the number of entries of a map or a list.
pub(super) fn count(object: &Value, path: &[&str]) -> usize {
    match at(object, path) {
        Some(Value::Object(map)) => map.len(),
        Some(Value::Array(list)) => list.len(),
        _ => 0,
    }
}

pub(super) fn integer(object: &Value, path: &[&str]) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn number(object: &Value, path: &[&str]) -> String {
    at(object, path).map(Value::to_string).unwrap_or_default()
}

pub(super) fn or(text: &str, otherwise: &str) -> Value {
    if text.is_empty() { otherwise } else { text }.into()
}

pub(super) fn span(then: Timestamp, now: Timestamp) -> String {
    age(now.as_second() - then.as_second())
}
