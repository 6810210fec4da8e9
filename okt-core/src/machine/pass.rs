//! The memory of pass runs: how the last one ended, and how long the next one waits.

use core::time::Duration;

use super::draft::RunEnd;
use super::facts::{Graphs, PassFacts, Setup};
use super::findings::Findings;
use super::results::PassReport;
use super::time::Time;
use super::writes::LastWrite;

/// The shortest time between two pass runs that a step may ask for.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long until the next run if something is left to do and no other time is known.
const UNDONE: Duration = Duration::from_mins(1);

/// The memory of the pass runs of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct PassMemory {
    /// Runs in a row that failed, or asked for growing waits.
    pub(super) failures: u32,
    /// Until when the next run waits, and for which generation.
    pub(super) waits: Option<(Time, i64)>,
    /// When the next run is due.
    pub(super) due: Option<Time>,
    /// Whether the findings of the last run are not written yet.
    pub(super) is_unreported: bool,
    /// How the last run ended.
    pub(super) last: Option<RunEnd>,
}

impl PassMemory {
    /// Returns whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            failures,
            waits,
            due,
            is_unreported,
            // It means nothing without a wait.
            last: _,
        } = self;
        *failures == 0 && waits.is_none() && due.is_none() && !is_unreported
    }

    pub(super) fn facts(
        &self,
        graphs: Graphs<'_>,
        last_write: &LastWrite,
        findings: &Findings,
        now: Time,
    ) -> PassFacts {
        let object = &findings.object;
        let is_alone = graphs.life.is_none();
        PassFacts {
            ran: findings.pass,
            last: self.last,
            backoff: self.wait(object.generation, now),
            due: self.due.map(|due| due.left(now)),
            named: findings.is_named || (is_alone && (self.is_unreported || object.is_pause_news)),
            changed: !last_write.reported || last_write.version != object.version,
        }
    }

    /// Returns how long the backoff still lasts; none once the spec has changed.
    fn wait(&self, generation: i64, now: Time) -> Option<Duration> {
        let (until, failed) = self.waits?;
        let left = until.left(now);
        (failed == generation && !left.is_zero()).then_some(left)
    }

    /// Takes over the report of a run: when the next one is due.
    pub(super) fn take(
        &mut self,
        report: &PassReport,
        leaving: bool,
        setup: &Setup<'_>,
        findings: &Findings,
        now: Time,
    ) {
        let (generation, seed) = (findings.object.generation, findings.object.seed);
        if self.waits.is_some_and(|(_, failed)| failed != generation) {
            self.failures = 0;
        }
        self.last = Some(report.end);
        // Without a lifecycle nothing else records that the run is still to be reported.
        self.is_unreported = setup.graphs.life.is_none();
        let gave_up = report.end == RunEnd::GaveUp;
        let backoff = if report.backs_off {
            // A run that an unrelated event causes early counts as the same attempt.
            if self.wait(generation, now).is_none() {
                self.failures = self.failures.saturating_add(1);
                let wait = setup.backoff.wait(self.failures, seed);
                self.waits = Some((now.after(wait), generation));
            }
            self.wait(generation, now)
        } else {
            self.failures = 0;
            self.waits = None;
            None
        };
        let asked = report.requeue_after.filter(|_| !gave_up);
        let times = [backoff, asked, report.due];
        // After giving up the pass is not requeued, but an object that is being deleted must not be forgotten.
        let is_left = report.is_in_the_way && (leaving || !gave_up);
        let requeue = times.into_iter().flatten().min();
        let soonest = requeue.or(is_left.then_some(UNDONE));
        // A wait of zero would spin.
        self.due = soonest.map(|soonest| now.after(soonest.max(SHORTEST)));
    }
}
