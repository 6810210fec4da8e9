//! Converts an object for CEL: the fields that its schema declares, in their types.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, NaiveDate, NaiveTime};
use kube::core::cel::cel::Value as CelValue;
use kube::core::cel::cel::objects::{Key, Map};
use serde_json::Value;

use super::text;
use super::used::Used;
use crate::schema::{Additional, Schema, Type};

/// Converts the used part of a value to the form in which an expression sees it.
pub(super) fn bind(schema: &Schema, value: &Value, used: &Used) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => {
            if schema.kind == Some(Type::Number) {
                return CelValue::Float(number.as_f64().unwrap_or_default());
            }
            match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => CelValue::Int(integer),
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "an integer beyond the range of CEL saturates"
                )]
                (None, Some(float)) if schema.kind == Some(Type::Integer) => {
                    CelValue::Int(float as i64)
                }
                (None, float) => CelValue::Float(float.unwrap_or_default()),
            }
        }
        Value::String(text) => bind_text(schema, text),
        Value::Array(items) => CelValue::List(Arc::new(match &schema.items {
            Some(below) => bind_items(below, items),
            None => bind_items(&Schema::default(), items),
        })),
        Value::Object(fields) => {
            let mut map = HashMap::new();
            for (key, value) in fields {
                if value.is_null() && schema.properties.contains_key(key) {
                    // For a rule, a null field is absent.
                    continue;
                }
                let (key, below) = match (schema.properties.get(key), &schema.additional) {
                    (Some(below), _) if below.hidden => continue,
                    (Some(below), _) => (escape(key), below),
                    (None, Additional::Of(below)) => (key.into(), &**below),
                    // A rule cannot name an undeclared field.
                    (None, _) => continue,
                };
                let used = match used {
                    Used::Whole => used,
                    Used::Fields(fields) => match fields.get(&*key) {
                        Some(used) => used,
                        None => continue,
                    },
                };
                let key = Key::String(Arc::new(key.into_owned()));
                map.insert(key, bind(below, value, used));
            }
            CelValue::Map(Map { map: Arc::new(map) })
        }
    }
}

fn bind_items(schema: &Schema, items: &[Value]) -> Vec<CelValue> {
    let items = items.iter();
    items.map(|item| bind(schema, item, &Used::Whole)).collect()
}

fn bind_text(schema: &Schema, given: &str) -> CelValue {
    let plain = || CelValue::String(Arc::new(given.to_owned()));
    if schema.int_or_string {
        return plain();
    }
    match schema.format.as_deref() {
        Some("date-time") => {
            DateTime::parse_from_rfc3339(given).map_or_else(|_| plain(), CelValue::Timestamp)
        }
        Some("duration") => text::duration(given).unwrap_or_else(plain),
        Some("date") => NaiveDate::parse_from_str(given, "%Y-%m-%d").map_or_else(
            |_| plain(),
            |date| CelValue::Timestamp(date.and_time(NaiveTime::MIN).and_utc().fixed_offset()),
        ),
        Some("byte") => BASE64_STANDARD
            .decode(given)
            .map_or_else(|_| plain(), |bytes| CelValue::Bytes(Arc::new(bytes))),
        _ => plain(),
    }
}

/// Returns the CEL name of a property; CEL reserves some words and characters.
pub(super) fn escape(name: &str) -> Cow<'_, str> {
    const RESERVED: &str = "true false null in as break const continue else for function if import let loop package namespace \
        return var void while";
    if RESERVED.split(' ').any(|word| word == name) {
        return format!("__{name}__").into();
    }
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return name.into();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
        .into()
}
