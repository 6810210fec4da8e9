//! This file walks values by their schema: which fields are set, what differs, how two are merged.
//!
//! Where there is no schema, maps are owned field by field and lists as a whole.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Step, show};
use crate::schema::{ListType, Schema};

/// A schema, or none where nothing is declared.
type Shape<'s> = Option<&'s Schema>;

/// What changed between two values.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    /// Modified or added.
    pub(crate) set: FieldSet,
}

/// How a value is owned.
enum Grain<'v> {
    /// As one value.
    Whole,
    Fields(&'v Map<String, Value>),
    Items(&'v [Value], &'v ListType),
}

fn grain<'v>(shape: Shape<'v>, value: &'v Value) -> Grain<'v> {
    match value {
        Value::Object(fields) if !shape.is_some_and(|schema| schema.atomic_map) => {
            Grain::Fields(fields)
        }
        Value::Array(items) => match shape.map(|schema| &schema.list) {
            None | Some(ListType::Atomic) => Grain::Whole,
            Some(list) => Grain::Items(items, list),
        },
        _ => Grain::Whole,
    }
}

fn item_shape(shape: Shape<'_>) -> Shape<'_> {
    shape.and_then(|schema| schema.items.as_deref())
}

fn field_shape<'s>(shape: Shape<'s>, key: &str) -> Shape<'s> {
    shape.and_then(|schema| schema.field(key))
}

/// Whether the field is one of a struct, and not an entry of a map.
fn is_named(shape: Shape<'_>, key: &str) -> bool {
    shape.is_some_and(|schema| schema.properties.contains_key(key))
}

/// The step to an item; `None` where it lacks its keys.
fn step_to(shape: Shape<'_>, list: &ListType, item: &Value) -> Option<Step> {
    let ListType::Map(keys) = list else {
        return Some(Step::item(item));
    };
    let fields = item.as_object()?;
    let mut found = Map::new();
    for key in keys {
        let value = fields.get(key).or_else(|| {
            field_shape(item_shape(shape), key).and_then(|schema| schema.default.as_ref())
        });
        if let Some(value) = value {
            found.insert(key.clone(), value.clone());
        }
    }
    (!found.is_empty()).then(|| Step::keys(found))
}

/// Says what keeps a value from being applied; an empty list means nothing.
pub(crate) fn check(shape: Shape<'_>, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    check_below(shape, value, &mut Vec::new(), &mut errors);
    errors
}

fn check_below(shape: Shape<'_>, value: &Value, path: &mut Vec<Step>, errors: &mut Vec<String>) {
    let Some(schema) = shape else { return };
    if value.is_null() {
        return;
    }
    if let Some(kind) = schema.kind
        && !schema.int_or_string
        && !kind.holds(value)
        && (value.is_object() || value.is_array() || is_compound(schema))
    {
        let wanted = if is_compound(schema) && kind.name() == "object" {
            "map"
        } else if is_compound(schema) {
            "list"
        } else {
            kind.name()
        };
        errors.push(format!("{}: expected {wanted}, got {value}", show(path)));
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(Step::field(key));
                match schema.field(key) {
                    Some(below) => check_below(Some(below), value, path, errors),
                    None if schema.takes_any_field() => {}
                    None => errors.push(format!("{}: field not declared in schema", show(path))),
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            let mut seen = std::collections::BTreeSet::new();
            for item in items {
                if schema.list != ListType::Atomic {
                    match step_to(shape, &schema.list, item) {
                        None => errors.push(format!(
                            "{}: associative list with keys has an element that omits key field",
                            show(path)
                        )),
                        Some(step) if !seen.insert(step.clone()) => {
                            errors
                                .push(format!("{}: duplicate entries for key {step}", show(path)));
                        }
                        Some(_) => {}
                    }
                }
                check_below(item_shape(shape), item, path, errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_compound(schema: &Schema) -> bool {
    matches!(
        schema.kind,
        Some(crate::schema::Type::Object | crate::schema::Type::Array)
    )
}

/// The fields that a configuration sets.
pub(crate) fn fields_of(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(shape, value, &mut Vec::new(), &mut set);
    set
}

fn collect(shape: Shape<'_>, value: &Value, path: &mut Vec<Step>, set: &mut FieldSet) {
    match grain(shape, value) {
        Grain::Whole => set.insert(path),
        Grain::Fields(fields) => {
            for (key, value) in fields {
                path.push(Step::field(key));
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if empty || !is_named(shape, key) {
                    set.insert(path);
                }
                if !value.is_null() {
                    collect(field_shape(shape, key), value, path, set);
                }
                path.pop();
            }
        }
        Grain::Items(items, list) => {
            for item in items {
                let Some(step) = step_to(shape, list, item) else {
                    continue;
                };
                path.push(step);
                set.insert(path);
                if !matches!(list, ListType::Set) {
                    collect(item_shape(shape), item, path, set);
                }
                path.pop();
            }
        }
    }
}

/// What changed from `old` to `new`.
pub(crate) fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    differ(
        shape,
        Some(old),
        Some(new),
        &mut Vec::new(),
        &mut comparison,
    );
    comparison
}

fn differ(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<Step>,
    found: &mut Comparison,
) {
    if old == new {
        return;
    }
    match (old, new) {
        (None, None) => {}
        (Some(old), Some(new)) => match (grain(shape, old), grain(shape, new)) {
            (Grain::Fields(_), Grain::Fields(_)) | (Grain::Items(..), Grain::Items(..)) => {
                differ_below(shape, Some(old), Some(new), path, found);
            }
            (Grain::Whole, Grain::Whole) => found.set.insert(path),
            (Grain::Whole | Grain::Fields(_) | Grain::Items(..), _) => {
                differ(shape, Some(old), None, path, found);
                differ(shape, None, Some(new), path, found);
            }
        },
        (None, Some(new)) => {
            found.set.insert(path);
            differ_below(shape, None, Some(new), path, found);
        }
        (Some(old), None) => {
            found.removed.insert(path);
            differ_below(shape, Some(old), None, path, found);
        }
    }
}

fn differ_below<'v>(
    shape: Shape<'v>,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    path: &mut Vec<Step>,
    found: &mut Comparison,
) {
    let old = children(shape, old);
    let new = children(shape, new);
    for (step, (below, value)) in &new {
        let was = old.get(step).map(|(_, value)| *value);
        path.push(step.clone());
        differ(*below, was, Some(value), path, found);
        path.pop();
    }
    for (step, (below, value)) in &old {
        if !new.contains_key(step) {
            path.push(step.clone());
            differ(*below, Some(value), None, path, found);
            path.pop();
        }
    }
}

fn children<'v>(
    shape: Shape<'v>,
    value: Option<&'v Value>,
) -> BTreeMap<Step, (Shape<'v>, &'v Value)> {
    let Some(value) = value else {
        return BTreeMap::new();
    };
    match grain(shape, value) {
        Grain::Whole => BTreeMap::new(),
        Grain::Fields(fields) => fields
            .iter()
            .map(|(key, value)| (Step::field(key), (field_shape(shape, key), value)))
            .collect(),
        Grain::Items(items, list) => items
            .iter()
            .filter_map(|item| Some((step_to(shape, list, item)?, (item_shape(shape), item))))
            .collect(),
    }
}

/// Lays a configuration over a live value.
pub(crate) fn merge(shape: Shape<'_>, live: &Value, config: &Value) -> Value {
    match (grain(shape, live), grain(shape, config)) {
        (Grain::Fields(live), Grain::Fields(config)) => {
            let mut merged = live.clone();
            for (key, value) in config {
                let value = match live.get(key) {
                    Some(live) => merge(field_shape(shape, key), live, value),
                    None => value.clone(),
                };
                merged.insert(key.clone(), value);
            }
            Value::Object(merged)
        }
        (Grain::Items(live, list), Grain::Items(config, _)) => {
            merge_items(shape, list, live, config).into()
        }
        _ => config.clone(),
    }
}

/// The order of the configuration rules; items that only the live list has keep their place.
fn merge_items(shape: Shape<'_>, list: &ListType, live: &[Value], config: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| -> Vec<Option<Step>> {
        items
            .iter()
            .map(|item| step_to(shape, list, item))
            .collect()
    };
    let (live_steps, config_steps) = (steps(live), steps(config));
    let mut merged = Vec::with_capacity(live.len().max(config.len()));
    let mut done = std::collections::BTreeSet::new();
    let mut cursor = 0;
    for (index, (item, step)) in config.iter().zip(&config_steps).enumerate() {
        let place = live_steps.iter().position(|live| live == step);
        let next_shared = config_steps[index..]
            .iter()
            .find(|step| live_steps.contains(step));
        // What stands here in the live list alone comes first.
        while cursor < live.len() && Some(cursor) != place {
            let other = &live_steps[cursor];
            if !config_steps.contains(other) {
                merged.push(live[cursor].clone());
            } else if place.is_none() && next_shared == Some(other) {
                break;
            }
            cursor += 1;
        }
        if let Some(step) = step
            && !done.insert(step.clone())
        {
            continue;
        }
        merged.push(match place {
            Some(place) => merge(item_shape(shape), &live[place], item),
            None => item.clone(),
        });
        if Some(cursor) == place {
            cursor += 1;
        }
    }
    for (item, step) in live.iter().zip(&live_steps).skip(cursor) {
        if !config_steps.contains(step) {
            merged.push(item.clone());
        }
    }
    merged
}

/// The value without the fields of a set; what becomes empty becomes null.
pub(crate) fn without(shape: Shape<'_>, value: &Value, set: &FieldSet) -> Value {
    match grain(shape, value) {
        Grain::Whole => value.clone(),
        Grain::Fields(fields) => {
            let mut rest = Map::new();
            for (key, value) in fields {
                let step = Step::field(key);
                if set.has(&step) {
                    continue;
                }
                let value = match set.below(&step) {
                    Some(set) => without(field_shape(shape, key), value, set),
                    None => value.clone(),
                };
                rest.insert(key.clone(), value);
            }
            if rest.is_empty() {
                Value::Null
            } else {
                Value::Object(rest)
            }
        }
        Grain::Items(items, list) => {
            let mut rest = Vec::new();
            for item in items {
                let Some(step) = step_to(shape, list, item) else {
                    rest.push(item.clone());
                    continue;
                };
                if set.has(&step) {
                    continue;
                }
                rest.push(match set.below(&step) {
                    Some(set) => without(item_shape(shape), item, set),
                    None => item.clone(),
                });
            }
            if rest.is_empty() {
                Value::Null
            } else {
                Value::Array(rest)
            }
        }
    }
}

/// The set with each struct on the way to a field counted as owned.
pub(crate) fn with_named_fields(shape: Shape<'_>, set: &FieldSet) -> FieldSet {
    let mut named = set.clone();
    for (step, below) in set.branches() {
        let (member, shape) = match step.name() {
            Some(key) => (is_named(shape, key), field_shape(shape, key)),
            None => (false, item_shape(shape)),
        };
        named.own_branch(step, with_named_fields(shape, below), member);
    }
    named
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::merge;
    use crate::schema::Schema;

    /// The order of a set of letters after a configuration was laid over it.
    fn order(live: &str, config: &str) -> String {
        let schema = json!({
            "type": "object",
            "properties": { "set": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": { "type": "string" },
            } },
        });
        let schema = Schema::parse_root(&schema).expect("the schema is structural");
        let set = |letters: &str| {
            let letters: Vec<_> = letters.chars().map(String::from).collect();
            json!({ "set": letters })
        };
        let merged = merge(Some(&schema), &set(live), &set(config));
        let letters = merged["set"].as_array().into_iter().flatten();
        letters.filter_map(Value::as_str).collect()
    }

    #[test]
    fn the_order_of_the_configuration_rules_and_others_keep_their_place() {
        assert_eq!(order("abc", "abc"), "abc");
        assert_eq!(order("abc", "cba"), "cba");
        assert_eq!(order("ab", "xb"), "axb");
        assert_eq!(order("abx", "ba"), "bxa");
        assert_eq!(order("ab", "c"), "abc");
        assert_eq!(order("", "ab"), "ab");
        assert_eq!(order("abcd", "da"), "bcda");
    }
}
