//! Walks values along their schema: it collects the fields that are set, finds differences and merges.
//!
//! Without a schema, maps are owned field by field and lists as a whole.

mod check;
mod compare;
mod merge;

pub(crate) use self::check::{DuplicateFields, check};
pub(crate) use self::compare::{Comparison, compare};
pub(crate) use self::merge::merge;

use serde_json::{Map, Value};

use super::fields::{FieldSet, FieldStep};
use crate::schema::{ListType, Schema, Type};

/// Joins errors into one text, in the format of a server.
pub(crate) fn list(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

/// A schema, or `None` if none is declared.
pub(crate) type Shape<'s> = Option<&'s Schema>;

/// How a value is treated at a node of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atom {
    Map,
    List,
    Scalar,
}

/// Returns the atom as which a value is owned: that of its schema, or else that of the value. `None` if both are open.
fn atom_of(shape: Shape<'_>, value: Option<&Value>) -> Option<Atom> {
    match (shape.and_then(|schema| schema.kind), value) {
        (Some(Type::Object), _) | (None, Some(Value::Object(_))) => Some(Atom::Map),
        (Some(Type::Array), _) | (None, Some(Value::Array(_))) => Some(Atom::List),
        (None, None | Some(Value::Null)) => None,
        (Some(_), _) | (None, Some(_)) => Some(Atom::Scalar),
    }
}

/// Returns the atom as which a value is walked; an open one is walked as a map.
fn atom(shape: Shape<'_>, value: Option<&Value>) -> Atom {
    atom_of(shape, value).unwrap_or(Atom::Map)
}

fn is_atomic_map(shape: Shape<'_>) -> bool {
    shape.is_some_and(|schema| schema.atomic_map)
}

/// Returns how the items of a list are identified; `None` for an atomic list.
fn list_type(shape: Shape<'_>) -> Option<&ListType> {
    shape
        .map(|schema| &schema.list)
        .filter(|list| **list != ListType::Atomic)
}

fn item_shape(shape: Shape<'_>) -> Shape<'_> {
    shape.and_then(|schema| schema.items.as_deref())
}

fn field_shape<'s>(shape: Shape<'s>, key: &str) -> Shape<'s> {
    shape.and_then(|schema| schema.field(key))
}

/// Whether the field is declared by name, and is not an entry of a map.
fn is_named(shape: Shape<'_>, key: &str) -> bool {
    shape.is_some_and(|schema| schema.properties.contains_key(key))
}

/// The items of a list; empty if there is no list.
fn items_of(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the step to an item of a list whose items are identified.
///
/// # Errors
/// The reason why the item cannot be identified.
fn step_to(shape: Shape<'_>, list: &ListType, item: &Value) -> Result<FieldStep, String> {
    let ListType::Map(keys) = list else {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type")
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements"),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null")
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(FieldStep::item(item)),
        }
        .map_err(str::to_owned);
    };
    let Some(fields) = item.as_object() else {
        return Err(if item.is_null() {
            "associative list with keys may not have a null element".to_owned()
        } else {
            "associative list with keys may not have non-map elements".to_owned()
        });
    };
    let mut found = Map::new();
    for key in keys {
        let value = fields.get(key).or_else(|| {
            field_shape(item_shape(shape), key).and_then(|schema| schema.default.as_ref())
        });
        if let Some(value) = value {
            found.insert(key.clone(), value.clone());
        }
    }
    if found.is_empty() {
        let keys: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    found.sort_keys();
    Ok(FieldStep::keys(found))
}

/// Returns the fields that a configuration sets.
pub(crate) fn fields_of(shape: Shape<'_>, value: &Value) -> FieldSet {
    collect(shape, value).unwrap_or_default()
}

/// Returns the fields below a value; `None` if the value is owned as a whole.
fn collect(shape: Shape<'_>, value: &Value) -> Option<FieldSet> {
    match atom(shape, Some(value)) {
        Atom::Scalar => None,
        Atom::Map if is_atomic_map(shape) => None,
        Atom::Map => {
            let fields = value.as_object().into_iter().flatten();
            let branches = fields.map(|(key, value)| {
                let below = collect(field_shape(shape, key), value);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let member = below.is_none() || empty || !is_named(shape, key);
                (FieldStep::field(key), member, below.unwrap_or_default())
            });
            Some(FieldSet::of(branches))
        }
        Atom::List => {
            let list = list_type(shape)?;
            let items = by_step(shape, list, items_of(Some(value)));
            let branches = items.into_iter().map(|(step, duplicates)| {
                let below = match duplicates.as_slice() {
                    [item] => collect(item_shape(shape), item),
                    _ => None,
                };
                (step, true, below.unwrap_or_default())
            });
            Some(FieldSet::of(branches))
        }
    }
}

/// Groups the items of a list by their step, in order; leaves out items that cannot be identified.
fn by_step<'v>(
    shape: Shape<'_>,
    list: &ListType,
    items: &'v [Value],
) -> Vec<(FieldStep, Vec<&'v Value>)> {
    let mut found: Vec<(FieldStep, Vec<&Value>)> = Vec::with_capacity(items.len());
    for item in items {
        let Ok(step) = step_to(shape, list, item) else {
            continue;
        };
        match found.iter_mut().find(|(other, _)| *other == step) {
            Some((_, duplicates)) => duplicates.push(item),
            None => found.push((step, vec![item])),
        }
    }
    found
}

/// Returns the value without the fields of a set; `null` if no field is left.
///
/// An item that loses all its fields stays as an empty map or list.
pub(crate) fn without(shape: Shape<'_>, value: &Value, set: &FieldSet) -> Value {
    match atom(shape, Some(value)) {
        Atom::Scalar => value.clone(),
        Atom::Map => {
            if is_atomic_map(shape) {
                return Value::Null;
            }
            let mut rest = Map::new();
            let mut met = false;
            for (key, value) in value.as_object().into_iter().flatten() {
                let step = FieldStep::field(key);
                if set.has(&step) {
                    continue;
                }
                let value = match set.below(&step) {
                    Some(set) => {
                        met = true;
                        keep_empty(value, without(field_shape(shape, key), value, set))
                    }
                    None => value.clone(),
                };
                rest.insert(key.clone(), value);
            }
            if rest.is_empty() && !met {
                return Value::Null;
            }
            rest.into()
        }
        Atom::List => {
            let Some(list) = list_type(shape) else {
                return Value::Null;
            };
            let mut rest = Vec::new();
            let mut met = false;
            for item in value.as_array().into_iter().flatten() {
                let Ok(step) = step_to(shape, list, item) else {
                    rest.push(item.clone());
                    continue;
                };
                if set.has(&step) {
                    continue;
                }
                rest.push(match set.below(&step) {
                    Some(set) => {
                        met = true;
                        keep_empty(item, without(item_shape(shape), item, set))
                    }
                    None => item.clone(),
                });
            }
            if rest.is_empty() && !met {
                return Value::Null;
            }
            rest.into()
        }
    }
}

fn keep_empty(was: &Value, rest: Value) -> Value {
    match (&rest, was) {
        (Value::Null, Value::Object(_)) => Value::Object(Map::new()),
        (Value::Null, Value::Array(_)) => Value::Array(Vec::new()),
        _ => rest,
    }
}

/// Returns the set with each named struct on the way to a field added.
pub(crate) fn with_named_fields(shape: Shape<'_>, mut set: FieldSet) -> FieldSet {
    name_fields(shape, &mut set);
    set
}

fn name_fields(shape: Shape<'_>, set: &mut FieldSet) {
    set.each_branch(|step, below| {
        let (member, shape) = match step.name() {
            Some(key) => (is_named(shape, key), field_shape(shape, key)),
            None => (false, item_shape(shape)),
        };
        name_fields(shape, below);
        member
    });
}

/// Whether two values are equal; numbers are compared by value, not by notation.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || ((x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64())
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}
