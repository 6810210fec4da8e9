//! Defines the columns of Events, which show no names of Events.

use jiff::Timestamp;
use serde_json::Value;

use super::Column;
use super::cell::{integer, span};
use crate::object::text;

/// Both groups have the same columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::cell_of("Last Seen", |object, now| {
            let series = text(object, &["series", "lastObservedTime"]);
            let last = either(object, "lastTimestamp", "deprecatedLastTimestamp");
            seen([series, last, first_seen(object)], now)
        }),
        Column::plain("Type", ".type"),
        Column::plain("Reason", ".reason"),
        Column::cell_of("Object", |object, _| {
            let target = about(object);
            let kind = text(target, &["kind"]).to_lowercase();
            match text(target, &["name"]) {
                "" => kind.into(),
                name => format!("{kind}/{name}").into(),
            }
        }),
        Column::cell_of("Subobject", |object, _| {
            text(about(object), &["fieldPath"]).into()
        })
        .wide(),
        Column::cell_of("Source", |object, _| source(object).into()).wide(),
        Column::cell_of("Message", |object, _| {
            either(object, "message", "note").trim().into()
        }),
        Column::cell_of("First Seen", |object, now| seen([first_seen(object)], now)).wide(),
        Column::cell_of("Count", |object, _| {
            let series = integer(object, &["series", "count"]);
            let own = integer(object, &["count"]) + integer(object, &["deprecatedCount"]);
            if series > 0 { series } else { own.max(1) }.into()
        })
        .wide(),
        Column::name().wide(),
    ]
}

fn about(event: &Value) -> &Value {
    event
        .get("involvedObject")
        .or_else(|| event.get("regarding"))
        .unwrap_or(&Value::Null)
}

fn either<'a>(event: &'a Value, core: &str, other: &str) -> &'a str {
    match text(event, &[core]) {
        "" => text(event, &[other]),
        found => found,
    }
}

fn first_seen(event: &Value) -> &str {
    match either(event, "firstTimestamp", "deprecatedFirstTimestamp") {
        "" => text(event, &["eventTime"]),
        first => first,
    }
}

fn seen<const N: usize>(times: [&str; N], now: Timestamp) -> Value {
    times
        .into_iter()
        .find_map(|time| time.parse().ok())
        .map_or("<unknown>".into(), |then| span(then, now).into())
}

fn source(event: &Value) -> String {
    let own = event
        .get("source")
        .or_else(|| event.get("deprecatedSource"))
        .unwrap_or(&Value::Null);
    let (component, instance) = match text(own, &["component"]) {
        "" => (
            either(event, "reportingComponent", "reportingController"),
            text(event, &["reportingInstance"]),
        ),
        component => (component, text(own, &["host"])),
    };
    if instance.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {instance}")
    }
}
