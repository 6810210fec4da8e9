//! The memory of the operator's own writes to an object: the last that succeeded, and those that failed since.

use core::time::Duration;

use super::facts::{Setup, StatusDiff, WriteFacts};
use super::findings::Findings;
use super::object::{Object, Readable, Version};
use super::results::{Retry, WriteError};
use super::time::Time;

/// The shortest time between two writes that are no transition.
const SIDE_WRITES: Duration = Duration::from_secs(10);

/// From this number of failures in a row, over this time, the failures are reported.
const LASTING: (u32, Duration) = (5, Duration::from_mins(1));

/// How often the report of a failure may be written before the next failure.
///
/// The failed write may have been stored in part, without the report that the object had: it gets the report again once
/// that is seen.
const REPORTS: u8 = 2;

/// The last write that succeeded: all that is remembered of an object at rest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LastWrite {
    /// The version of the object that it created.
    pub version: Option<Version>,
    /// When a status was last written.
    pub at: Option<Time>,
    /// Whether the findings of the last run of the pass are reported at that version.
    pub reported: bool,
}

impl LastWrite {
    /// Returns whether the last write is newer than a version; no, if that is not known.
    pub fn is_newer_than(&self, version: Option<Version>) -> bool {
        let versions = version.zip(self.version);
        versions.is_some_and(|(version, last)| version.is_older_than(last))
    }

    /// Returns whether the last write created a version, or is newer.
    pub fn is_at_least(&self, version: Option<Version>) -> bool {
        self.version.is_some() && (self.version == version || self.is_newer_than(version))
    }
}

/// What has to stay the same for a failed write to wait until its backoff ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Scope {
    /// The version of the object: the write named one that was no longer the newest.
    Version(Option<Version>),
    /// The request of the user.
    Request {
        generation: i64,
        paused: bool,
        abandoned: bool,
    },
    /// Nothing: the server asked for the wait.
    Server,
}

impl Scope {
    fn of(error: WriteError, object: &Object) -> Self {
        match error {
            // The newer version that caused the conflict comes as an event.
            WriteError::Conflict => Self::Version(object.version),
            WriteError::Busy(_) => Self::Server,
            WriteError::Refused | WriteError::Failed => Self::Request {
                generation: object.generation,
                paused: object.paused,
                abandoned: object.abandoned,
            },
        }
    }

    fn is_of(self, object: &Object) -> bool {
        match self {
            Self::Version(_) => self == Self::of(WriteError::Conflict, object),
            Self::Request { .. } => self == Self::of(WriteError::Failed, object),
            Self::Server => true,
        }
    }
}

/// Writes of one object that failed in a row, and how long the next one waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Trouble {
    pub(super) times: u32,
    pub(super) since: Option<Time>,
    pub(super) wait: Option<(Time, Scope)>,
    /// Whether a retry does not help.
    pub(super) refused: bool,
    /// Whether it is to be reported.
    pub(super) is_reported: bool,
    /// The version of the object that was to get the report last.
    pub(super) reported_at: Option<Version>,
    /// How often the report may still be written before the next failure.
    pub(super) reports: u8,
}

impl Trouble {
    /// Returns how long the next write waits; none if it need not wait.
    fn wait(&self, object: &Object, now: Time) -> Option<Duration> {
        let (until, scope) = self.wait?;
        let left = until.left(now);
        (scope.is_of(object) && !left.is_zero()).then_some(left)
    }

    /// Notes that the report of the failure that waits could not be written: it is not tried again before the next failure.
    /// None if no failure waits.
    pub(super) fn not_shown(&mut self, object: &Object, now: Time) -> Option<Retry> {
        let wait = self.wait(object, now)?;
        self.reports = 0;
        Some(Retry {
            wait,
            is_reported: true,
        })
    }

    /// Returns whether this version of the object is still to get the report.
    fn is_unshown(&self, object: &Object) -> bool {
        self.is_reported && self.reports > 0 && self.reported_at != object.version
    }

    /// Notes a failed write.
    pub(super) fn failed(
        &mut self,
        error: WriteError,
        object: &Object,
        setup: &Setup<'_>,
        now: Time,
    ) -> Retry {
        self.times = self.times.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let wait = setup.backoff.wait(self.times, object.seed);
        let wait = match error {
            WriteError::Busy(asked) => wait.max(asked),
            WriteError::Conflict | WriteError::Refused | WriteError::Failed => wait,
        };
        self.wait = Some((now.after(wait), Scope::of(error, object)));
        self.refused = error == WriteError::Refused;
        let (times, time) = LASTING;
        let lasts = self.times >= times && since.elapsed(now) >= time;
        self.is_reported = self.refused || lasts;
        (self.reported_at, self.reports) = (None, REPORTS);
        Retry {
            wait,
            is_reported: self.is_reported,
        }
    }
}

/// The status that a write did not change, although it differs from the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct VainWrite {
    /// The version of the object.
    pub(super) version: Option<Version>,
    /// A hash of the written status.
    pub(super) status: u64,
    /// Others left something in the status that may be removed from this time on: then the write is repeated.
    pub(super) until: Option<Time>,
}

/// The memory of writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Writes {
    /// The last write that succeeded.
    pub(super) last: LastWrite,
    /// The writes that failed in a row.
    pub(super) trouble: Trouble,
    /// Since when the cache has only had versions that are older than the last write.
    pub(super) behind_since: Option<Time>,
    /// A write that changed nothing.
    pub(super) vain: Option<VainWrite>,
    /// The error that was last reported of an object that does not decode, and the generation.
    pub(super) unreadable: Option<(u64, i64)>,
    /// When what others left in the status was last removed.
    pub(super) leftovers_removed: Option<Time>,
    /// Whether the finalizer is dropped: later events of the object mean nothing.
    pub(super) released: bool,
}

impl Writes {
    /// Returns whether only the last write is worth remembering.
    pub(super) fn is_empty(&self, now: Time) -> bool {
        let Self {
            last: _,
            trouble,
            behind_since,
            vain,
            unreadable,
            leftovers_removed: _,
            released,
        } = self;
        trouble.times == 0
            && behind_since.is_none()
            && vain.is_none()
            && unreadable.is_none()
            && !released
            && self.leftovers_wait(now).is_none()
    }

    pub(super) fn end_trouble(&mut self) {
        self.trouble = Trouble::default();
    }

    pub(super) fn facts(&self, findings: &Findings, now: Time) -> WriteFacts {
        let object = &findings.object;
        let trouble = &self.trouble;
        let error = match object.readable {
            Readable::Yes => None,
            Readable::No { error, .. } => Some((error, object.generation)),
        };
        WriteFacts {
            behind: self.last.is_newer_than(object.version),
            wait: trouble.wait(object, now),
            // An object that does not decode has no status that could report it.
            unshown: error.is_none() && trouble.is_unshown(object),
            refused: trouble.refused,
            is_unreadable_shown: error.is_some() && self.unreadable == error,
            leftovers: findings.leftovers,
            written: findings.written,
            draft: findings.draft,
            side_wait: self.side_wait(now),
            vain_wait: self
                .vain
                .filter(|vain| vain.version == object.version)
                .and_then(|vain| Some(vain.until?.left(now))),
        }
    }

    /// Returns how a difference between a rendered status and the stored one counts.
    pub(super) fn judge(
        &self,
        diff: StatusDiff,
        version: Option<Version>,
        hash: impl Fn() -> u64,
        now: Time,
    ) -> StatusDiff {
        let lasts = |vain: &VainWrite| vain.until.is_none_or(|until| now < until);
        let vain = self
            .vain
            .filter(|vain| vain.version == version && lasts(vain));
        match diff {
            StatusDiff::Side | StatusDiff::Main if vain.is_some_and(|it| it.status == hash()) => {
                StatusDiff::Vain
            }
            diff => diff,
        }
    }

    /// Takes the answer to the write of a status to this version. Returns whether what others left in it is to be removed
    /// now.
    pub(super) fn committed(
        &mut self,
        before: Option<Version>,
        after: Option<Version>,
        leftovers: bool,
        hash: impl Fn() -> u64,
        now: Time,
    ) -> bool {
        let wait = self.leftovers_wait(now).filter(|_| leftovers);
        // A write that changes nothing although something differs is not repeated on the same version. Neither is one
        // that cannot make the status what it should be as long as the leftovers stay.
        self.vain = (after == before || wait.is_some()).then(|| VainWrite {
            version: after,
            status: hash(),
            // Also where they may be removed at once: the reconciliation may end before that.
            until: leftovers.then_some(wait.unwrap_or(now)),
        });
        self.last.at = Some(now);
        self.trouble = Trouble::default();
        leftovers && wait.is_none()
    }

    /// Notes an attempt to remove what others left in the status.
    pub(super) fn leftovers_tried(&mut self, has_failed: bool, now: Time) {
        self.leftovers_removed = Some(now);
        if has_failed && let Some(vain) = &mut self.vain {
            // The same write is repeated then.
            vain.until = Some(now.after(SIDE_WRITES));
        }
    }

    /// Returns how long until a write that is no transition is allowed.
    fn side_wait(&self, now: Time) -> Duration {
        let since = self.last.at.map_or(SIDE_WRITES, |at| at.elapsed(now));
        SIDE_WRITES.saturating_sub(since)
    }

    /// Returns until when what others left in the status stays; none if it may be removed now. It is limited, because
    /// they may add it again.
    fn leftovers_wait(&self, now: Time) -> Option<Time> {
        let until = self.leftovers_removed?.after(SIDE_WRITES);
        (now < until).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_changed_nothing_is_repeated_until_what_others_left_is_removed() {
        let mut writes = Writes::default();
        let (version, now) = (Some(Version::Number(7)), Time::default());
        let judged = |writes: &Writes| writes.judge(StatusDiff::Main, version, || 1, now);
        assert!(!writes.committed(version, version, false, || 1, now));
        assert_eq!(judged(&writes), StatusDiff::Vain);
        assert!(writes.committed(version, version, true, || 1, now));
        // The reconciliation ends before it removes them: the next one has to come here again.
        assert_eq!(judged(&writes), StatusDiff::Main);
    }
}
