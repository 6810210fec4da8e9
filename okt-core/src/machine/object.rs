//! An object as it was read, as ids and counters.

use core::time::Duration;

use crate::facts::NextRequest;
use crate::facts::{DesiredState, DesiredVisit};
use crate::gate::{Gates, Plan};
use crate::graph::Parts;
use crate::record::Recorded;

/// The version of an object: its `metadata.resourceVersion`.
///
/// Versions compare as numbers (official since Kubernetes 1.35). Of one that is no number, or too large a number, only a
/// hash is known: it is the same as another one, or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// A number.
    Number(u64),
    /// A hash of any other text.
    Other(u64),
}

impl Version {
    /// Returns whether this version is older than another one; no, if that is not known.
    pub fn is_older_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::Number(version), Self::Number(other)) => version < other,
            (Self::Number(_) | Self::Other(_), _) => false,
        }
    }
}

/// The id of the work of a state, as the record has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WorkId {
    /// The transition into the state.
    pub transition: u64,
    /// The run of the work within the transition, starting at 1.
    pub run: u32,
    /// A hash of the rest of the id: two runs of one number have different ids if the history of the cluster went back.
    pub token: u64,
}

/// An object as it was read: its record, and what users and others want of it. By default it has no status, and a user asks
/// nothing of it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is excluded"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Object {
    /// Its version.
    pub version: Option<Version>,
    /// The record in its status.
    pub recorded: Recorded,
    /// The work that is in flight according to the record.
    pub in_flight: Option<WorkId>,
    /// Whether it decodes.
    pub readable: Readable,
    /// The desired state.
    pub desired: DesiredState,
    /// The visit.
    pub visit: Option<DesiredVisit>,
    /// The requests for it.
    pub requests: KnownRequests,
    /// The gates.
    pub gates: GateTimes,
    /// A hash of its uid, the same in every process.
    pub uid: u64,
    /// The plan that its spec approves.
    pub approved: Option<Plan>,
    /// `metadata.generation`.
    pub generation: i64,
    /// A hash of the data that handlers act upon.
    pub revision: u64,
    /// The parts of the spec that have changed since an edge for their change was taken.
    pub parts: Parts,
    /// It is being deleted.
    pub deleting: bool,
    /// A user abandoned it; this counts only while it is being deleted.
    pub abandoned: bool,
    /// A user paused it; this counts only while it is not being deleted.
    pub paused: bool,
    /// The state on record belongs to a newer operator.
    pub newer: bool,
    /// It has the operator's finalizer.
    pub finalizer: bool,
    /// Its conditions report another pause than the user asks for.
    pub is_pause_news: bool,
    /// Its conditions are those of an earlier controller, and must be removed before the first status.
    pub inherits: bool,
    /// A resource that it owns exists in the cluster. This counts only if nothing is recorded.
    pub owns_any: bool,
    /// The time since the arrival in the state on record, as its deadlines count it.
    pub in_state: Duration,
    /// The time since the object came under the deadline of that state, as it counts; zero without one.
    pub in_deadline: Duration,
    /// The time since observations have found no application, if that is recorded.
    pub absent: Option<Duration>,
    /// How often the application is observed in this state if nothing happens.
    pub observe_every: Duration,
    /// The seed of this object's jitter.
    pub seed: u64,
}

impl Object {
    /// Returns whether a pause is in force; deletion ignores a pause.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.deleting
    }

    /// Returns the transition into the state on record; 0 if nothing is recorded.
    pub fn transition(&self) -> u64 {
        self.recorded.at().map_or(0, |record| record.transition)
    }
}

/// The gates, as they are for an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GateTimes {
    /// Those that are shut.
    pub shut: Gates,
    /// The time until that changes, if it does by itself.
    pub change: Option<Duration>,
    /// The limits in which the object has a place by this very version, taken for a move or registered.
    pub places: Gates,
    /// One of these places was taken for a move, and the object is outside of its limit.
    pub has_unused_place: bool,
}

impl GateTimes {
    /// Returns the time until those change that are shut, some time after they were read.
    pub(crate) fn change_in(&self, since_read: Duration) -> Option<Duration> {
        Some(self.change?.saturating_sub(since_read))
    }
}

/// The requests for an object, as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KnownRequests {
    /// The first one that waits and can begin where the object rests.
    pub next: Option<NextRequest>,
    /// The one on record is not among the known ones.
    pub is_missing: bool,
    /// The number of those into which their outcome is not written.
    pub undelivered: usize,
    /// The time until the next one expires.
    pub expires: Option<Duration>,
}

/// Whether an object decodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Readable {
    /// It does.
    #[default]
    Yes,
    /// It does not.
    No {
        /// A hash of the error.
        error: u64,
        /// The operator never started anything for it.
        untouched: bool,
    },
}

/// The id of a task that does work; of the tasks of one object no two have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TaskId(pub(super) u32);
