//! What a shell reports of the effects that it has performed, as numbers.

use core::time::Duration;

use super::draft::{ResourceStatus, RunEnd};
use super::object::{Object, Version};
use crate::graph::StateId;
use crate::pass::PassOutcome;

/// The result of an observation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ObservationResult {
    /// There is nothing to observe.
    Unobserved {
        /// Whether the application is observed again in its usual interval.
        again: bool,
    },
    /// The application is in this state.
    In(StateId),
    /// The application is in a state that the graph does not have.
    Unforeseen,
    /// There is no application.
    Absent {
        /// How long that may last before it counts.
        tolerance: Duration,
    },
    /// The application could not be reached.
    Unreachable,
    /// The observation failed for another reason.
    Failed,
    /// The application did not answer in time.
    TimedOut,
    /// The application was not called, because its backoff lasts.
    Silent,
}

/// The result of asking the application for its own fields of the status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExtraResult {
    /// It was not asked.
    NotAsked,
    /// It answered, or failed at once.
    Answered,
    /// It did not answer in time.
    TimedOut,
}

/// The report of a pass run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PassReport {
    /// How it ended.
    pub end: RunEnd,
    /// A step failed, or asked for a wait that grows each time.
    pub backs_off: bool,
    /// Something keeps the object from being ready.
    pub is_in_the_way: bool,
    /// The time that a step asked for.
    pub requeue_after: Option<Duration>,
    /// The time until the resources are due again.
    pub due: Option<Duration>,
}

impl PassReport {
    /// Returns the report of a run with this outcome, with nothing in the way and no times.
    pub fn of(outcome: &PassOutcome) -> Self {
        Self {
            end: RunEnd::from(outcome),
            backs_off: matches!(
                outcome,
                PassOutcome::Failed(_) | PassOutcome::Waits { growing: true, .. }
            ),
            is_in_the_way: false,
            requeue_after: None,
            due: None,
        }
    }
}

/// The result of applying the owned resources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ApplyResult {
    /// Nothing was tried: the backoff after a failure lasts, and the status is the last one.
    Waits,
    /// They were applied, or a failure kept them from it.
    Applied {
        /// Their status.
        status: ResourceStatus,
        /// The time until they are due again.
        due: Option<Duration>,
        /// The edge for a change that leads to where an outdated one may change.
        outdated: Option<StateId>,
        /// A hash of the declared ones that change in some states only; none if the declaration failed.
        content: Option<u64>,
    },
}

/// The result of deleting what Kubernetes does not delete with the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClearResult {
    /// Nothing is left.
    Cleared,
    /// Nothing was tried: the backoff after a failure lasts.
    Waits,
    /// Something was deleted, and is not gone yet.
    Deleted,
    /// Something that was deleted earlier is not gone yet.
    Awaited,
    /// The deletion failed.
    Failed {
        /// A retry does not help.
        permanent: bool,
        /// The time until the retry.
        due: Option<Duration>,
    },
    /// Nothing is left, but the last transitions are not delivered yet.
    Undelivered {
        /// How long the object waits for that at most.
        patience: Duration,
    },
}

/// The result of reading a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReadRequestResult {
    /// It is there and waits, or is the one on record.
    There,
    /// It is not there, or is over.
    Gone,
    /// That is not known, or the outcome of the one on record was not written; a retry may help.
    Failed,
}

/// The result of asking for a place in a limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PlaceResult {
    /// The object has a place by the version at hand.
    Taken,
    /// There is none, or another object comes first, or that is not known.
    None,
}

/// The result of writing outcomes into requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeliverResult {
    /// All were written.
    Delivered,
    /// At least one was not; a retry may help.
    Failed,
    /// The object is not the newest version, on which outcomes depend that are not on record. This is the newest version,
    /// if it is known.
    Outdated(Option<Version>),
}

/// The result of starting work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StartResult {
    /// Its task runs.
    Started,
    /// The object is not the newest version: another replica may have recorded the end of the work. This is the newest
    /// version, if it is known.
    Outdated(Option<Version>),
    /// A task for a former object of the same name has not ended.
    FormerTaskRuns,
    /// The operator runs as many actions as its limit allows. It requeues the object, or the object may try again after
    /// this time.
    NoPermit(Option<Duration>),
    /// The record has no work that this operator knows.
    Nothing,
}

/// The object in the answer to a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stored {
    /// The version that the write made.
    pub version: Option<Version>,
    /// The object; none if the answer does not decode: the next event reports that.
    pub object: Option<Object>,
}

/// Why a write failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WriteError {
    /// The object was changed since it was read: the newer version comes as an event.
    Conflict,
    /// A retry does not help: a person has to change a schema, a rule or a role.
    Refused,
    /// A retry may help.
    Failed,
    /// A retry may help after this time, which the server asks for.
    Busy(Duration),
}

/// What comes after a write that failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[must_use = "a failure that lasts must be reported"]
pub struct Retry {
    /// The time until the retry, unless the object changes before.
    pub wait: Duration,
    /// The conditions must report the failure: it is refused, or lasts.
    pub is_reported: bool,
}

/// The result of reporting a failure in the conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShowResult<'a> {
    /// The conditions report it already.
    Unchanged,
    /// They were written.
    Written(&'a Stored),
    /// The write failed.
    Failed,
}
