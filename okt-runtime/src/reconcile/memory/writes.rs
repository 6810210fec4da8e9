//! The operator's own writes to an object: the last that succeeded, and those that failed since.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::backoff::Backoff;
use okt_core::record::Recorded;
use tokio::time::Instant;

use crate::clock::after;
use crate::telemetry::event::Occurrence;
use crate::wire::annotations;

/// The shortest time between two writes that are no transition.
const SIDE_WRITES: Duration = Duration::from_secs(10);

/// The last write that succeeded: all that is remembered of an object at rest.
#[derive(Default)]
pub(crate) struct LastWrite {
    /// The version of the object that it created.
    pub(crate) version: Option<String>,
    /// When a status was last written.
    pub(crate) at: Option<Instant>,
    /// Whether the findings of the last run of the pass are reported at that version.
    pub(crate) reported: bool,
}

impl LastWrite {
    /// Returns whether the last write is newer than a version.
    ///
    /// Versions compare as numbers (official since Kubernetes 1.35). With a version that is no number the answer is no.
    pub(crate) fn is_newer_than(&self, version: Option<&str>) -> bool {
        let (Some(seen), Some(version)) = (self.version.as_deref(), version) else {
            return false;
        };
        match (seen.parse::<u128>(), version.parse::<u128>()) {
            (Ok(seen), Ok(version)) => version < seen,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// Returns whether the last write created a version, or is newer.
    pub(crate) fn is_at_least(&self, version: Option<&str>) -> bool {
        self.version.is_some()
            && (self.version.as_deref() == version || self.is_newer_than(version))
    }

    /// Returns how long until a write that is no transition is allowed.
    pub(crate) fn side_wait(&self) -> Duration {
        side_wait(self.at)
    }
}

/// Whether a retry alone helps a write that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailedWrite {
    Retried,
    /// A person has to change something: a schema, a role, the object.
    Refused,
}

/// The memory of writes, in addition to the last that succeeded.
#[derive(Default)]
pub(crate) struct Writes {
    /// The writes that failed in a row.
    pub(crate) trouble: Trouble,
    /// Whether a write has failed in this reconciliation, and how.
    pub(crate) failed: Option<FailedWrite>,
    /// The object in the answer to the last write: the watch delivers the same object.
    pub(crate) answer: Option<Arc<dyn Any + Send + Sync>>,
    /// Since when the cache has only had versions that are older than the last write.
    pub(crate) behind: Option<Instant>,
    /// The version of the object at which a write has changed nothing, and a hash of the written status.
    pub(crate) vain: Option<Box<(Option<String>, u64)>>,
    /// The error that was last reported of an object that does not decode, and the generation.
    pub(crate) unreadable: Option<Box<(String, Option<i64>)>>,
    /// The record of a write whose answer was lost, and what it tells if it was carried out.
    pub(crate) unanswered: Option<Box<(Recorded, DraftNews)>>,
    /// When what others left in the status was last removed.
    pub(crate) tidied: Option<Instant>,
    /// Whether the finalizer is dropped: later events of the object mean nothing.
    pub(crate) released: bool,
}

/// What a write tells when it has succeeded.
pub(crate) struct DraftNews {
    pub(crate) happened: Vec<Occurrence>,
    /// Whether it is a transition.
    #[cfg(feature = "otel")]
    pub(crate) is_move: bool,
    /// The generation of the last transition before.
    #[cfg(feature = "otel")]
    pub(crate) before: Option<i64>,
}

impl Writes {
    /// Returns whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            trouble,
            // It is of one reconciliation.
            failed: _,
            // It can be decoded again.
            answer: _,
            behind,
            vain,
            unreadable,
            unanswered,
            tidied: _,
            released,
        } = self;
        trouble.is_none()
            && behind.is_none()
            && vain.is_none()
            && unreadable.is_none()
            && unanswered.is_none()
            && !released
            && self.may_tidy()
    }

    /// Takes the object at this version, if the operator's last write created it.
    pub(crate) fn take_answer<K: Resource + Send + Sync + 'static>(
        &mut self,
        version: Option<&str>,
    ) -> Option<Arc<K>> {
        let object = self.answer.take()?.downcast::<K>().ok()?;
        (version.is_some() && object.meta().resource_version.as_deref() == version)
            .then_some(object)
    }

    /// Returns whether what others left in the status may be removed now. It is limited, because they may add it again.
    pub(crate) fn may_tidy(&self) -> bool {
        side_wait(self.tidied).is_zero()
    }
}

fn side_wait(since: Option<Instant>) -> Duration {
    let since = since.map_or(SIDE_WRITES, |at| at.elapsed());
    SIDE_WRITES.saturating_sub(since)
}

/// Writes of one object that failed in a row, and how long the next one waits.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    times: u32,
    since: Option<Instant>,
    wait: Option<(Instant, Scope)>,
    /// Whether a retry does not help.
    refused: bool,
    /// The reason and message to report.
    to_report: Option<Box<(&'static str, String)>>,
    /// The version of the object that was to get the report last.
    reported: Option<String>,
    /// How often the report may still be written before the next failure.
    reports: u8,
}

/// What has to change for a retry before the backoff ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The version of the object: the write named one that was no longer the newest.
    Version(Option<String>),
    /// The request of the user.
    Request {
        generation: Option<i64>,
        paused: bool,
        abandoned: bool,
    },
}

impl Scope {
    /// Returns the scope of the version of an object.
    pub(crate) fn version(meta: &ObjectMeta) -> Self {
        Self::Version(meta.resource_version.clone())
    }

    /// Returns the scope of the user's request in an object.
    pub(crate) fn request(meta: &ObjectMeta) -> Self {
        Self::Request {
            generation: meta.generation,
            paused: annotations::is_paused(meta),
            abandoned: annotations::is_abandoned(meta),
        }
    }

    fn is_of(&self, meta: &ObjectMeta) -> bool {
        *self
            == match self {
                Self::Version(_) => Self::version(meta),
                Self::Request { .. } => Self::request(meta),
            }
    }
}

impl Trouble {
    /// From this number of failures in a row, over this time, the failures are reported.
    const LASTING: (u32, Duration) = (5, Duration::from_mins(1));

    /// Returns whether no write has failed.
    pub(crate) fn is_none(&self) -> bool {
        let Self {
            times,
            since: _,
            wait: _,
            refused: _,
            to_report,
            reported: _,
            reports: _,
        } = self;
        *times == 0 && to_report.is_none()
    }

    /// Returns how long the next write waits; none if it need not wait.
    pub(crate) fn wait(&self, meta: &ObjectMeta) -> Option<Duration> {
        let (until, scope) = self.wait.as_ref()?;
        let left = until.saturating_duration_since(Instant::now());
        (scope.is_of(meta) && !left.is_zero()).then_some(left)
    }

    /// Returns whether a retry of the last failed write does not help.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Notes a failed write; returns how long the next one waits.
    pub(crate) fn failed(
        &mut self,
        scope: Scope,
        refused: bool,
        backoff: Backoff,
        seed: u64,
    ) -> Duration {
        self.times = self.times.saturating_add(1);
        self.since.get_or_insert_with(Instant::now);
        let wait = backoff.wait(self.times, seed);
        self.wait = Some((after(wait), scope));
        self.refused = refused;
        wait
    }

    /// Sets what to report; none as long as the writes may succeed soon.
    pub(crate) fn tell(&mut self, report: Option<(&'static str, String)>) {
        self.to_report = report.map(Box::new);
        self.reported = None;
        // The failed write may have been stored in part, without the report that the object had: it gets the report
        // again once that is seen.
        self.reports = 2;
    }

    /// Returns whether this version of the object is still to get the report.
    pub(crate) fn is_unshown(&self, meta: &ObjectMeta) -> bool {
        self.to_report.is_some() && self.reports > 0 && self.reported != meta.resource_version
    }

    /// Returns what the object is to say; the report counts as written until [`shows`](Self::shows) says otherwise.
    pub(crate) fn report(&mut self) -> Option<(&'static str, String)> {
        self.reports = self.reports.saturating_sub(1);
        self.to_report.as_deref().cloned()
    }

    /// Notes that this version of the object says it; none if it could not be written.
    pub(crate) fn shows(&mut self, meta: Option<&ObjectMeta>) {
        match meta {
            Some(meta) => self.reported.clone_from(&meta.resource_version),
            None => self.reports = 0,
        }
    }

    /// Returns whether writes have failed so often and for so long that it has to be reported.
    pub(crate) fn lasts(&self) -> bool {
        let (times, time) = Self::LASTING;
        self.times >= times && self.since.is_some_and(|since| since.elapsed() >= time)
    }
}
