//! Validates a value against its schema, with the messages of the API server.
//!
//! An update does not validate unchanged values (ratcheting), so that an object which a stricter schema no longer
//! allows can be repaired field by field.

mod lists;
mod path;
mod scalars;

pub(crate) use self::lists::{old_item, validate_lists};

use serde_json::{Map, Value};

use self::path::{join, subject};
use self::scalars::{check_number, check_string};
use super::{Schema, Type};
use crate::api::causes::Causes;

/// Adds to `causes` all errors of `value` except those of CEL rules.
pub(crate) fn validate(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    causes: &mut Causes,
) {
    if old == Some(value) {
        return;
    }
    if value.is_null() && schema.nullable {
        return;
    }
    let fits = check_type(schema, value, path, causes);
    if schema.kind == Some(Type::Integer) && value.is_f64() && !fits {
        let format = match &schema.format {
            None => "(default format)".to_owned(),
            Some(format) => format!("with format {format}"),
        };
        let detail = format!("Checked value must be of type integer {format} in {path}");
        causes.invalid("<nil>", "", &detail);
    }
    if let Some(values) = &schema.values
        && !values.contains(value)
    {
        causes.unsupported(path, value, values);
    }
    if value.is_null() {
        // A null is not checked against alternatives.
        return;
    }
    if !fits {
        if schema.kind == Some(Type::Integer) && value.is_f64() {
            check_number(schema, value, path, causes);
        }
        check_junctors(schema, value, path, causes);
        return;
    }
    match value {
        Value::String(text) => check_string(schema, text, path, causes),
        Value::Number(_) => check_number(schema, value, path, causes),
        Value::Array(items) => check_list(schema, items, old, path, causes),
        Value::Object(fields) => check_map(schema, fields, old, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
    check_junctors(schema, value, path, causes);
}

/// Checks the type. Returns whether the other checks make sense.
fn check_type(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) -> bool {
    let wanted = if schema.int_or_string {
        if Type::Integer.holds(value) || Type::String.holds(value) {
            return true;
        }
        "integer,string"
    } else {
        match schema.kind {
            None => return true,
            Some(kind) if kind.holds(value) => return true,
            // A server stops its check early here.
            Some(kind)
                if schema.format.is_some()
                    && !matches!(kind, Type::Integer | Type::Number)
                    && (value.is_string() || value.is_array()) =>
            {
                return true;
            }
            Some(kind) => kind.name(),
        }
    };
    if let (Some(format), false, false) = (
        &schema.format,
        value.is_null(),
        value.is_string() || value.is_array(),
    ) {
        let found = match value {
            Value::Number(number) if number.is_f64() => "float64",
            Value::Number(_) => "int64",
            _ => "",
        };
        let detail = format!(
            "{} in body must be of type {format}: \"{found}\"",
            subject(path)
        );
        causes.mistyped(path, found, &detail);
        return false;
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    causes.mistyped(
        path,
        found,
        &format!(
            "{} in body must be of type {wanted}: \"{found}\"",
            subject(path)
        ),
    );
    false
}

fn check_list(
    schema: &Schema,
    items: &[Value],
    old: Option<&Value>,
    path: &str,
    causes: &mut Causes,
) {
    let limits = (schema.min_items, schema.max_items);
    check_count(items.len(), limits, "items", path, causes);
    if let Some(below) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = old_item(schema, item, old);
            if old != Some(item) {
                validate(below, item, old, &format!("{path}[{index}]"), causes);
            }
        }
    }
}

fn check_map(
    schema: &Schema,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    causes: &mut Causes,
) {
    let limits = (schema.min_properties, schema.max_properties);
    check_count(fields.len(), limits, "properties", path, causes);
    for key in &schema.required {
        if !fields.contains_key(key) {
            causes.required(join(path, key), "");
        }
    }
    if schema.embedded {
        for key in ["apiVersion", "kind"] {
            match fields.get(key) {
                None => causes.required(join(path, key), ""),
                Some(value) if value == "" => {
                    causes.invalid(join(path, key), value, "must not be empty");
                }
                Some(_) => {}
            }
        }
    }
    for (key, value) in fields {
        if let Some(below) = schema.field(key) {
            let old = old.and_then(|old| old.get(key));
            if old != Some(value) {
                validate(below, value, old, &join(path, key), causes);
            }
        }
    }
}

/// Checks the number of items or properties.
fn check_count(
    count: usize,
    (least, most): (Option<u64>, Option<u64>),
    what: &str,
    path: &str,
    causes: &mut Causes,
) {
    if let Some(limit) = most.filter(|limit| count as u64 > *limit) {
        causes.too_many(path, count, limit);
    }
    if let Some(limit) = least.filter(|limit| (count as u64) < *limit) {
        let subject = subject(path);
        let detail = format!("{subject} in body should have at least {limit} {what}");
        causes.invalid(path, count, &detail);
    }
}

fn check_junctors(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) {
    let faults = |schema: &Schema| {
        let mut causes = Causes::default();
        validate(schema, value, None, path, &mut causes);
        causes
    };
    let holds = |schema: &Schema| faults(schema).is_empty();
    // The server loses the path here. It then reports the errors of these alternatives.
    let mut refuse = |detail: &str, alternatives: &[Schema]| {
        causes.invalid("<nil>", "", &format!("\"{path}\" {detail}"));
        for schema in alternatives {
            causes.append(&mut faults(schema));
        }
    };
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(holds) {
        let detail = "must validate at least one schema (anyOf)";
        refuse(detail, &schema.any_of[..1]);
    }
    match schema.one_of.iter().filter(|schema| holds(schema)).count() {
        0 if !schema.one_of.is_empty() => {
            let detail = "must validate one and only one schema (oneOf). Found none valid";
            refuse(detail, &schema.one_of[..1]);
        }
        0 | 1 => {}
        many => {
            let detail = "must validate one and only one schema (oneOf). Found";
            refuse(&format!("{detail} {many} valid alternatives"), &[]);
        }
    }
    if schema.not.as_deref().is_some_and(holds) {
        refuse("must not validate the schema (not)", &[]);
    }
    if !schema.all_of.iter().all(holds) {
        refuse("must validate all the schemas (allOf)", &schema.all_of);
    }
}
