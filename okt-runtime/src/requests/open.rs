//! A request that has not finished, as a cache has it.

use std::time::Duration;

use jiff::Timestamp;
use kube::core::DynamicObject;
use okt_core::request::RequestOutcome;
use okt_wire::keys::{FINISHED_LABEL, SCHEDULE_LABEL};
use okt_wire::read;
use okt_wire::request::{RequestSpec, RequestStatus};
use serde_json::Value;

use super::served::ServedKind;
use crate::resources::Name;

/// A request that has not finished, as a cache has it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OpenRequest {
    /// The number of its kind.
    pub(crate) kind: usize,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// The object that is to serve it.
    pub(crate) target: String,
    pub(crate) args: Value,
    pub(crate) start_before: Option<Timestamp>,
    /// How long it is kept after it has finished.
    pub(crate) ttl: Duration,
    /// What it says of itself.
    pub(crate) outcome: Option<RequestOutcome>,
    /// The transition number of its object when it was seen first.
    pub(crate) seen: Option<u64>,
    /// The schedule that made it.
    pub(crate) schedule: Option<String>,
    /// Why it cannot be served.
    pub(crate) unfit: Option<String>,
}

impl OpenRequest {
    /// Reads a request; none if it has finished, or is being deleted.
    pub(crate) fn of(kinds: &[ServedKind], kind: usize, object: &DynamicObject) -> Option<Self> {
        let served = kinds.get(kind)?;
        let meta = &object.metadata;
        let labels = meta.labels.as_ref();
        if labels.is_some_and(|it| it.contains_key(FINISHED_LABEL))
            || meta.deletion_timestamp.is_some()
        {
            return None;
        }
        let spec = serde_json::from_value::<RequestSpec<Value>>(object.data["spec"].clone());
        let status = serde_json::from_value::<RequestStatus<Value>>(object.data["status"].clone());
        let status = status.ok();
        let (spec, unfit) = match spec {
            Ok(spec) => {
                let unfit = served.decode(&spec.args).err();
                (Some(spec), unfit)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        // One that does not decode may name its object all the same.
        let named = || {
            object.data["spec"]["target"]["name"]
                .as_str()
                .map(str::to_owned)
        };
        let target = spec.as_ref().map(|spec| spec.target.name.clone());
        let ttl = spec
            .as_ref()
            .and_then(|spec| spec.ttl_seconds_after_finished);
        Some(Self {
            kind,
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|it| it.0),
            target: target.or_else(named).unwrap_or_default(),
            start_before: spec.as_ref().and_then(|spec| spec.start_before),
            args: spec.map(|spec| spec.args).unwrap_or_default(),
            ttl: ttl.map_or(served.ttl, |seconds| Duration::from_secs(seconds.into())),
            outcome: status.as_ref().and_then(|status| status.outcome),
            schedule: labels.and_then(|it| it.get(SCHEDULE_LABEL)).cloned(),
            seen: status.as_ref().and_then(|status| status.transition),
            unfit,
        })
    }

    /// Returns the name of the object that is to serve it.
    pub(crate) fn target(&self) -> Name {
        (self.namespace.clone(), self.target.clone())
    }

    /// Returns a hash of its uid.
    pub(crate) fn token(&self) -> u64 {
        read::hash(&self.uid)
    }
}
