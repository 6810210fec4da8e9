//! The memory of pass runs between reconciliations: how long the next run waits. It may be lost at any time.

use std::time::Duration;

use okt_core::conditions::Condition;
use okt_core::pass::PassOutcome;
use okt_core::reconcile::RunEnd;
use tokio::time::Instant;

use super::FinishedRun;
use crate::clock::after;
use crate::failure::Failure;
use crate::resources::Pace;

/// The shortest time between two pass runs that a step may ask for.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long until the next run if something is left to do and no other time is known.
const UNDONE: Duration = Duration::from_mins(1);

/// The memory of the pass runs of an object.
#[derive(Debug, Default)]
pub(crate) struct PassMemory {
    /// Runs in a row that failed, or asked for growing waits.
    failures: u32,
    /// Until when the next run waits, and for which generation.
    waits: Option<(Instant, i64)>,
    /// When the next run is due.
    due: Option<Instant>,
    /// Whether the findings of the last run are not written yet.
    pub(crate) is_unreported: bool,
    /// Why the last run keeps work from beginning, and the conditions of its states.
    pub(crate) held: Option<(Failure, Vec<Condition>)>,
    /// How the last run ended.
    pub(crate) last: Option<RunEnd>,
}

impl PassMemory {
    /// Returns whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            failures,
            waits,
            due,
            is_unreported,
            // It means nothing without a wait.
            held: _,
            last: _,
        } = self;
        *failures == 0 && waits.is_none() && due.is_none() && !is_unreported
    }

    /// Returns how long the backoff still lasts; none once the spec has changed.
    pub(crate) fn wait(&self, generation: i64) -> Option<Duration> {
        let (until, failed) = self.waits?;
        let left = until.saturating_duration_since(Instant::now());
        (failed == generation && !left.is_zero()).then_some(left)
    }

    /// Returns how long until the next run is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Takes over the outcome of a run: how it ended, and when the next one is due.
    pub(crate) fn take(
        &mut self,
        finished: &FinishedRun,
        generation: i64,
        pace: &Pace,
        deleting: bool,
    ) -> RunEnd {
        if self.waits.is_some_and(|(_, failed)| failed != generation) {
            self.failures = 0;
        }
        let outcome = finished.run.outcome();
        let end = RunEnd::from(&outcome);
        self.last = Some(end);
        let (growing, gave_up) = match outcome {
            PassOutcome::Failed(_) => (true, false),
            PassOutcome::Waits { growing, .. } => (growing, false),
            PassOutcome::GaveUp { .. } => (false, true),
            PassOutcome::Complete | PassOutcome::Short { .. } => (false, false),
        };
        let requeue_after = if growing {
            // A run that an unrelated event causes early counts as the same attempt.
            if self.wait(generation).is_none() {
                self.failures = self.failures.saturating_add(1);
                let wait = pace.backoff.wait(self.failures, pace.seed);
                self.waits = Some((after(wait), generation));
            }
            self.wait(generation)
        } else {
            self.failures = 0;
            self.waits = None;
            self.held = None;
            None
        };
        let asked = finished.run.results().requeue_after.filter(|_| !gave_up);
        let times = [requeue_after, asked, finished.due];
        // After giving up the pass is not requeued, but an object that is being deleted must not be forgotten.
        let is_left = finished.in_the_way().is_some() && (deleting || !gave_up);
        let soonest = (times.into_iter().flatten().min()).or(is_left.then_some(UNDONE));
        // A wait of zero would spin.
        self.due = soonest.map(|soonest| after(soonest.max(SHORTEST)));
        end
    }
}
