//! The lifecycles of the objects (`okt_*`). The graph bounds the labels: states, edges, and reasons.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::{CounterWithExemplar, HistogramWithExemplars};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::event::Occurrence;
use crate::ids::Id;
use crate::operators::{NEW, OTHER, REASONS, UNKNOWN, is_own};

/// The buckets of times in a state and of actions, in seconds: from 0.1 s to a week.
const TIMES: [f64; 14] = [
    0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 259_200.0,
    604_800.0,
];

type Name = Arc<str>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfState {
    controller: Name,
    state: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfEdge {
    controller: Name,
    from: &'static str,
    to: &'static str,
    edge: &'static str,
    cause: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfResult {
    controller: Name,
    state: &'static str,
    result: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfReason {
    controller: Name,
    reason: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfWrite {
    controller: Name,
    kind: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfDelivery {
    controller: Name,
    result: &'static str,
}

/// The label of an exemplar: the trace that the sample belongs to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct InTrace {
    trace_id: Id<16>,
}

type Times<L> = Family<L, HistogramWithExemplars<InTrace>, fn() -> HistogramWithExemplars<InTrace>>;

/// The metrics of the lifecycles of all operators.
#[derive(Clone)]
pub(crate) struct Lifecycles {
    transitions: Family<OfEdge, CounterWithExemplar<InTrace>>,
    in_state: Times<OfState>,
    attempts: Family<OfResult, Counter>,
    actions: Times<OfState>,
    running: Family<OfState, Gauge>,
    retries: Family<OfState, Counter>,
    troubles: Family<OfReason, Counter>,
    writes: Family<OfWrite, Counter>,
    deliveries: Family<OfDelivery, Counter>,
}

impl Lifecycles {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let times: fn() -> HistogramWithExemplars<InTrace> =
            || HistogramWithExemplars::new(TIMES.into_iter());
        let all = Self {
            transitions: Family::default(),
            in_state: Family::new_with_constructor(times),
            attempts: Family::default(),
            actions: Family::new_with_constructor(times),
            running: Family::default(),
            retries: Family::default(),
            troubles: Family::default(),
            writes: Family::default(),
            deliveries: Family::default(),
        };
        registry.register(
            "okt_transitions",
            "Transitions by edge (entry, child, trigger, jump, reentry) and cause",
            all.transitions.clone(),
        );
        registry.register(
            "okt_state_duration_seconds",
            "How long objects were in a state when they left it",
            all.in_state.clone(),
        );
        registry.register(
            "okt_action_attempts",
            "Attempts of actions that have ended, by result",
            all.attempts.clone(),
        );
        registry.register(
            "okt_action_duration_seconds",
            "How long attempts of actions took",
            all.actions.clone(),
        );
        registry.register(
            "okt_actions_running",
            "Attempts of actions that run in this process",
            all.running.clone(),
        );
        registry.register(
            "okt_action_retries",
            "Attempts of actions that failed and are retried",
            all.retries.clone(),
        );
        registry.register(
            "okt_troubles",
            "Troubles that the status of an object reported newly, by reason",
            all.troubles.clone(),
        );
        registry.register(
            "okt_writes",
            "Writes of objects: status, finalizer",
            all.writes.clone(),
        );
        registry.register(
            "okt_deliveries",
            "Transitions to be delivered (CloudEvents) by result: delivered, failed (a retry follows), refused, dropped",
            all.deliveries.clone(),
        );
        all
    }

    /// Returns the metrics of the operator of this name.
    pub(crate) fn of(&self, controller: &str, states: Vec<&'static str>) -> LifecycleMetrics {
        let controller: Name = controller.into();
        let of = |state| OfState {
            controller: Arc::clone(&controller),
            state,
        };
        let running = states
            .iter()
            .map(|state| self.running.get_or_create_owned(&of(*state)))
            .collect();
        LifecycleMetrics {
            all: self.clone(),
            controller,
            states,
            running,
            reasons: Mutex::default(),
        }
    }
}

/// The metrics of the lifecycle of one operator.
pub struct LifecycleMetrics {
    all: Lifecycles,
    controller: Name,
    /// The names of the states, in the order of the graph.
    states: Vec<&'static str>,
    /// The running attempts of each state.
    running: Vec<Gauge>,
    /// The reasons that have a series.
    reasons: Mutex<BTreeSet<String>>,
}

/// Counts an attempt as running until it is dropped.
pub struct RunningAttempt(Option<Gauge>);

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.dec();
        }
    }
}

impl LifecycleMetrics {
    /// Counts what happened; `trace` returns the trace that it belongs to.
    pub(crate) fn record(&self, occurrence: &Occurrence, trace: impl Fn() -> Id<16>) {
        let in_trace = || InTrace { trace_id: trace() };
        match occurrence {
            Occurrence::Transition {
                transition,
                edge,
                cause,
                time_in_state,
                ..
            } => {
                let from = if transition.from.is_empty() {
                    NEW
                } else {
                    self.state(&transition.from)
                };
                let labels = OfEdge {
                    controller: Arc::clone(&self.controller),
                    from,
                    to: self.state(&transition.to),
                    edge: edge.as_str(),
                    cause: cause.as_str(),
                };
                let trace = Some(in_trace());
                self.all
                    .transitions
                    .get_or_create(&labels)
                    .inc_by(1, trace.clone(), None);
                if let Some(time) = time_in_state {
                    let left = self.all.in_state.get_or_create(&self.of(from));
                    left.observe(time.as_secs_f64(), trace, None);
                }
            }
            Occurrence::AttemptEnded {
                attempt,
                outcome,
                took,
            } => {
                let labels = OfResult {
                    controller: Arc::clone(&self.controller),
                    state: attempt.state,
                    result: outcome.as_str(),
                };
                self.all.attempts.get_or_create(&labels).inc();
                let took_all = self.all.actions.get_or_create(&self.of(attempt.state));
                took_all.observe(took.as_secs_f64(), Some(in_trace()), None);
            }
            Occurrence::AttemptScheduled { attempt, .. } => {
                let of = self.of(attempt.state);
                self.all.retries.get_or_create(&of).inc();
            }
            Occurrence::Trouble { reason, .. } => self.trouble(reason),
            Occurrence::AttemptStarted { .. }
            | Occurrence::Published(_)
            | Occurrence::Abandoned { .. } => {}
        }
    }

    /// Counts a write of an object.
    pub(crate) fn wrote(&self, kind: &'static str) {
        let labels = OfWrite {
            controller: Arc::clone(&self.controller),
            kind,
        };
        self.all.writes.get_or_create(&labels).inc();
    }

    /// Notes that the operator delivers: its counters begin at zero, so that the first loss is an increase.
    pub fn delivers(&self) {
        for result in ["delivered", "failed", "refused", "dropped"] {
            self.delivered(result, 0);
        }
    }

    /// Counts transitions by what became of their delivery.
    pub(crate) fn delivered(&self, result: &'static str, number: u64) {
        let labels = OfDelivery {
            controller: Arc::clone(&self.controller),
            result,
        };
        self.all.deliveries.get_or_create(&labels).inc_by(number);
    }

    /// Counts an attempt as running until the result is dropped.
    pub(crate) fn running(&self, state: &str) -> RunningAttempt {
        let index = self.states.iter().position(|it| *it == state);
        let running = index.and_then(|index| self.running.get(index)).cloned();
        if let Some(running) = &running {
            running.inc();
        }
        RunningAttempt(running)
    }

    fn trouble(&self, reason: &str) {
        let mut known = self.reasons.lock();
        let is_own = is_own(reason);
        let has_series = is_own || known.contains(reason) || known.len() < REASONS;
        let reason = if has_series { reason } else { OTHER };
        if has_series && !is_own {
            known.insert(reason.to_owned());
        }
        let labels = OfReason {
            controller: Arc::clone(&self.controller),
            reason: reason.to_owned(),
        };
        self.all.troubles.get_or_create(&labels).inc();
    }

    fn of(&self, state: &'static str) -> OfState {
        OfState {
            controller: Arc::clone(&self.controller),
            state,
        }
    }

    /// Returns the name of a state as a label. Names of the stored history may be those of another release.
    fn state(&self, name: &str) -> &'static str {
        let known = self.states.iter().find(|state| **state == name);
        known.copied().unwrap_or(UNKNOWN)
    }
}
