//! Checks whether a configuration can be applied.

use serde_json::Value;

use super::{Atom, Shape, atom, field_shape, is_named, item_shape, list_type, step_to};
use crate::apply::fields::{FieldStep, show};
use crate::kind::{in_go, type_in_go};
use crate::schema::{Additional, Type};

/// Whether a list may hold items with the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DuplicateFields {
    Allowed,
    Refused,
}

/// Returns the reasons why a value cannot be applied; empty if it can.
pub(crate) fn check(shape: Shape<'_>, value: &Value, duplicates: DuplicateFields) -> Vec<String> {
    let mut errors = Vec::new();
    walk(
        shape,
        value,
        (false, duplicates),
        &mut Vec::new(),
        &mut errors,
    );
    errors
}

/// Checks a value; `open` means that a schema further up keeps unknown fields, which holds for all levels below it.
fn walk(
    shape: Shape<'_>,
    value: &Value,
    (open, duplicates): (bool, DuplicateFields),
    path: &mut Vec<FieldStep>,
    errors: &mut Vec<String>,
) {
    let open = open || shape.is_some_and(|schema| schema.keeps_unknown);
    let mut complain = |path: &[FieldStep], what: &str| {
        errors.push(if path.is_empty() {
            what.to_owned()
        } else {
            format!("{}: {what}", show(path))
        });
    };
    match atom(shape, Some(value)) {
        Atom::Scalar => {
            if let Some(what) = mistyped(shape, value) {
                complain(path, &what);
            }
        }
        Atom::Map => match value {
            Value::Null => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    path.push(FieldStep::field(key));
                    let declared = is_named(shape, key) || takes(shape, open);
                    if declared {
                        walk(
                            field_shape(shape, key),
                            value,
                            (open, duplicates),
                            path,
                            errors,
                        );
                    } else {
                        errors.push(format!("{}: field not declared in schema", show(path)));
                    }
                    path.pop();
                    if !declared {
                        // The first undeclared field ends the check of this map.
                        break;
                    }
                }
            }
            _ => complain(path, &format!("expected map, got {}", shown(value))),
        },
        Atom::List => match value {
            Value::Null => {}
            Value::Array(items) => {
                let mut seen = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    match list_type(shape) {
                        None => path.push(FieldStep::index(index)),
                        Some(list) => match step_to(shape, list, item) {
                            Ok(step) => {
                                if seen.contains(&step) && duplicates == DuplicateFields::Refused {
                                    let what = format!("duplicate entries for key {step}");
                                    errors.push(format!("{}: {what}", show(path)));
                                }
                                path.push(step.clone());
                                seen.push(step);
                            }
                            Err(what) => {
                                errors.push(format!("{}: element {index}: {what}", show(path)));
                                break;
                            }
                        },
                    }
                    walk(item_shape(shape), item, (open, duplicates), path, errors);
                    path.pop();
                }
            }
            _ => complain(path, &format!("expected list, got {}", shown(value))),
        },
    }
}

/// Whether a map accepts fields that its schema does not name.
fn takes(shape: Shape<'_>, open: bool) -> bool {
    shape.is_none_or(|schema| {
        open || schema.properties.is_empty() || !matches!(schema.additional, Additional::None)
    })
}

fn mistyped(shape: Shape<'_>, value: &Value) -> Option<String> {
    let schema = shape?;
    if value.is_null() {
        return None;
    }
    let is_scalar = !value.is_object() && !value.is_array();
    let formatted = schema
        .format
        .as_deref()
        .is_some_and(|format| format != "byte");
    let (fits, wanted) = match schema.kind? {
        Type::Integer | Type::Number => (value.is_number(), "numeric (int or float)"),
        Type::Boolean => (value.is_boolean(), "boolean"),
        Type::String if formatted => (is_scalar, "any scalar"),
        Type::String => (value.is_string(), "string"),
        Type::Object | Type::Array => (true, ""),
    };
    if fits {
        return None;
    }
    let got = match schema.kind? {
        // For these types a server names the Go type.
        Type::Integer | Type::Number => type_in_go(value).to_owned(),
        Type::String if !formatted => {
            format!("&value.valueUnstructured{{Value:{}}}", verbose(value))
        }
        _ => shown(value),
    };
    Some(format!("expected {wanted}, got {got}"))
}

/// Formats a value in Go's short notation.
fn shown(value: &Value) -> String {
    format!("&{{{}}}", in_go(value))
}

/// Formats a value in Go's long notation.
fn verbose(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(verbose).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", verbose(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        _ => in_go(value),
    }
}
