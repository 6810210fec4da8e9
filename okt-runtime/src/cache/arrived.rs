//! An object as a list or a watch delivers it.
//!
//! It has no type parameter, so that what reads it is compiled here, and not once more for each application.

use std::borrow::Cow;
use std::cell::Cell;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use okt_core::StateId;
use okt_core::record::Phase;
use okt_sharding::ranges::{Range, Ranges};
use okt_wire::pruned::{Pruned, field};
use okt_wire::resource_like;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::cache::packed::Packed;

/// An object as a list or a watch delivers it; it may not decode.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    /// Only the fields that the queue and a reconciliation need before the object is decoded.
    pub(super) meta: ObjectMeta,
    pub(super) text: Packed,
    /// What is known of it, without the number of its state.
    pub(super) glance: Glance,
    /// The name of the state on record.
    pub(super) state: Option<Box<str>>,
}

resource_like!([] Arrived, DynamicObject, false, |it| &it.meta, &mut it.meta);

/// What is known of an object without decoding it: for the queue, and for metrics.
#[derive(Clone, Default, Debug)]
pub(crate) struct Glance {
    /// Whether it is being deleted, or its spec was changed since the operator saw it last.
    pub(crate) is_changed: bool,
    /// Whether its work is not done.
    pub(crate) is_pending: bool,
    /// The state on record; unknown where the graph does not have it.
    pub(crate) state: Option<StateId>,
    /// Since when the object is in it.
    pub(crate) since: Option<Timestamp>,
    /// The reason of `Stalled` or `Reconciling`, whichever is True.
    pub(crate) unsettled: Option<(Unsettled, Box<str>)>,
    /// The gate before which it waits, and the group of the limit; few objects wait.
    pub(crate) waiting: Option<Box<(Box<str>, Box<str>)>>,
}

/// Why an object is not at rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Unsettled {
    Stalled,
    Reconciling,
}

impl Glance {
    /// Returns what is known of an object with this status.
    fn of(meta: &ObjectMeta, status: &SeenStatus<'_>) -> Self {
        let position = &status.lifecycle;
        let unsettled = status.conditions.iter().find_map(|it| {
            let why = match &*it.type_ {
                "Stalled" => Unsettled::Stalled,
                "Reconciling" => Unsettled::Reconciling,
                _ => return None,
            };
            (it.status == "True").then(|| (why, it.reason.as_ref().into()))
        });
        Self {
            is_changed: meta.deletion_timestamp.is_some()
                || status.observed_generation != meta.generation,
            is_pending: position.action.phase == Some(Phase::Pending),
            state: None,
            since: position.since,
            unsettled,
            waiting: position
                .waiting
                .as_ref()
                .map(|it| Box::new((it.gate.as_ref().into(), it.group.as_ref().into()))),
        }
    }

    /// Returns whether the object seems to be at rest: then this version of it stays for long.
    fn is_at_rest(&self) -> bool {
        !self.is_changed && !self.is_pending && self.unsettled.is_none()
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct SeenStatus<'a> {
    observed_generation: Option<i64>,
    #[serde(borrow)]
    lifecycle: SeenPosition<'a>,
    #[serde(borrow)]
    conditions: Vec<SeenCondition<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SeenPosition<'a> {
    #[serde(borrow)]
    state: Cow<'a, str>,
    since: Option<Timestamp>,
    action: SeenAction,
    #[serde(borrow)]
    waiting: Option<SeenWait<'a>>,
}

#[derive(Deserialize)]
struct SeenWait<'a> {
    #[serde(borrow)]
    gate: Cow<'a, str>,
    #[serde(borrow, default)]
    group: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SeenAction {
    phase: Option<Phase>,
}

#[derive(Deserialize)]
struct SeenCondition<'a> {
    #[serde(rename = "type", borrow)]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

impl<'de> Deserialize<'de> for Arrived {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = WANTED.get();
        let wants = |metadata: &str| {
            wanted == Ranges::ALL || {
                let uid = field(metadata, &["uid"]).unwrap_or_default();
                wanted.contains(Range::of(uid.trim_matches('"')))
            }
        };
        let pruned = Pruned::read_if(deserializer, wants)?;
        let meta = pruned.metadata().map_err(D::Error::custom)?;
        if pruned.is_cut {
            return Ok(Self {
                meta: essence(meta),
                text: Packed::new(""),
                glance: Glance::default(),
                state: None,
            });
        }
        // One that does not decode is reported when the object is reconciled.
        let status: SeenStatus<'_> = serde_json::from_str(pruned.status_text()).unwrap_or_default();
        let glance = Glance::of(&meta, &status);
        let state = &status.lifecycle.state;
        let text = if glance.is_at_rest() {
            Packed::new(&pruned.text)
        } else {
            // A copy of its size: cutting the larger buffer would leave a hole in the heap for each object.
            Packed::Plain(pruned.text.as_str().into())
        };
        Ok(Self {
            state: (!state.is_empty()).then(|| state.as_ref().into()),
            meta: essence(meta),
            text,
            glance,
        })
    }
}

thread_local! {
    /// The ranges of the objects that are decoded.
    static WANTED: Cell<Ranges> = const { Cell::new(Ranges::ALL) };
}

/// Decodes only objects of these ranges while `poll` runs; of others only the metadata.
///
/// kube decodes what a watch receives, and has no place for a filter before that.
pub(crate) fn decode_only<T>(ranges: Ranges, poll: impl FnOnce() -> T) -> T {
    WANTED.set(ranges);
    let polled = poll();
    WANTED.set(Ranges::ALL);
    polled
}

/// Returns the part of the metadata that is needed before the object is decoded; the text has all of it.
fn essence(meta: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        generation: meta.generation,
        deletion_timestamp: meta.deletion_timestamp,
        finalizers: meta.finalizers,
        ..ObjectMeta::default()
    }
}
