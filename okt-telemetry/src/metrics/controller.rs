//! The reconciliations and the work queue of each operator, under the names and with the buckets of controller-runtime
//! 0.25 (`pkg/internal/controller/metrics`, `pkg/internal/metrics/workqueue.go`).

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The buckets of `controller_runtime_reconcile_time_seconds`, in seconds.
const RECONCILE_TIME: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The labels of a reconciliation.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Of {
    controller: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct WithResult {
    controller: String,
    result: &'static str,
}

/// The labels of a work queue; both have the name of the controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfQueue {
    name: String,
    controller: String,
}

/// How a reconciliation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reconciled {
    /// Nothing is left to do.
    Success,
    /// It is repeated at once.
    Requeue,
    /// It is repeated later.
    RequeueAfter,
    /// A retry follows.
    Error,
    /// A retry does not help.
    TerminalError,
    /// The code of the author has panicked.
    Panic,
}

/// The metrics of all operators.
#[derive(Clone)]
pub(crate) struct Controllers {
    results: Family<WithResult, Counter>,
    errors: Family<Of, Counter>,
    terminal_errors: Family<Of, Counter>,
    panics: Family<Of, Counter>,
    time: Family<Of, Histogram, fn() -> Histogram>,
    workers: Family<Of, Gauge>,
    adds: Family<OfQueue, Counter>,
    retries: Family<OfQueue, Counter>,
    waited: Family<OfQueue, Histogram, fn() -> Histogram>,
    worked: Family<OfQueue, Histogram, fn() -> Histogram>,
}

impl Controllers {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let of_reconcile: fn() -> Histogram = || Histogram::new(RECONCILE_TIME);
        let of_queue: fn() -> Histogram = || Histogram::new(exponential_buckets(10e-9, 10.0, 12));
        let all = Self {
            results: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            time: Family::new_with_constructor(of_reconcile),
            workers: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: Family::new_with_constructor(of_queue),
            worked: Family::new_with_constructor(of_queue),
        };
        registry.register(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            all.results.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Total number of reconciliation errors per controller",
            all.errors.clone(),
        );
        registry.register(
            "controller_runtime_terminal_reconcile_errors",
            "Total number of terminal reconciliation errors per controller",
            all.terminal_errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Total number of reconciliation panics per controller",
            all.panics.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            all.time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            all.workers.clone(),
        );
        registry.register(
            "workqueue_adds",
            "Total number of adds handled by workqueue",
            all.adds.clone(),
        );
        registry.register(
            "workqueue_retries",
            "Total number of items added to the workqueue with a delay",
            all.retries.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            all.waited.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes",
            all.worked.clone(),
        );
        all
    }

    /// Returns the metrics of the controller of this name, which reconciles so many objects at the same time.
    pub(crate) fn of(&self, name: &str, workers: usize) -> Controller {
        let of = Of {
            controller: name.to_owned(),
        };
        let of_queue = OfQueue {
            name: name.to_owned(),
            controller: name.to_owned(),
        };
        let result = |result| {
            self.results.get_or_create_owned(&WithResult {
                controller: name.to_owned(),
                result,
            })
        };
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        self.workers.get_or_create(&of).set(workers);
        Controller {
            success: result("success"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.errors.get_or_create_owned(&of),
            terminal_errors: self.terminal_errors.get_or_create_owned(&of),
            panics: self.panics.get_or_create_owned(&of),
            time: self.time.get_or_create_owned(&of),
            adds: self.adds.get_or_create_owned(&of_queue),
            retries: self.retries.get_or_create_owned(&of_queue),
            waited: self.waited.get_or_create_owned(&of_queue),
            worked: self.worked.get_or_create_owned(&of_queue),
        }
    }
}

/// The metrics of one operator; counting allocates nothing.
pub struct Controller {
    success: Counter,
    requeue: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    time: Histogram,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
}

impl Controller {
    /// Counts a reconciliation.
    pub fn reconciled(&self, reconciled: Reconciled, time: Duration) {
        self.time.observe(time.as_secs_f64());
        self.worked.observe(time.as_secs_f64());
        let result = match reconciled {
            Reconciled::Success => &self.success,
            Reconciled::Requeue => &self.requeue,
            Reconciled::RequeueAfter => &self.requeue_after,
            Reconciled::Error | Reconciled::TerminalError | Reconciled::Panic => {
                self.errors.inc();
                &self.error
            }
        };
        result.inc();
        match reconciled {
            Reconciled::TerminalError => drop(self.terminal_errors.inc()),
            Reconciled::Panic => drop(self.panics.inc()),
            Reconciled::Requeue | Reconciled::RequeueAfter | Reconciled::Error => {
                self.retries.inc();
            }
            Reconciled::Success => {}
        }
    }

    /// Counts an object that became due.
    pub fn added(&self) {
        self.adds.inc();
    }

    /// Counts how long an object waited in the queue.
    pub fn taken(&self, waited: Duration) {
        self.waited.observe(waited.as_secs_f64());
    }
}
