//! The memory of observations: how many failed in a row, how long an absence lasts, and the backoff of calls without an
//! answer.

use core::time::Duration;

use super::findings::Findings;
use super::object::Object;
use super::results::{ExtraResult, ObservationResult};
use super::time::Time;
use crate::backoff::Backoff;
use crate::facts::Observed;

/// The longest wait between two calls of an application that does not answer, unless its usual wait is longer.
const LONGEST_SILENCE: Duration = Duration::from_mins(5);

/// The usual wait between two calls of an application that does not answer, if it has no interval of its own.
const USUAL_SILENCE: Duration = Duration::from_secs(30);

/// The backoff for an application that does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Silence {
    /// The number of calls in a row without an answer.
    pub(super) times: u32,
    pub(super) until: Option<Time>,
}

impl Silence {
    /// Returns whether the application answered the last call.
    fn is_none(self) -> bool {
        self.times == 0
    }

    /// Returns how long the application is not called; none if it may be called.
    fn left(self, now: Time) -> Option<Duration> {
        let left = self.until?.left(now);
        (!left.is_zero()).then_some(left)
    }

    /// Notes a call without an answer: the next call comes after `usual`, and later ones after longer and longer waits.
    fn lasts(&mut self, usual: Duration, seed: u64, now: Time) {
        self.times = self.times.saturating_add(1);
        let wait = Backoff::new(usual, usual.max(LONGEST_SILENCE)).wait(self.times, seed);
        self.until = Some(now.after(wait));
    }

    /// Ends the backoff: the application has answered, or is to be called at once.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }
}

/// The memory of the observations of an application.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ObservationMemory {
    /// The number of observations in a row that failed.
    pub(super) failed: u32,
    /// Since when every observation that succeeded has found no application.
    pub(super) absent_since: Option<Time>,
    /// Whether that absence has to last before it counts.
    pub(super) is_absence_open: bool,
    /// When an absence counts, if it does not yet.
    pub(super) absent_at: Option<Time>,
    /// The backoff for observations.
    pub(super) silence: Silence,
    /// The backoff for the application's own fields of the status.
    pub(super) extra_silence: Silence,
}

impl ObservationMemory {
    /// Returns whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            failed,
            absent_since,
            // They are set only with the other.
            is_absence_open: _,
            absent_at: _,
            silence,
            extra_silence,
        } = self;
        *failed == 0 && absent_since.is_none() && silence.is_none() && extra_silence.is_none()
    }

    /// Takes over an absence that an earlier process has recorded.
    pub(super) fn recall(&mut self, object: &Object, now: Time) {
        if let (None, Some(absent)) = (self.absent_since, object.absent) {
            self.absent_since = Some(now.before(absent));
            self.is_absence_open = true;
        }
    }

    /// Takes the result of an observation; returns it as it counts.
    pub(super) fn take(
        &mut self,
        result: ObservationResult,
        findings: &Findings,
        now: Time,
    ) -> Observed {
        let object = &findings.object;
        if result == ObservationResult::Silent {
            let failures = self.failed;
            return Observed::Unreachable { failures };
        }
        if result == ObservationResult::TimedOut {
            self.silence.lasts(usual_silence(object), object.seed, now);
        } else {
            self.silence.end();
        }
        self.absent_at = None;
        let failures = core::mem::take(&mut self.failed).saturating_add(1);
        let observed = match result {
            // These do not show whether there is an application.
            ObservationResult::Failed => {
                self.failed = failures;
                return Observed::Failed { failures };
            }
            ObservationResult::Unreachable
            | ObservationResult::TimedOut
            | ObservationResult::Silent => {
                self.failed = failures;
                return Observed::Unreachable { failures };
            }
            ObservationResult::Absent { tolerance } => {
                // An application may begin anew in the state that the object has entered.
                let since_read = findings.read_at.elapsed(now);
                let in_state = object.in_state.saturating_add(since_read);
                return self.count_absence(tolerance, in_state, now);
            }
            ObservationResult::Unobserved { .. } => Observed::Unobserved,
            ObservationResult::In(state) => Observed::In(state),
            ObservationResult::Unforeseen => Observed::Unforeseen,
        };
        self.absent_since = None;
        self.is_absence_open = false;
        observed
    }

    /// Returns how long observations have found no application although that does not count yet.
    pub(super) fn absent_for(&self, now: Time) -> Option<Duration> {
        let since = self.absent_since.filter(|_| self.is_absence_open)?;
        Some(since.elapsed(now))
    }

    /// Returns whether the application did not answer the last call.
    pub(super) fn is_silent(&self) -> bool {
        !self.silence.is_none() || !self.extra_silence.is_none()
    }

    fn count_absence(&mut self, tolerance: Duration, in_state: Duration, now: Time) -> Observed {
        let since = *self.absent_since.get_or_insert(now);
        let left = tolerance.saturating_sub(since.elapsed(now).min(in_state));
        self.is_absence_open = !left.is_zero();
        if left.is_zero() {
            return Observed::Absent;
        }
        self.absent_at = Some(now.after(left));
        Observed::Unobserved
    }

    /// Returns the time until the application is observed again although nothing happened, if it is usually this one.
    pub(super) fn observe_after(&self, usual: Duration, now: Time) -> Duration {
        // The application is not called before its backoff ends.
        let silence = self.silence.left(now).unwrap_or_default();
        let absence = self.absent_at.map(|at| at.left(now));
        usual.min(absence.unwrap_or(usual)).max(silence)
    }

    pub(super) fn may_call(&self, now: Time) -> bool {
        self.silence.left(now).is_none()
    }

    pub(super) fn may_ask_extra(&self, now: Time) -> bool {
        self.extra_silence.left(now).is_none()
    }

    pub(super) fn note_extra(&mut self, result: ExtraResult, seed: u64, now: Time) {
        match result {
            ExtraResult::NotAsked => {}
            ExtraResult::Answered => self.extra_silence.end(),
            ExtraResult::TimedOut => self.extra_silence.lasts(USUAL_SILENCE, seed, now),
        }
    }
}

/// Returns the first wait between two calls of an application that does not answer.
fn usual_silence(object: &Object) -> Duration {
    if object.recorded.at().is_some() && !object.observe_every.is_zero() {
        object.observe_every
    } else {
        USUAL_SILENCE
    }
}
