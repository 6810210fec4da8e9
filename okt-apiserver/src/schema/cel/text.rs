//! The functions on texts and times that differ between the `cel` crate and cel-go.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Duration, FixedOffset, SecondsFormat, Utc};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use kube::core::cel::KubeCelExt;
use kube::core::cel::cel::extractors::{Arguments, This};
use kube::core::cel::cel::objects::OptionalValue;
use kube::core::cel::cel::{Context, ExecutionError, IdedExpr, ResolveResult, Value};

use super::node;

/// The functions of the crate, unchanged.
static PLAIN: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

pub(super) fn add(context: &mut Context<'_>) {
    context.add_function("size", size);
    context.add_function("string", to_string);
    context.add_function("format.named", |name: Arc<String>| -> ResolveResult {
        Ok(named_format(&name))
    });
    for (name, of_time, of_span) in PARTS {
        context.add_function(
            name,
            move |This(of): This<Value>, Arguments(zone): Arguments| {
                part(&of, &zone, of_time, of_span)
            },
        );
    }
}

type OfTime = fn(&Zoned) -> i64;
type OfSpan = fn(&Duration) -> Option<i64>;

/// The parts of times, and of the durations that have them.
const PARTS: [(&str, OfTime, OfSpan); 10] = [
    ("getDate", |time| time.day().into(), |_| None),
    ("getDayOfMonth", |time| i64::from(time.day()) - 1, |_| None),
    (
        "getDayOfWeek",
        |time| time.weekday().to_sunday_zero_offset().into(),
        |_| None,
    ),
    (
        "getDayOfYear",
        |time| i64::from(time.day_of_year()) - 1,
        |_| None,
    ),
    ("getFullYear", |time| time.year().into(), |_| None),
    ("getMonth", |time| i64::from(time.month()) - 1, |_| None),
    (
        "getHours",
        |time| time.hour().into(),
        |span| Some(span.num_hours()),
    ),
    (
        "getMinutes",
        |time| time.minute().into(),
        |span| Some(span.num_minutes()),
    ),
    (
        "getSeconds",
        |time| time.second().into(),
        |span| Some(span.num_seconds()),
    ),
    (
        "getMilliseconds",
        |time| time.millisecond().into(),
        |span| Some(span.num_milliseconds()),
    ),
];

/// Parses a duration as a schema with that format accepts it.
pub(super) fn duration(text: &str) -> Option<Value> {
    match plain("duration", vec![node::text(text)]) {
        Ok(value @ Value::Duration(_)) => Some(value),
        _ => None,
    }
}

/// Calls the crate's own function.
fn plain(name: &str, args: Vec<IdedExpr>) -> ResolveResult {
    Value::resolve(&node::call(name, args), &PLAIN)
}

/// Returns the size; of a text in characters, not bytes.
fn size(This(value): This<Value>) -> ResolveResult {
    let size = match &value {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn to_string(This(value): This<Value>) -> ResolveResult {
    let text = match &value {
        Value::Bool(flag) => flag.to_string(),
        Value::Timestamp(time) => time
            .with_timezone(&Utc)
            .to_rfc3339_opts(SecondsFormat::AutoSi, true),
        Value::Duration(span) => {
            let nanos = span.subsec_nanos().unsigned_abs();
            let sign = if *span < Duration::zero() { "-" } else { "" };
            let seconds = span.num_seconds().unsigned_abs();
            let text = format!("{sign}{seconds}.{nanos:09}");
            format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => {
            let mut scope = PLAIN.new_inner_scope();
            scope.add_variable_from_value("value", value);
            let call = node::call("string", vec![node::name("value")]);
            return Value::resolve(&call, &scope);
        }
    };
    Ok(Value::String(Arc::new(text)))
}

/// Returns an optional, where the crate returns a value or null.
fn named_format(name: &str) -> Value {
    let found = plain(&format!("format.{name}"), Vec::new());
    let optional = found.map_or_else(|_| OptionalValue::none(), OptionalValue::of);
    Value::Opaque(Arc::new(optional))
}

/// Returns a part of a time, in UTC or the given zone, or the whole of a duration in that unit.
fn part(of: &Value, zone: &[Value], of_time: OfTime, of_span: OfSpan) -> ResolveResult {
    let wrong = |what: &str| ExecutionError::function_error("timestamp", what);
    match of {
        Value::Timestamp(time) => {
            let zone = match zone.first() {
                None => TimeZone::UTC,
                Some(Value::String(zone)) => {
                    read_zone(zone).ok_or_else(|| wrong(&format!("unknown time zone {zone}")))?
                }
                Some(_) => return Err(ExecutionError::NoSuchOverload),
            };
            let time = to_jiff(time).ok_or_else(|| wrong("the time is out of range"))?;
            Ok(Value::Int(of_time(&time.to_zoned(zone))))
        }
        Value::Duration(span) => of_span(span)
            .map(Value::Int)
            .ok_or(ExecutionError::NoSuchOverload),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn to_jiff(time: &DateTime<FixedOffset>) -> Option<Timestamp> {
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).ok()?;
    Timestamp::new(time.timestamp(), nanos).ok()
}

/// Reads a zone name (e.g. `Europe/Rome`) or an offset (e.g. `+02:00`).
fn read_zone(text: &str) -> Option<TimeZone> {
    let offset = |text: &str| -> Option<i32> {
        let (hours, minutes) = text.split_once(':')?;
        let sign = if hours.starts_with('-') { -1 } else { 1 };
        let hours: i32 = hours.parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        Some(hours * 3600 + sign * minutes * 60)
    };
    match offset(text) {
        Some(seconds) => Some(TimeZone::fixed(
            jiff::tz::Offset::from_seconds(seconds).ok()?,
        )),
        None => TimeZone::get(text).ok(),
    }
}
