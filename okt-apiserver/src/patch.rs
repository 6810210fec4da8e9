//! Applies patches other than server-side apply.

mod json;

use serde_json::{Map, Value, json};

pub(crate) use self::json::apply as json;
use crate::kind::in_go;
use crate::object;
use crate::schema::Schema;

pub(crate) const JSON: &str = "application/json-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Applies a JSON merge patch (RFC 7386).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    let fields = object::fields(target);
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Applies a strategic merge patch, with the list keys of a built-in schema.
///
/// # Errors
/// What is wrong with a directive, in the words of a server.
pub(crate) fn strategic(
    schema: Option<&Schema>,
    target: &mut Value,
    patch: &Value,
) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return Ok(());
    };
    let replaces = match directive(patch) {
        None | Some("delete") => false,
        Some("replace") => true,
        Some(_) => return Err(unknown(patch)),
    };
    let fields = object::fields(target);
    if replaces {
        fields.clear();
    }
    if let Some(Value::Array(kept)) = patch.get("$retainKeys") {
        fields.retain(|key, _| kept.iter().any(|kept| kept == key));
    }
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            delete_from(fields, list, value);
            continue;
        }
        if let Some(list) = key.strip_prefix("$setElementOrder/") {
            if let (None, Some(target)) = (patch.get(list), fields.get_mut(list)) {
                let below = schema.and_then(|schema| schema.field(list));
                strategic_list(below, target, &[], value.as_array())?;
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        let below = schema.and_then(|schema| schema.field(key));
        match value {
            Value::Null => {
                fields.remove(key);
            }
            Value::Object(inner) if directive(inner) == Some("delete") => {
                fields.remove(key);
            }
            Value::Array(items) => {
                let target = fields.entry(key.clone()).or_insert(Value::Null);
                let order = patch.get(&format!("$setElementOrder/{key}"));
                strategic_list(below, target, items, order.and_then(Value::as_array))?;
            }
            _ => strategic(
                below,
                fields.entry(key.clone()).or_insert(Value::Null),
                value,
            )?,
        }
    }
    Ok(())
}

/// Returns what a map of a patch says about itself.
fn directive(patch: &Map<String, Value>) -> Option<&str> {
    patch.get("$patch").and_then(Value::as_str)
}

fn unknown(patch: &Map<String, Value>) -> String {
    let kind = directive(patch).unwrap_or_default();
    let shown = in_go(&Value::Object(patch.clone()));
    format!("unknown patch type: {kind} in map: {shown}")
}

fn delete_from(fields: &mut Map<String, Value>, list: &str, gone: &Value) {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (fields.get_mut(list), gone) {
        items.retain(|item| !gone.contains(item));
    }
}

/// Applies a patch to a list. `order` is the `$setElementOrder` of the patch, which may name unchanged items too.
fn strategic_list(
    schema: Option<&Schema>,
    target: &mut Value,
    patch: &[Value],
    order: Option<&Vec<Value>>,
) -> Result<(), String> {
    let Some(key) = schema.and_then(|schema| schema.merge_key) else {
        // The patch replaces an atomic list, unless it sets only the order.
        if !patch.is_empty() || order.is_none() {
            *target = patch.into();
        }
        return Ok(());
    };
    let directive = |item: &Value| item.as_object().and_then(directive).map(str::to_owned);
    let replaces = patch
        .iter()
        .any(|item| directive(item).as_deref() == Some("replace"));
    let live = match target {
        Value::Array(items) if !replaces => std::mem::take(items),
        _ => Vec::new(),
    };
    let patch: Vec<_> = patch
        .iter()
        .filter(|item| directive(item).as_deref() != Some("replace"))
        .cloned()
        .collect();
    let items = schema.and_then(|schema| schema.items.as_deref());
    let mut merged = live.clone();
    let same = |one: &Value, other: &Value| match key {
        "" => one == other,
        key => one.get(key).is_some() && one.get(key) == other.get(key),
    };
    check_keys(key, &patch, order)?;
    for item in &patch {
        let place = merged.iter().position(|other| same(item, other));
        let deletes = directive(item).as_deref() == Some("delete");
        match place {
            Some(place) if deletes => {
                merged.remove(place);
            }
            Some(place) => strategic(items, &mut merged[place], item)?,
            None if deletes => {}
            None => merged.push(item.clone()),
        }
    }
    if key.is_empty() {
        let mut seen = Vec::new();
        merged.retain(|item| {
            !seen.contains(item) && {
                seen.push(item.clone());
                true
            }
        });
    }
    *target = in_order(merged, order.unwrap_or(&patch), &live, same).into();
    Ok(())
}

/// Checks that a patch names the items of a list, and that they are in the order that it sets.
fn check_keys(key: &str, patch: &[Value], order: Option<&Vec<Value>>) -> Result<(), String> {
    let all = || patch.iter().filter_map(Value::as_object);
    if let Some(wrong) = all().find(|item| directive(item).is_some_and(|it| it != "delete")) {
        return Err(unknown(wrong));
    }
    let is_nameless = |item: &&Map<String, Value>| !key.is_empty() && !item.contains_key(key);
    if let Some(nameless) = all().find(is_nameless) {
        let shown = in_go(&Value::Object(nameless.clone()));
        return Err(format!(
            "map: {shown} does not contain declared merge key: {key}"
        ));
    }
    let Some(order) = order.filter(|order| !order.is_empty()) else {
        return Ok(());
    };
    let name = |item: &Value| item.get(key).unwrap_or(item).clone();
    let mut rest = order.iter().map(name);
    let is_deleted = |item: &&Value| item.as_object().and_then(directive).is_some();
    let kept: Vec<_> = patch.iter().filter(|item| !is_deleted(item)).collect();
    if kept
        .iter()
        .all(|item| rest.any(|other| other == name(item)))
    {
        return Ok(());
    }
    let [patch, order] = [json!(patch), json!(order)].map(|list| in_go(&list));
    Err(format!(
        "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
    ))
}

/// Sorts the items that the patch names into its order, and keeps the place of the others among them; a new item comes
/// before items that the patch does not name.
fn in_order(
    items: Vec<Value>,
    order: &[Value],
    live: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut named, others): (Vec<_>, Vec<_>) = items
        .into_iter()
        .partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    let mut others = others.into_iter().peekable();
    let mut all = Vec::new();
    for item in named {
        let limit = place(live, &item);
        while let Some(other) = others.next_if(|other| place(live, other) < limit) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others);
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::in_order;

    fn ordered(items: &str, order: &str, live: &str) -> String {
        let list = |text: &str| text.chars().map(|char| json!(char)).collect::<Vec<_>>();
        in_order(list(items), &list(order), &list(live), |a, b| a == b)
            .iter()
            .filter_map(Value::as_str)
            .collect()
    }

    #[test]
    fn items_that_a_patch_does_not_name_keep_their_place() {
        for (items, order, live, expected) in [
            ("ab", "", "ab", "ab"),
            ("abn", "n", "ab", "nab"),
            ("abcn", "cn", "abc", "abcn"),
            ("abc", "ca", "abc", "bca"),
            ("abc", "cba", "abc", "cba"),
        ] {
            assert_eq!(
                ordered(items, order, live),
                expected,
                "{items} {order} {live}"
            );
        }
    }
}
