//! Converts between core events and events of `events.k8s.io`.
//!
//! A cluster stores one set of events; the two kinds are two notations of it.

use serde_json::Value;

use crate::kind::{KindId, ServedKind};
use crate::object;

/// The field names in the core group, and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(crate) fn is_view(kind: &ServedKind) -> bool {
    kind.is("events.k8s.io", "events")
}

pub(crate) fn stored_id() -> KindId {
    KindId::new("", "events")
}

/// Converts a core event to an event of `events.k8s.io`.
pub(crate) fn present(mut event: Value) -> Value {
    rename(&mut event, NAMES.iter().map(|(core, new)| (*core, *new)));
    object::fields(&mut event).insert("apiVersion".to_owned(), "events.k8s.io/v1".into());
    event
}

/// Converts an event of `events.k8s.io` to a core event.
pub(crate) fn absorb(mut event: Value) -> Value {
    rename(&mut event, NAMES.iter().map(|(core, new)| (*new, *core)));
    object::fields(&mut event).insert("apiVersion".to_owned(), "v1".into());
    event
}

fn rename<'n>(object: &mut Value, names: impl Iterator<Item = (&'n str, &'n str)>) {
    let fields = object::fields(object);
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}
