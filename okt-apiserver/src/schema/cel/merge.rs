//! Compares and joins lists that their schema declares as sets or maps, regardless of their order.

use std::sync::Arc;

use kube::core::cel::cel::objects::Key;
use kube::core::cel::cel::{ResolveResult, Value};
use serde_json::{Value as Json, json};

use super::types::Type;
use crate::schema::ListType;

/// The function that replaces `==` on a declared set or map.
pub(super) const EQUALS: &str = "@equals";
/// The function that replaces `+` on a declared set or map.
pub(super) const ADD: &str = "@add";

/// Returns how declared values are compared, or `None` if they are compared as they are.
///
/// The library that evaluates the rules knows no schemas, so the plan is written into the rule.
pub(super) fn plan(kind: &Type) -> Option<Json> {
    match kind {
        Type::Map(_, values) => Some(json!({ "items": plan(values)? })),
        Type::List(items, list) => {
            let items = plan(items);
            match list {
                ListType::Atomic => Some(json!({ "items": items? })),
                ListType::Set => Some(json!({ "set": true, "items": items })),
                ListType::Map(keys) => Some(json!({ "keys": keys, "items": items })),
            }
        }
        Type::Object(fields) => {
            let plans: serde_json::Map<_, _> = fields
                .iter()
                .filter_map(|(name, field)| Some((name.clone(), plan(field)?)))
                .collect();
            (!plans.is_empty()).then(|| json!({ "fields": plans }))
        }
        Type::Dyn | Type::Open | Type::Plain(_) | Type::Optional(_) | Type::Parameter(_) => None,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "functions of CEL get values")]
pub(super) fn equals(plan: Arc<String>, a: Value, b: Value) -> bool {
    same(&read(&plan), &a, &b)
}

#[expect(clippy::needless_pass_by_value, reason = "functions of CEL get values")]
pub(super) fn add(plan: Arc<String>, a: Value, b: Value) -> ResolveResult {
    let (Value::List(old), Value::List(new)) = (&a, &b) else {
        return a + b;
    };
    let plan = read(&plan);
    if !is_associative(&plan) {
        return a + b;
    }
    let mut list = Vec::clone(old);
    for item in new.iter() {
        let found = list.iter().position(|other| match keys(&plan) {
            Some(keys) => key(&keys, other) == key(&keys, item),
            None => other == item,
        });
        match found {
            Some(index) => list[index] = item.clone(),
            None => list.push(item.clone()),
        }
    }
    Ok(Value::List(Arc::new(list)))
}

fn read(plan: &str) -> Json {
    serde_json::from_str(plan).unwrap_or_default()
}

/// Returns whether the plan is that of a set or of a map.
fn is_associative(plan: &Json) -> bool {
    plan.get("set").is_some() || plan.get("keys").is_some()
}

fn keys(plan: &Json) -> Option<Vec<&str>> {
    let keys = plan.get("keys")?.as_array()?;
    Some(keys.iter().filter_map(Json::as_str).collect())
}

fn key<'v>(keys: &[&str], item: &'v Value) -> Vec<Option<&'v Value>> {
    let find = |name: &&str| match item {
        Value::Map(map) => map.map.get(&Key::String(Arc::new((*name).to_owned()))),
        _ => None,
    };
    keys.iter().map(find).collect()
}

fn same(plan: &Json, a: &Value, b: &Value) -> bool {
    let items = &plan["items"];
    match (a, b) {
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            let within = |list: &[Value], item: &Value| match keys(plan) {
                Some(keys) => list
                    .iter()
                    .find(|other| key(&keys, other) == key(&keys, item))
                    .is_some_and(|other| same(items, item, other)),
                None => list.iter().any(|other| same(items, item, other)),
            };
            if is_associative(plan) {
                return a.iter().all(|item| within(b, item))
                    && b.iter().all(|item| within(a, item));
            }
            a.iter().zip(b.iter()).all(|(a, b)| same(items, a, b))
        }
        (Value::Map(a), Value::Map(b)) if a.map.len() == b.map.len() => {
            a.map.iter().all(|(name, value)| {
                let below = match name {
                    Key::String(name) => plan["fields"].get(name.as_str()).unwrap_or(items),
                    _ => items,
                };
                let other = b.map.get(name);
                other.is_some_and(|other| same(below, value, other))
            })
        }
        _ => a == b,
    }
}
