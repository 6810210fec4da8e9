//! Merges a configuration into a live value.

use serde_json::{Map, Value};

use super::{
    Atom, Shape, atom, field_shape, is_atomic_map, item_shape, items_of, list_type, step_to,
};
use crate::apply::fields::FieldStep;
use crate::schema::ListType;

/// Merges a configuration into a live value.
pub(crate) fn merge(shape: Shape<'_>, live: &Value, config: &Value) -> Value {
    overlay(shape, Some(live), Some(config)).unwrap_or_else(|| Value::Object(Map::new()))
}

/// Merges both values; returns `None` if the result is empty.
fn overlay(shape: Shape<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let whole = || config.or(live).cloned();
    match atom(shape, config.or(live)) {
        Atom::Scalar => whole(),
        Atom::Map => {
            let (before, after) = (
                live.and_then(Value::as_object),
                config.and_then(Value::as_object),
            );
            let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
            if empty || is_atomic_map(shape) {
                return whole();
            }
            let mut merged = Map::new();
            for (key, value) in before.into_iter().flatten() {
                let config = after.and_then(|fields| fields.get(key));
                if let Some(value) = overlay(field_shape(shape, key), Some(value), config) {
                    merged.insert(key.clone(), value);
                }
            }
            for (key, value) in after.into_iter().flatten() {
                if !before.is_some_and(|fields| fields.contains_key(key))
                    && let Some(value) = overlay(field_shape(shape, key), None, Some(value))
                {
                    merged.insert(key.clone(), value);
                }
            }
            (!merged.is_empty()).then(|| merged.into())
        }
        Atom::List => {
            let (before, after) = (items_of(live), items_of(config));
            match list_type(shape) {
                Some(list) if !(before.is_empty() && after.is_empty()) => {
                    let merged = overlay_items(shape, list, before, after);
                    (!merged.is_empty()).then(|| merged.into())
                }
                _ => whole(),
            }
        }
    }
}

/// Merges two lists in the order of the configuration; items that only the live list has keep their place.
fn overlay_items(
    shape: Shape<'_>,
    list: &ListType,
    live: &[Value],
    config: &[Value],
) -> Vec<Value> {
    let below = item_shape(shape);
    let steps = |items: &[Value]| -> Vec<FieldStep> {
        items
            .iter()
            .filter_map(|item| step_to(shape, list, item).ok())
            .collect()
    };
    let (live_steps, config_steps) = (steps(live), steps(config));
    let place_in =
        |steps: &[FieldStep], wanted: &FieldStep| steps.iter().position(|step| step == wanted);
    let mut shared = config_steps.iter().filter(|step| live_steps.contains(step));
    let mut next_shared = shared.next();
    let mut done: Vec<&FieldStep> = Vec::new();
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    // Duplicates in the live list are replaced by the configuration, not merged with it.
    let counterpart = |step: &FieldStep| -> Option<&Value> {
        let mut duplicates = live_steps.iter().filter(|other| *other == step);
        duplicates.next()?;
        if duplicates.next().is_some() {
            return Some(&Value::Null);
        }
        live.get(place_in(&live_steps, step)?)
    };
    let (mut at_live, mut at_config) = (0, 0);
    while at_live < live_steps.len() || at_config < config_steps.len() {
        if let (Some(left), Some(right)) = (live_steps.get(at_live), config_steps.get(at_config)) {
            if left == right {
                done.push(left);
                merged.extend(overlay(below, counterpart(left), config.get(at_config)));
                at_live += 1;
                at_config += 1;
                next_shared = shared.next();
                continue;
            }
            if config_steps.contains(left) && next_shared.is_some_and(|next| next != left) {
                at_live += 1;
                continue;
            }
        }
        if let Some(left) = live_steps.get(at_live) {
            if !config_steps.contains(left) {
                merged.extend(overlay(below, live.get(at_live), None));
                at_live += 1;
                continue;
            }
            if done.contains(&left) {
                at_live += 1;
            }
        }
        if let Some(right) = config_steps.get(at_config) {
            done.push(right);
            merged.extend(overlay(below, counterpart(right), config.get(at_config)));
            at_config += 1;
            if next_shared == Some(right) {
                next_shared = shared.next();
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::merge;
    use crate::schema::Schema;

    /// The order of a set of letters after a configuration was merged into it.
    fn order(live: &str, config: &str) -> String {
        let schema = json!({
            "type": "object",
            "properties": { "set": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": { "type": "string" },
            } },
        });
        let schema = Schema::parse_root(&schema, "").expect("the schema is structural");
        let set = |letters: &str| {
            let letters: Vec<_> = letters.chars().map(String::from).collect();
            json!({ "set": letters })
        };
        let merged = merge(Some(&schema), &set(live), &set(config));
        let letters = merged["set"].as_array().into_iter().flatten();
        letters.filter_map(Value::as_str).collect()
    }

    #[test]
    fn a_merged_list_has_the_order_of_the_configuration_and_other_items_keep_their_place() {
        assert_eq!(order("abc", "abc"), "abc");
        assert_eq!(order("abc", "cba"), "cba");
        assert_eq!(order("ab", "xb"), "axb");
        assert_eq!(order("abx", "ba"), "bxa");
        assert_eq!(order("ab", "c"), "abc");
        assert_eq!(order("", "ab"), "ab");
        assert_eq!(order("abcd", "da"), "bcda");
    }
}
