//! The metrics of an agent, for Prometheus. The labels are bounded by its states, its paths and the protocol.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use crate::wire::{Phase, Seen};

/// The metrics of an agent.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histogram,
    actions: Family<ActionLabels, Counter>,
    action_seconds: Histogram,
    running: Gauge,
    observations: Family<Observe, Counter>,
    journal_bytes: Gauge,
    journal_failures: Counter,
    connections: Gauge,
    closed: Family<Closed, Counter>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    path: String,
    status: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct ActionLabels {
    state: String,
    phase: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Observe {
    seen: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Closed {
    reason: &'static str,
}

impl Metrics {
    /// Creates metrics that are all zero.
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("okt_sidecar");
        let new = &mut registry;
        let answer_buckets = exponential_buckets(0.000_1, 4.0, 10);
        let action_buckets = exponential_buckets(0.01, 4.0, 12);
        Self {
            requests: known(new, "requests", "Requests that were answered"),
            request_seconds: register(
                new,
                "request_seconds",
                "Duration of answers, except those that wait for the end of an action",
                Histogram::new(answer_buckets),
            ),
            actions: known(new, "actions", "Attempts that have ended"),
            action_seconds: register(
                new,
                "action_seconds",
                "How long attempts took",
                Histogram::new(action_buckets),
            ),
            running: known(new, "action_running", "Whether an action is under way"),
            observations: known(new, "observations", "Observations of the application"),
            journal_bytes: known(new, "journal_bytes", "How long the journal is"),
            journal_failures: known(new, "journal_failures", "Writes to the journal that failed"),
            connections: known(new, "connections", "Connections that are open"),
            closed: known(
                new,
                "connections_closed",
                "Connections that were closed before they were done",
            ),
            registry,
        }
    }

    /// Returns all metrics as text in the `OpenMetrics` format.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String fails only if a metric fails, and these do not.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Counts an answered request.
    pub(super) fn answered(
        &self,
        method: &'static str,
        path: &str,
        status: u16,
        took: Option<Duration>,
    ) {
        let request = RequestLabels {
            method,
            path: path.to_owned(),
            status,
        };
        self.requests.get_or_create(&request).inc();
        if let Some(took) = took {
            self.request_seconds.observe(took.as_secs_f64());
        }
    }

    /// Counts an ended attempt.
    pub(super) fn ended(&self, state: &str, phase: Phase, took: Duration) {
        let action = ActionLabels {
            state: state.to_owned(),
            phase: format!("{phase:?}"),
        };
        self.actions.get_or_create(&action).inc();
        self.action_seconds.observe(took.as_secs_f64());
    }

    /// Sets whether an action is running.
    pub(super) fn running(&self, running: bool) {
        self.running.set(running.into());
    }

    /// Counts an observation of the application.
    pub(super) fn observed(&self, seen: &Seen) {
        let seen = match seen {
            Seen::Unobserved => "unobserved",
            Seen::In { .. } => "in",
            Seen::Absent => "absent",
            Seen::Unreachable { .. } => "unreachable",
        };
        self.observations.get_or_create(&Observe { seen }).inc();
    }

    /// Sets the length of the journal, and counts a failed write.
    pub(super) fn wrote(&self, length: u64, well: bool) {
        self.journal_bytes
            .set(i64::try_from(length).unwrap_or(i64::MAX));
        if !well {
            self.journal_failures.inc();
        }
    }

    /// Sets the number of open connections.
    pub(super) fn connected(&self, connections: usize) {
        self.connections
            .set(i64::try_from(connections).unwrap_or(i64::MAX));
    }

    /// Counts a connection that was closed early.
    pub(super) fn closed(&self, reason: &'static str) {
        self.closed.get_or_create(&Closed { reason }).inc();
    }
}

/// Registers a metric that is zero.
fn known<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    register(registry, name, help, M::default())
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
