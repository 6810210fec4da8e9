//! This file holds a value against its schema, and words what is wrong as the API server does.
//!
//! What an update leaves as it was is not looked at again (ratcheting), so that an object which a
//! stricter schema no longer allows can still be repaired field by field.

use std::collections::BTreeSet;

use jiff::{Timestamp, civil};
use serde_json::{Map, Value};

use super::{ListType, Schema, Type};
use crate::refusal::Cause;

/// Adds to `causes` all that is wrong with `value` but its CEL rules.
pub(crate) fn validate(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    if old == Some(value) {
        return;
    }
    if value.is_null() && schema.nullable {
        return;
    }
    let fits = check_type(schema, value, path, causes);
    if schema.kind == Some(Type::Integer) && value.is_f64() && !fits {
        let format = schema.format.as_deref();
        let format = format.map_or_else(
            || "(default format)".to_owned(),
            |format| format!("with format {format}"),
        );
        let detail = format!("Checked value must be of type integer {format} in {path}");
        causes.push(Cause::invalid("<nil>", &"".into(), &detail));
    }
    if let Some(values) = &schema.values
        && !values.contains(value)
    {
        causes.push(Cause::unsupported(path, value, values));
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

/// Whether the rest is worth looking at.
fn check_type(schema: &Schema, value: &Value, path: &str, causes: &mut Vec<Cause>) -> bool {
    let wanted = if schema.int_or_string {
        if Type::Integer.holds(value) || Type::String.holds(value) {
            return true;
        }
        "integer,string"
    } else {
        match schema.kind {
            None => return true,
            Some(kind) if kind.holds(value) => return true,
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
        causes.push(Cause::mistyped(path, &found.into(), &detail));
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
    causes.push(Cause::mistyped(
        path,
        &found.into(),
        &format!(
            "{} in body must be of type {wanted}: \"{found}\"",
            subject(path)
        ),
    ));
    false
}

fn check_string(schema: &Schema, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let value = || Value::from(text);
    let length = text.chars().count() as u64;
    if let Some(limit) = schema.max_length
        && length > limit
    {
        causes.push(Cause::too_long(path, limit));
    }
    if let Some(limit) = schema.min_length
        && length < limit
    {
        let detail = format!(
            "{} in body should be at least {limit} chars long",
            subject(path)
        );
        causes.push(Cause::invalid(path, &value(), &detail));
    }
    if let Some((pattern, regex)) = &schema.pattern
        && !regex.is_match(text)
    {
        let detail = format!("{} in body should match '{pattern}'", subject(path));
        causes.push(Cause::invalid(path, &value(), &detail));
    }
    if let Some(format) = &schema.format
        && !has_format(format, text)
    {
        let detail = format!(
            "{} in body must be of type {format}: \"{text}\"",
            subject(path)
        );
        causes.push(Cause::mistyped(path, &value(), &detail));
    }
}

/// Formats that a server does not know are not checked; so it is here.
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

fn check_number(schema: &Schema, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(number) = value.as_f64() else { return };
    let mut complain = |detail: String| {
        let detail = format!("{} in body should be {detail}", subject(path));
        causes.push(Cause::invalid(path, value, &detail));
    };
    if let Some(bound) = schema.minimum {
        if bound.exclusive && number <= bound.value {
            complain(format!("greater than {}", bound.value));
        } else if number < bound.value {
            complain(format!("greater than or equal to {}", bound.value));
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
        causes.push(Cause::invalid(path, value, &detail));
    }
}

fn check_list(
    schema: &Schema,
    items: &[Value],
    old: Option<&Value>,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    if let Some(limit) = schema.max_items
        && items.len() as u64 > limit
    {
        causes.push(Cause::too_many(path, items.len(), limit));
    }
    if let Some(limit) = schema.min_items
        && (items.len() as u64) < limit
    {
        let detail = format!(
            "{} in body should have at least {limit} items",
            subject(path)
        );
        causes.push(Cause::invalid(path, &items.len().into(), &detail));
    }
    if let Some(below) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = old_item(schema, item, old);
            if old != Some(item) {
                validate(below, item, old, &format!("{path}[{index}]"), causes);
            }
        }
    }
}

/// Adds what keeps the items of lists from being told apart.
pub(crate) fn validate_lists(schema: &Schema, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // Of metadata nobody insists on it.
                let below = schema
                    .field(key)
                    .filter(|_| !path.is_empty() || key != "metadata");
                let path = if schema.properties.contains_key(key) {
                    join(path, key)
                } else {
                    format!("{path}[{key}]")
                };
                if let Some(below) = below {
                    validate_lists(below, value, &path, causes);
                }
            }
        }
        Value::Array(items) => {
            check_twins(schema, items, path, causes);
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &schema.items {
                    validate_lists(below, item, &format!("{path}[{index}]"), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_twins(schema: &Schema, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    if let ListType::Map(_) = &schema.list
        && let Some(index) = items
            .iter()
            .position(|item| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        causes.push(Cause::invalid(
            format!("{path}[{index}]"),
            &items[index],
            detail,
        ));
        return;
    }
    let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
    for (index, item) in items.iter().enumerate() {
        let identity = match &schema.list {
            ListType::Atomic => break,
            ListType::Set => item.clone(),
            ListType::Map(_) if item.is_null() => continue,
            ListType::Map(keys) => key_of(keys, item),
        };
        // A third one is not told again.
        let identity_text = identity.to_string();
        if !seen.insert(identity_text.clone()) && told.insert(identity_text) {
            causes.push(Cause::duplicate(format!("{path}[{index}]"), &identity));
        }
    }
}

/// The item of the old list that is the same one, where the list can tell.
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

fn check_map(
    schema: &Schema,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    if let Some(limit) = schema.max_properties
        && fields.len() as u64 > limit
    {
        causes.push(Cause::too_many(path, fields.len(), limit));
    }
    if let Some(limit) = schema.min_properties
        && (fields.len() as u64) < limit
    {
        let detail = format!(
            "{} in body should have at least {limit} properties",
            subject(path)
        );
        causes.push(Cause::invalid(path, &fields.len().into(), &detail));
    }
    for key in &schema.required {
        if !fields.contains_key(key) {
            causes.push(Cause::required(join(path, key), ""));
        }
    }
    if schema.embedded {
        for key in ["apiVersion", "kind"] {
            match fields.get(key) {
                None => causes.push(Cause::required(join(path, key), "")),
                Some(value) if value == "" => {
                    causes.push(Cause::invalid(join(path, key), value, "must not be empty"));
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

fn check_junctors(schema: &Schema, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let faults = |schema: &Schema| {
        let mut causes = Vec::new();
        validate(schema, value, None, path, &mut causes);
        causes
    };
    let holds = |schema: &Schema| faults(schema).is_empty();
    // The server loses the path here.
    let fault = |detail: &str| {
        let detail = format!("\"{path}\" {detail}");
        Cause::invalid("<nil>", &"".into(), &detail)
    };
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(holds) {
        causes.push(fault("must validate at least one schema (anyOf)"));
        causes.extend(schema.any_of.iter().take(1).flat_map(faults));
    }
    match schema.one_of.iter().filter(|schema| holds(schema)).count() {
        0 if !schema.one_of.is_empty() => {
            causes.push(fault(
                "must validate one and only one schema (oneOf). Found none valid",
            ));
            causes.extend(schema.one_of.iter().take(1).flat_map(faults));
        }
        0 | 1 => {}
        many => causes.push(fault(&format!(
            "must validate one and only one schema (oneOf). Found {many} valid alternatives"
        ))),
    }
    if schema.not.as_deref().is_some_and(holds) {
        causes.push(fault("must not validate the schema (not)"));
    }
    if !schema.all_of.iter().all(holds) {
        causes.push(fault("must validate all the schemas (allOf)"));
        causes.extend(schema.all_of.iter().flat_map(faults));
    }
}

/// How a path is named within a sentence.
fn subject(path: &str) -> &str {
    if path.is_empty() { "<root>" } else { path }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
