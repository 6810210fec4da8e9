//! Validates a value against its schema, with the messages of the API server.
//!
//! An update does not validate unchanged values (ratcheting), so that an object which a stricter schema no longer
//! allows can be repaired field by field.

use std::collections::BTreeSet;

use jiff::{Timestamp, civil};
use serde_json::{Map, Value};

use super::{ListType, Schema, Type};
use crate::causes::Causes;

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

fn check_string(schema: &Schema, text: &str, path: &str, causes: &mut Causes) {
    let value = || Value::from(text);
    let length = text.chars().count() as u64;
    // A server reports only the first of these errors.
    if let Some(limit) = schema.max_length.filter(|limit| length > *limit) {
        causes.too_long(path, limit);
    } else if let Some(limit) = schema.min_length.filter(|limit| length < *limit) {
        let detail = format!(
            "{} in body should be at least {limit} chars long",
            subject(path)
        );
        causes.invalid(path, value(), &detail);
    } else if let Some((pattern, regex)) = &schema.pattern
        && !regex.is_match(text)
    {
        let detail = format!("{} in body should match '{pattern}'", subject(path));
        causes.invalid(path, value(), &detail);
    }
    if let Some(format) = &schema.format
        && !has_format(format, text)
    {
        let detail = format!(
            "{} in body must be of type {format}: \"{text}\"",
            subject(path)
        );
        causes.mistyped(path, value(), &detail);
    }
}

/// Whether a text has a format. As on a server, unknown formats are not checked.
fn has_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<Timestamp>().is_ok(),
        "date" => text.parse::<civil::Date>().is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "uuid" => {
            let plain = text.replace('-', "");
            plain.len() == 32 && plain.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        _ => true,
    }
}

fn check_number(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) {
    let Some(number) = value.as_f64() else { return };
    let mut complain = |detail: String| {
        let detail = format!("{} in body should be {detail}", subject(path));
        causes.invalid(path, value, &detail);
    };
    if let Some(bound) = schema.minimum {
        let limit = bound.value;
        if bound.exclusive && number <= limit {
            complain(format!("greater than {limit}"));
        } else if number < limit {
            complain(format!("greater than or equal to {limit}"));
        }
    }
    if let Some(bound) = schema.maximum {
        if bound.exclusive && number >= bound.value {
            complain(format!("less than {}", bound.value));
        } else if number > bound.value {
            complain(format!("less than or equal to {}", bound.value));
        }
    }
    if let Some(of) = schema.multiple_of
        && of != 0.0
        && (number / of).fract() != 0.0
    {
        complain(format!("a multiple of {of}"));
    }
    let fits = match schema.format.as_deref() {
        Some("int32") => value.as_i64().is_none_or(|n| i32::try_from(n).is_ok()),
        Some("int64") => value.is_i64() || value.is_f64(),
        _ => true,
    };
    if !fits {
        let format = schema.format.as_deref().unwrap_or_default();
        let detail = format!(
            "{} in body must be of type {format}: \"{value}\"",
            subject(path)
        );
        causes.invalid(path, value, &detail);
    }
}

/// Adds the duplicate items of sets and maps to `causes`.
pub(crate) fn validate_lists(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // The lists of metadata are not checked.
                let below = schema
                    .field(key)
                    .filter(|_| !path.is_empty() || key != "metadata");
                if let Some(below) = below
                    && (value.is_object() || value.is_array())
                {
                    let path = if schema.properties.contains_key(key) {
                        join(path, key)
                    } else {
                        format!("{path}[{key}]")
                    };
                    validate_lists(below, value, &path, causes);
                }
            }
        }
        Value::Array(items) => {
            check_duplicates(schema, items, path, causes);
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &schema.items {
                    validate_lists(below, item, &format!("{path}[{index}]"), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_duplicates(schema: &Schema, items: &[Value], path: &str, causes: &mut Causes) {
    if let ListType::Map(_) = &schema.list
        && let Some(index) = items
            .iter()
            .position(|item| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        causes.invalid(format!("{path}[{index}]"), &items[index], detail);
        return;
    }
    let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for (index, item) in items.iter().enumerate() {
        let identity = match &schema.list {
            ListType::Atomic => break,
            ListType::Set => item.clone(),
            // A null has no keys, like an item that omits them.
            ListType::Map(keys) => key_of(keys, item),
        };
        // A further duplicate is not reported again.
        let identity_text = identity.to_string();
        if !seen.insert(identity_text.clone()) && reported.insert(identity_text) {
            causes.duplicate(format!("{path}[{index}]"), &identity);
        }
    }
}

/// Returns the item of the old list with the same keys, if the list is a map.
pub(crate) fn old_item<'a>(
    schema: &Schema,
    item: &Value,
    old: Option<&'a Value>,
) -> Option<&'a Value> {
    let ListType::Map(keys) = &schema.list else {
        return None;
    };
    let wanted = key_of(keys, item);
    old?.as_array()?
        .iter()
        .find(|other| key_of(keys, other) == wanted)
}

fn key_of(keys: &[String], item: &Value) -> Value {
    keys.iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns the name of a path within a message.
fn subject(path: &str) -> &str {
    if path.is_empty() { "<root>" } else { path }
}

/// Returns the path of a field.
fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
