//! Checks the change of an object from one version to the next.

use jiff::Timestamp;
use serde_json::Value;

use super::condition::{conditions_of, find, text};
use super::{Context, Violation};

/// Checks two versions of the same object.
pub(super) fn check(before: &Value, after: &Value, context: &Context) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut breaks = |id: &str, about: &str, what: &str| {
        found.push(Violation::new(id, about, what));
    };
    let root = |object: &Value| {
        object
            .pointer("/status/observedGeneration")
            .and_then(Value::as_i64)
    };
    if root(before) > root(after) {
        breaks("D03", "observedGeneration", "decreases");
    }
    for next in conditions_of(after) {
        let name = text(next, "type");
        let Some(last) = find(before, name) else {
            continue;
        };
        let seen = |condition: &Value| condition["observedGeneration"].as_i64();
        if seen(last) > seen(next) {
            breaks("D03", name, "its observedGeneration decreases");
        }
        let same = last["status"] == next["status"];
        let time = |condition: &Value| {
            text(condition, "lastTransitionTime")
                .parse::<Timestamp>()
                .ok()
        };
        match (time(last), time(next)) {
            (Some(last), Some(next)) if next < last => breaks("D02", name, "its time goes back"),
            (last, next) if same && last != next => {
                breaks("D02", name, "has a new time without a new status");
            }
            // The status may change twice within the same second.
            _ => {}
        }
        let same_but_for_words =
            same && last["reason"] == next["reason"] && seen(last) == seen(next);
        let (was, is) = (text(last, "message"), text(next, "message"));
        if same_but_for_words && was != is && without_digits(was) == without_digits(is) {
            let what = format!("only numbers change in its message: {was:?}, then {is:?}");
            breaks("D10", name, &what);
        }
    }
    if is_nothing_new(before, after) {
        breaks("D09", "status", "a write that says nothing new");
    }
    foreign(before, after, context, &mut breaks);
    found
}

fn without_digits(text: &str) -> String {
    text.replace(|char: char| char.is_ascii_digit(), "")
}

/// Returns whether the versions differ in nothing but times within the status.
fn is_nothing_new(before: &Value, after: &Value) -> bool {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let content = |object: &Value| {
        let mut content = object.clone();
        if let Some(Value::Object(metadata)) = content.get_mut("metadata") {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        if let Some(status) = content.get_mut("status") {
            forget_times(status);
        }
        content
    };
    let moved = version(before) != version(after) || before["status"] != after["status"];
    moved && content(before) == content(after)
}

fn forget_times(value: &mut Value) {
    match value {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Object(fields) => fields.values_mut().for_each(forget_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Checks that the conditions of other controllers are unchanged.
fn foreign(
    before: &Value,
    after: &Value,
    context: &Context,
    breaks: &mut impl FnMut(&str, &str, &str),
) {
    let of_others = |object| -> Vec<_> {
        let conditions = conditions_of(object);
        conditions
            .filter(|condition| !context.is_own(text(condition, "type")))
            .collect()
    };
    let (was, is) = (of_others(before), of_others(after));
    for condition in &was {
        let name = text(condition, "type");
        match find(after, name) {
            None => breaks("D11", name, "is somebody else's, and gone"),
            Some(now) if now != *condition => {
                breaks("D11", name, "is somebody else's, and another one now");
            }
            Some(_) => {}
        }
    }
    let order = |conditions: &[&Value]| -> Vec<Value> {
        let kept = conditions.iter().filter(|condition| {
            let name = text(condition, "type");
            find(before, name).is_some() && find(after, name).is_some()
        });
        kept.map(|condition| condition["type"].clone()).collect()
    };
    if order(&was) != order(&is) {
        breaks("D11", "conditions", "those of others are in another order");
    }
}
