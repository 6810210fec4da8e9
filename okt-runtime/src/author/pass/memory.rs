//! What is remembered of walks from turn to turn: how long the next one waits; all of it may be lost at any time.

use std::time::Duration;

use okt_core::conditions::Condition;
use okt_core::pass::Outcome;
use okt_core::reconcile::RunEnd;
use tokio::time::Instant;

use super::FinishedRun;
use crate::clock::after;
use crate::failure::Failure;
use crate::resources::Pace;

/// The shortest time between two walks that a step may ask for.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long until the next walk where something is left to do and nothing says when.
const UNDONE: Duration = Duration::from_mins(1);

/// What is remembered of an object's walks.
#[derive(Debug, Default)]
pub(crate) struct PassMemory {
    /// Runs in a row that failed, or asked for growing waits.
    failures: u32,
    /// Until when the next one waits, and for which generation.
    waits: Option<(Instant, i64)>,
    /// When the next one is due.
    due: Option<Instant>,
    /// What the last one has found is not written yet.
    pub(crate) is_unreported: bool,
    /// What the one that failed has left in the way of work, and what its states say.
    pub(crate) held: Option<(Failure, Vec<Condition>)>,
    /// How the last one ended.
    pub(crate) last: Option<RunEnd>,
}

impl PassMemory {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            failures,
            waits,
            due,
            is_unreported,
            // Nothing without a wait.
            held: _,
            last: _,
        } = self;
        *failures == 0 && waits.is_none() && due.is_none() && !is_unreported
    }

    /// How long a failure still waits; not at all once the spec has changed.
    pub(crate) fn wait(&self, generation: i64) -> Option<Duration> {
        let (until, failed) = self.waits?;
        let left = until.saturating_duration_since(Instant::now());
        (failed == generation && !left.is_zero()).then_some(left)
    }

    /// How long until the next walk is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Takes what a walk has come to: how it ended, and when the next one is due.
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
            Outcome::Failed(_) => (true, false),
            Outcome::Waits { growing, .. } => (growing, false),
            Outcome::GaveUp { .. } => (false, true),
            Outcome::Complete | Outcome::Short { .. } => (false, false),
        };
        let requeue_after = if growing {
            // What unrelated events bring about early counts as the same attempt.
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
        // Whoever gives up wants to be left alone, but an object that is being deleted must not be forgotten.
        let is_left = finished.in_the_way().is_some() && (deleting || !gave_up);
        let soonest = (times.into_iter().flatten().min()).or(is_left.then_some(UNDONE));
        // One of nothing would spin.
        self.due = soonest.map(|soonest| after(soonest.max(SHORTEST)));
        end
    }
}
