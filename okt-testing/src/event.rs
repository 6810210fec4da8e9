//! This file shows core events as events of `events.k8s.io`, and takes those in as core events.
//!
//! A cluster keeps one set of events; the two kinds are two spellings of it.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    kind::{Kind, KindId},
    object,
    stored::Stored,
};

/// Names in the core group, and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(crate) fn is_view(kind: &Kind) -> bool {
    kind.is("events.k8s.io", "events")
}

pub(crate) fn stored_id() -> KindId {
    KindId {
        group: String::new(),
        plural: "events".to_owned(),
    }
}

/// The stored object as this kind shows it.
pub(crate) fn present(kind: &Kind, stored: &Arc<Stored>) -> Arc<Stored> {
    if !is_view(kind) {
        return Arc::clone(stored);
    }
    let mut shown = stored.read();
    rename(&mut shown, NAMES.iter().map(|(core, new)| (*core, *new)));
    object::fields(&mut shown).insert("apiVersion".to_owned(), "events.k8s.io/v1".into());
    Arc::new(Stored::new(&shown))
}

/// The object of this kind as it is stored.
pub(crate) fn absorb(kind: &Kind, mut object: Value) -> Value {
    if is_view(kind) {
        rename(&mut object, NAMES.iter().map(|(core, new)| (*new, *core)));
        object::fields(&mut object).insert("apiVersion".to_owned(), "v1".into());
    }
    object
}

fn rename<'n>(object: &mut Value, names: impl Iterator<Item = (&'n str, &'n str)>) {
    let fields = object::fields(object);
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}
