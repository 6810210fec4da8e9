//! Writes objects with their fields in the order of their Go types, as a real server sends them. Others are sorted by
//! name, as a real server sorts custom resources.

use serde_json::Value;

use super::{FieldType, GoDefinition, GoType, StructType};

/// Returns the JSON text of an object.
pub(crate) fn to_text(object: &Value) -> Vec<u8> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", text("apiVersion")),
    };
    // No other group has a kind of the table.
    let may_be_ours = !group.contains('.') || group.ends_with(".k8s.io");
    let go_type = GoType::of_kind(group, version, text("kind")).filter(|_| may_be_ours);
    text_of(go_type, object)
}

/// Returns the JSON text of an object that need not name its type.
pub(crate) fn text_of(go_type: Option<&'static GoType>, object: &Value) -> Vec<u8> {
    // Enough for most objects, to avoid growing step by step.
    let mut text = Vec::with_capacity(2048);
    match go_type.map(GoType::definition) {
        Some(GoDefinition::Struct(it)) => write_struct(it, object, &mut text),
        _ => write_plain(object, &mut text),
    }
    text
}

fn write_plain(value: &Value, text: &mut Vec<u8>) {
    serde_json::to_writer(text, value).expect("a tree of JSON values has a text");
}

fn write(it: &'static FieldType, value: &Value, text: &mut Vec<u8>) {
    match (it, value) {
        (FieldType::Pointer(it), value) => write(it, value, text),
        (FieldType::Named(named), value) => match named.definition() {
            GoDefinition::Struct(it) => write_struct(it, value, text),
            GoDefinition::Alias(it) => write(it, value, text),
        },
        (FieldType::List(of), Value::Array(items)) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write(of, item, text);
            }
            text.push(b']');
        }
        (FieldType::Map(of), Value::Object(fields)) => {
            text.push(b'{');
            for (index, (key, value)) in fields.iter().enumerate() {
                write_key(key, index == 0, text);
                write(of, value, text);
            }
            text.push(b'}');
        }
        (_, value) => write_plain(value, text),
    }
}

fn write_struct(it: &'static StructType, value: &Value, text: &mut Vec<u8>) {
    let Value::Object(fields) = value else {
        return write_plain(value, text);
    };
    text.push(b'{');
    let start = text.len();
    for key in ["kind", "apiVersion"] {
        if let Some(value) = fields.get(key).filter(|_| it.is_object) {
            write_key(key, text.len() == start, text);
            write_plain(value, text);
        }
    }
    write_fields(it, fields, start, text);
    // A managed field or a value of a webhook may be of no type.
    for (key, value) in fields {
        let is_written = it.field(key).is_some()
            || (it.is_object && matches!(key.as_str(), "kind" | "apiVersion"));
        if !is_written {
            write_key(key, text.len() == start, text);
            write_plain(value, text);
        }
    }
    text.push(b'}');
}

fn write_fields(
    it: &'static StructType,
    fields: &serde_json::Map<String, Value>,
    start: usize,
    text: &mut Vec<u8>,
) {
    for field in &it.fields {
        if let (true, Some(inline)) = (field.name.is_empty(), field.value.as_struct()) {
            write_fields(inline, fields, start, text);
        } else if let Some(value) = fields.get(field.name) {
            write_key(field.name, text.len() == start, text);
            write(&field.value, value, text);
        }
    }
}

fn write_key(key: &str, is_first: bool, text: &mut Vec<u8>) {
    if !is_first {
        text.push(b',');
    }
    serde_json::to_writer(&mut *text, key).expect("a text has a text");
    text.push(b':');
}
