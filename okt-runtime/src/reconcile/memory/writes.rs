//! The operator's own writes to an object: the last that succeeded, and those that failed since.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::backoff::Backoff;
use tokio::time::Instant;

use crate::clock::after;
use crate::wire::annotations;

/// How often what is written beside transitions may be written by itself.
const SIDE_WRITES: Duration = Duration::from_secs(10);

/// The last write that succeeded: what is remembered of a settled object.
#[derive(Default)]
pub(crate) struct Seen {
    /// The version of the object that it made.
    pub(crate) version: Option<String>,
    /// When a status was written.
    pub(crate) at: Option<Instant>,
    /// At that version the findings of the last run of the pass are reported.
    pub(crate) reported: bool,
}

impl Seen {
    /// Whether a version is older than that of the last write.
    ///
    /// Versions compare as numbers (official since Kubernetes 1.35); others only for being the same.
    pub(crate) fn is_newer_than(&self, version: Option<&str>) -> bool {
        let (Some(seen), Some(version)) = (self.version.as_deref(), version) else {
            return false;
        };
        match (seen.parse::<u128>(), version.parse::<u128>()) {
            (Ok(seen), Ok(version)) => version < seen,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// How long until what is written at most every ten seconds may be written.
    pub(crate) fn side_wait(&self) -> Duration {
        side_wait(self.at)
    }
}

/// What is remembered of writes beside the last that succeeded.
#[derive(Default)]
pub(crate) struct Writes {
    /// Those that failed in a row.
    pub(crate) trouble: Trouble,
    /// The object as the last write's answer has it: the watch brings the same again.
    pub(crate) answer: Option<Arc<dyn Any + Send + Sync>>,
    /// Since when the cache has only had versions that are older than the last write.
    pub(crate) behind: Option<Instant>,
    /// The version of the object at which a write has changed nothing, and a hash of what it said.
    pub(crate) vain: Option<Box<(Option<String>, u64)>>,
    /// What was last reported of an object that does not decode, and of which generation.
    pub(crate) unreadable: Option<Box<(String, Option<i64>)>>,
    /// When what others left in the status was last removed.
    pub(crate) tidied: Option<Instant>,
    /// The finalizer is dropped: events of the object that are still under way mean nothing.
    pub(crate) released: bool,
}

impl Writes {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            trouble,
            // It can be decoded again.
            answer: _,
            behind,
            vain,
            unreadable,
            tidied: _,
            released,
        } = self;
        trouble.is_none()
            && behind.is_none()
            && vain.is_none()
            && unreadable.is_none()
            && !released
            && self.may_tidy()
    }

    /// The object at this version, if the last own write made it; given once, so that it is not kept.
    pub(crate) fn take_answer<K: Resource + Send + Sync + 'static>(
        &mut self,
        version: Option<&str>,
    ) -> Option<Arc<K>> {
        let object = self.answer.take()?.downcast::<K>().ok()?;
        (version.is_some() && object.meta().resource_version.as_deref() == version)
            .then_some(object)
    }

    /// Whether what others left in the status may be removed now: they may put it there again.
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
    /// A retry does not help.
    refused: bool,
    /// Reason and message to be reported, until they are.
    pub(crate) to_report: Option<Box<(&'static str, String)>>,
}

/// What has to change for a write to be tried before its wait is over: nothing else brings it forward.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The object: the write named a version that was no longer the newest.
    Version(Option<String>),
    /// What the user asks for.
    Request {
        generation: Option<i64>,
        paused: bool,
        abandoned: bool,
    },
}

impl Scope {
    /// The version of an object.
    pub(crate) fn version(meta: &ObjectMeta) -> Self {
        Self::Version(meta.resource_version.clone())
    }

    /// What the user asks for by an object.
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
    /// How many failures over how long in a row are taken to last.
    const LASTING: (u32, Duration) = (5, Duration::from_mins(1));

    /// Whether no write has failed.
    pub(crate) fn is_none(&self) -> bool {
        let Self {
            times,
            since: _,
            wait: _,
            refused: _,
            to_report,
        } = self;
        *times == 0 && to_report.is_none()
    }

    /// Returns how long the next write waits; none where it may be tried.
    pub(crate) fn wait(&self, meta: &ObjectMeta) -> Option<Duration> {
        let (until, scope) = self.wait.as_ref()?;
        let left = until.saturating_duration_since(Instant::now());
        (scope.is_of(meta) && !left.is_zero()).then_some(left)
    }

    /// Whether a retry of the last one does not help.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Notes a write that failed; returns how long the next one waits.
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

    /// Whether writes have failed so often and for so long that people should know.
    pub(crate) fn lasts(&self) -> bool {
        let (times, time) = Self::LASTING;
        self.times >= times && self.since.is_some_and(|since| since.elapsed() >= time)
    }
}
