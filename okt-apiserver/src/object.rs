//! Reads and writes the parts that every Kubernetes object has.
//!
//! Objects are JSON trees, whose shape every function checks before it uses it.

use serde_json::{Map, Value};

/// Returns the value at a path of field names.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// Returns the text at a path of field names; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

pub(crate) fn version(object: &Value) -> &str {
    text(object, &["metadata", "resourceVersion"])
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null())
}

/// Whether nothing keeps an object that is being deleted: neither a finalizer nor the time that a Pod has to end.
pub(crate) fn is_gone(object: &Value) -> bool {
    is_deleting(object) && finalizers(object).is_empty() && grace_period(object) == 0
}

/// Returns the seconds between a deletion and the end of the object.
pub(crate) fn grace_period(object: &Value) -> i64 {
    let seconds = at(object, &["metadata", "deletionGracePeriodSeconds"]);
    seconds.and_then(Value::as_i64).unwrap_or(0)
}

/// Returns the items of the list at a path; none if there is no list.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    let items = at(object, path).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the texts of the list at a path.
pub(crate) fn texts<'a>(object: &'a Value, path: &[&str]) -> Vec<&'a str> {
    let items = items(object, path).iter();
    items.filter_map(Value::as_str).collect()
}

/// Returns the entries of the map at a path; none if there is no map.
pub(crate) fn entries<'a>(
    object: &'a Value,
    path: &[&str],
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    let entries = at(object, path).and_then(Value::as_object);
    entries.into_iter().flatten()
}

/// Whether an object has this condition with the status True.
pub(crate) fn is_condition_true(object: &Value, kind: &str) -> bool {
    let mut conditions = items(object, &["status", "conditions"]).iter();
    conditions.any(|condition| {
        text(condition, &["type"]) == kind && text(condition, &["status"]) == "True"
    })
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    texts(object, &["metadata", "finalizers"])
}

/// Returns the owner references.
pub(crate) fn owners(object: &Value) -> &[Value] {
    items(object, &["metadata", "ownerReferences"])
}

/// Returns the fields of a value; replaces a value that is no object by an empty one.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("the value was made an object above"),
    }
}

/// Returns the metadata; creates it if there is none.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    fields(
        fields(object)
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new())),
    )
}

/// Sets a field, or removes it if there is no value.
pub(crate) fn set(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields.insert(key.to_owned(), value);
        }
        None => {
            fields.remove(key);
        }
    }
}

pub(crate) fn set_version(object: &mut Value, version: u64) {
    metadata(object).insert("resourceVersion".to_owned(), version.to_string().into());
}

/// Increments the generation.
pub(crate) fn raise_generation(object: &mut Value) {
    let generation = at(object, &["metadata", "generation"])
        .and_then(Value::as_i64)
        .unwrap_or(0);
    metadata(object).insert("generation".to_owned(), generation.wrapping_add(1).into());
}

/// Sets the value at a path of field names; values on the way that are no objects are replaced.
pub(crate) fn put(object: &mut Value, path: &[&str], value: Value) {
    match path {
        [] => *object = value,
        [key, rest @ ..] => put(
            fields(object).entry(*key).or_insert(Value::Null),
            rest,
            value,
        ),
    }
}

/// Normalizes metadata to its stored form: removes empty fields.
///
/// It does not change `managedFields`, which the `apply` module maintains. Returns whether it changed anything.
pub(crate) fn tidy_metadata(object: &mut Value) -> bool {
    let metadata = metadata(object);
    let mut changed = retain(metadata, |key, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => key == "managedFields" || !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(number) => key != "generation" || number.as_f64() != Some(0.0),
        Value::Bool(_) => true,
    });
    let mut name = |value: &mut Value| {
        if value.is_null() {
            *value = "".into();
            changed = true;
        }
    };
    for key in ["labels", "annotations"] {
        if let Some(Value::Object(pairs)) = metadata.get_mut(key) {
            pairs.values_mut().for_each(&mut name);
        }
    }
    if let Some(Value::Array(names)) = metadata.get_mut("finalizers") {
        names.iter_mut().for_each(name);
    }
    for owner in metadata
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        changed |= !owner.is_object();
        let owner = fields(owner);
        changed |= retain(owner, |_, value| !value.is_null());
        for key in ["apiVersion", "kind", "name", "uid"] {
            owner.entry(key).or_insert_with(|| {
                changed = true;
                "".into()
            });
        }
    }
    changed
}

/// Sets a condition of an object, whose time is that of the last change of its status.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value) {
    let mut conditions = items(object, &["status", "conditions"]).to_vec();
    let mut old = conditions.iter_mut();
    match old.find(|old| old["type"] == condition["type"]) {
        Some(old) => {
            if old["status"] == condition["status"] {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
    put(object, &["status", "conditions"], conditions.into());
}

/// Keeps some fields and returns whether it removed any.
pub(crate) fn retain(
    fields: &mut Map<String, Value>,
    keep: impl FnMut(&String, &mut Value) -> bool,
) -> bool {
    let before = fields.len();
    fields.retain(keep);
    fields.len() < before
}

/// Normalizes whole numbers with a decimal point to their stored form (e.g. `1.0` to `1`) and returns whether there
/// were any.
pub(crate) fn whole_numbers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            // Larger numbers are written with an exponent and stay unchanged.
            const LIMIT: f64 = 9_007_199_254_740_992.0;
            let float = number.as_f64().unwrap_or(0.5);
            if float.fract() == 0.0
                && float.abs() < LIMIT
                && let Ok(whole) = format!("{float:.0}").parse::<i64>()
            {
                *value = whole.into();
                return true;
            }
            false
        }
        Value::Array(items) => {
            let items = items.iter_mut();
            items.fold(false, |found, item| whole_numbers(item) | found)
        }
        Value::Object(fields) => {
            let values = fields.values_mut();
            values.fold(false, |found, value| whole_numbers(value) | found)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the JSON name of a value's type.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The maximum depth of an object that can be parsed again.
pub(crate) const DEPTH_LIMIT: usize = 100;

/// Returns the number of nested levels of lists and maps.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
    }
}

/// Returns the approximate size of a value in bytes.
pub(crate) fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 2,
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| key.len() + 4 + weight(value))
            .sum(),
    }
}
