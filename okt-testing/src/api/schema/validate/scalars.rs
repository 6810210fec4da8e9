//! Validates texts and numbers against their schema.

use jiff::{Timestamp, civil};
use serde_json::Value;

use super::path::subject;
use crate::api::causes::Causes;
use crate::api::schema::Schema;

pub(super) fn check_string(schema: &Schema, text: &str, path: &str, causes: &mut Causes) {
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

pub(super) fn check_number(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) {
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
