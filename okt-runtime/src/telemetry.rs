//! What happens to objects, for metrics and sinks: Kubernetes Events, and those of your own. One record, made after its
//! write succeeded.

pub(crate) mod event;
pub(crate) mod kube_events;
pub(crate) mod metrics;
pub(crate) mod monitoring;
pub(crate) mod operators;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod sinks;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use self::event::{LifecycleEvent, Occurrence};
use self::metrics::lifecycle::{LifecycleMetrics, RunningAttempt};
use self::sinks::Sinks;
use crate::clock::Clock;
use crate::wire::object::LifecycleObject;

/// Where an operator records what happens to its objects; clones share it.
#[derive(Clone)]
pub(crate) struct Telemetry {
    sinks: Arc<Sinks>,
    metrics: Option<Arc<LifecycleMetrics>>,
    clock: Clock,
}

impl Telemetry {
    pub(crate) fn new(sinks: Sinks, metrics: Option<LifecycleMetrics>, clock: Clock) -> Self {
        Self {
            sinks: Arc::new(sinks),
            metrics: metrics.map(Arc::new),
            clock,
        }
    }

    /// Records what happened to an object, after it was written; it never waits.
    pub(crate) fn record<K: LifecycleObject>(&self, meta: &ObjectMeta, occurrence: Occurrence) {
        if self.sinks.is_empty() && self.metrics.is_none() {
            return;
        }
        let event = LifecycleEvent {
            object: reference::<K>(meta),
            generation: meta.generation.unwrap_or_default(),
            at: self.clock.now(),
            occurrence,
        };
        if let Some(metrics) = &self.metrics {
            metrics.record(&event);
        }
        if !self.sinks.is_empty() {
            self.sinks.send(&Arc::new(event));
        }
    }

    /// Counts a write of an object.
    pub(crate) fn wrote(&self, kind: Written) {
        if let Some(metrics) = &self.metrics {
            metrics.wrote(kind.as_str());
        }
    }

    /// Counts an attempt of the action of this state as running until the result is dropped.
    pub(crate) fn running(&self, state: &'static str) -> Option<RunningAttempt> {
        self.metrics.as_ref().map(|metrics| metrics.running(state))
    }
}

/// The part of an object that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Written {
    Status,
    Finalizer,
}

impl Written {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Finalizer => "finalizer",
        }
    }
}

/// Returns a full reference to an object.
fn reference<K: LifecycleObject>(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}
