//! What happens to objects, for metrics and sinks: Kubernetes Events, and those of your own. One record, made after its
//! write succeeded.
//!
//! | module | content |
//! |---|---|
//! | `ids`, [`spans`], [`traces`] | traces of objects |
//! | [`event`], [`operators`] | what happened; the operators of this process as they are now |
//! | [`metrics`], [`delivery`], [`outbox`] | what is counted; transitions that are sent until they have arrived |
//! | [`sinks`], [`kube_events`] | who wants to know what happened; Kubernetes Events |
//! | [`monitoring`], `serve`, `permission`, `secure` | metrics and health as text, over HTTP, and over TLS for those whom the API server permits |
//! | [`receivers`] | `CloudEvents`, a collector of traces |
//!
//! Operators use [`okt`](https://docs.rs/okt), which has what they need of this.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod delivery;
pub mod event;
mod ids;
pub mod kube_events;
pub mod metrics;
pub mod monitoring;
pub mod operators;
pub mod outbox;
#[cfg(feature = "secure-metrics")]
mod permission;
#[cfg(any(feature = "cloudevents", feature = "otel"))]
pub mod receivers;
#[cfg(feature = "secure-metrics")]
mod secure;
#[cfg(feature = "serve")]
mod serve;
pub mod sinks;
#[cfg(feature = "otel")]
pub mod spans;
pub mod traces;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use okt_wire::clock::Clock;
use okt_wire::object::{LifecycleObject, position_of};
use okt_wire::status::Transition;
use tokio::time::Instant;

use self::delivery::TransitionEvent;
use self::event::{LifecycleEvent, Occurrence};
use self::ids::{reference, trace_ids};
use self::metrics::lifecycle::{LifecycleMetrics, RunningAttempt};
use self::outbox::Outbox;
use self::sinks::Sinks;

/// Where an operator records what happens to its objects; clones share it.
#[derive(Clone)]
pub struct Telemetry {
    sinks: Arc<Sinks>,
    metrics: Option<Arc<LifecycleMetrics>>,
    outbox: Option<Arc<Outbox>>,
    clock: Clock,
}

impl Telemetry {
    /// Returns what records into these.
    pub fn new(
        sinks: Sinks,
        metrics: Option<Arc<LifecycleMetrics>>,
        outbox: Option<Arc<Outbox>>,
        clock: Clock,
    ) -> Self {
        Self {
            sinks: Arc::new(sinks),
            metrics,
            outbox,
            clock,
        }
    }

    /// Records nothing.
    pub fn none(clock: Clock) -> Self {
        Self::new(Sinks::default(), None, None, clock)
    }

    /// Records what happened to an object, after it was written; it never waits.
    pub fn record<K: LifecycleObject>(&self, meta: &ObjectMeta, occurrence: Occurrence) {
        if let (Some(outbox), Occurrence::Transition { transition, .. }) =
            (&self.outbox, &occurrence)
        {
            outbox.push(TransitionEvent::new::<K>(meta, transition.clone()));
        }
        let generation = meta.generation.unwrap_or_default();
        if let Some(metrics) = &self.metrics {
            let uid = meta.uid.as_deref().unwrap_or_default();
            metrics.record(&occurrence, || trace_ids(uid, generation).0);
        }
        // Most of what happens is wanted by no sink, and an event has copies of five texts.
        if self.sinks.want(&occurrence) {
            self.sinks.send(&Arc::new(LifecycleEvent {
                object: reference::<K>(meta),
                generation,
                at: self.clock.now(),
                occurrence,
            }));
        }
    }

    /// Notes an object that is about to be reconciled: transitions that are not delivered are delivered.
    pub fn see<K: LifecycleObject>(&self, object: &K) {
        let Some(outbox) = &self.outbox else {
            return;
        };
        let meta = object.meta();
        let uid = meta.uid.as_deref().unwrap_or_default();
        let event = |it: &Transition| TransitionEvent::new::<K>(meta, it.clone());
        match position_of(object) {
            Some(it) => outbox.see(uid, it.transition, it.delivered, &it.history, event),
            None => outbox.see(uid, 0, Some(0), &[], event),
        }
    }

    /// Returns the last transition of an object that is delivered; none if the operator delivers none.
    pub fn delivered(&self, uid: &str) -> Option<u64> {
        self.outbox.as_ref().map(|outbox| outbox.delivered(uid))
    }

    /// Returns how many transitions are not delivered; none if the operator delivers none.
    pub fn pending(&self) -> Option<usize> {
        self.outbox.as_ref().map(|outbox| outbox.pending())
    }

    /// Returns until when the deletion of an object waits for the delivery of its transitions, as `Outbox::holds`.
    pub fn holds(&self, uid: &str, wake: impl Fn() + Send + 'static) -> Option<Instant> {
        self.outbox.as_ref()?.holds(uid, wake)
    }

    /// Notes that an object is gone, or another replica's.
    pub fn forget(&self, uid: &str) {
        if let Some(outbox) = &self.outbox {
            outbox.forget(uid);
        }
    }

    /// Notes that the history of the API server went back, for these objects.
    pub fn rewind(&self, uids: impl Iterator<Item = String>) {
        if let Some(outbox) = &self.outbox {
            outbox.rewind(uids);
        }
    }

    /// Counts a write of an object.
    pub fn wrote(&self, kind: Written) {
        if let Some(metrics) = &self.metrics {
            metrics.wrote(kind.as_str());
        }
    }

    /// Counts an attempt of the action of this state as running until the result is dropped.
    pub fn running(&self, state: &'static str) -> Option<RunningAttempt> {
        self.metrics.as_ref().map(|metrics| metrics.running(state))
    }
}

/// The part of an object that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Of the status.
    Status,
    /// Of the finalizers.
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
