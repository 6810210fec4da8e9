//! Finds the differences between two values.

use serde_json::Value;

use super::{
    Atom, Shape, atom_of, by_step, field_shape, is_atomic_map, item_shape, items_of, list_type,
    same,
};
use crate::apply::fields::{FieldSet, FieldStep};

/// The differences between two values.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    /// Modified or added.
    pub(crate) set: FieldSet,
}

/// Returns the differences between `old` and `new`.
pub(crate) fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Comparison {
    let mut found = Comparison::default();
    differ(shape, Some(old), Some(new), &mut Vec::new(), &mut found);
    found
}

fn differ(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<FieldStep>,
    found: &mut Comparison,
) {
    let (before, after) = (atom_of(shape, old), atom_of(shape, new));
    let leaf = if new.is_none() {
        differ_as(before, shape, old, new, path, found)
    } else {
        if old.is_some() && before != after {
            // A value whose type changed is compared as both types.
            differ_as(before, shape, old, new, path, found);
        }
        differ_as(after, shape, old, new, path, found)
    };
    if !leaf {
        match (old, new) {
            (None, _) => found.set.insert(path),
            (_, None) => found.removed.insert(path),
            (Some(_), Some(_)) => {}
        }
    }
}

/// Compares two values as one type. Returns whether they were compared as a whole.
fn differ_as(
    atom: Option<Atom>,
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<FieldStep>,
    found: &mut Comparison,
) -> bool {
    match atom.unwrap_or(Atom::Map) {
        Atom::Scalar => {}
        Atom::Map => {
            let (before, after) = (
                old.and_then(Value::as_object),
                new.and_then(Value::as_object),
            );
            let empty = before.is_none_or(serde_json::Map::is_empty)
                && after.is_none_or(serde_json::Map::is_empty);
            if !empty && !is_atomic_map(shape) {
                for (key, value) in after.into_iter().flatten() {
                    let was = before.and_then(|fields| fields.get(key));
                    if was != Some(value) {
                        path.push(FieldStep::field(key));
                        differ(field_shape(shape, key), was, Some(value), path, found);
                        path.pop();
                    }
                }
                for (key, value) in before.into_iter().flatten() {
                    if !after.is_some_and(|fields| fields.contains_key(key)) {
                        path.push(FieldStep::field(key));
                        differ(field_shape(shape, key), Some(value), None, path, found);
                        path.pop();
                    }
                }
                return false;
            }
        }
        Atom::List => {
            let (before, after) = (items_of(old), items_of(new));
            let empty = before.is_empty() && after.is_empty();
            if let (Some(list), false) = (list_type(shape), empty) {
                let before = by_step(shape, list, before);
                let after = by_step(shape, list, after);
                for (step, items) in &before {
                    let found_now = after.iter().find(|(other, _)| other == step);
                    let now = found_now.map(|(_, items)| items.as_slice());
                    differ_items(shape, step, items, now.unwrap_or_default(), path, found);
                }
                for (step, items) in &after {
                    if !before.iter().any(|(other, _)| other == step) {
                        differ_items(shape, step, &[], items, path, found);
                    }
                }
                return false;
            }
        }
    }
    match (old, new) {
        (None, _) => found.set.insert(path),
        (_, None) => found.removed.insert(path),
        (Some(old), Some(new)) if !same(old, new) => found.set.insert(path),
        (Some(_), Some(_)) => {}
    }
    true
}

/// Compares the items with the same keys; several such items count as one value.
fn differ_items(
    shape: Shape<'_>,
    step: &FieldStep,
    before: &[&Value],
    after: &[&Value],
    path: &mut Vec<FieldStep>,
    found: &mut Comparison,
) {
    let below = item_shape(shape);
    path.push(step.clone());
    match (before, after) {
        ([], [_]) | ([_], [] | [_]) => {
            let (old, new) = (before.first().copied(), after.first().copied());
            differ(below, old, new, path, found);
        }
        (_, [] | [_]) => {
            if let Some(new) = after.first() {
                differ(below, None, Some(new), path, found);
            }
            found.removed.insert(path);
        }
        ([] | [_], _) => {
            if let Some(old) = before.first() {
                differ(below, Some(old), None, path, found);
            }
            found.set.insert(path);
        }
        (before, after) => {
            let equal = before.len() == after.len()
                && before.iter().zip(after).all(|(old, new)| same(old, new));
            if !equal {
                found.set.insert(path);
            }
        }
    }
    path.pop();
}
