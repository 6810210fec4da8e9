//! The object as the API server stores it.

use std::hash::{Hash, Hasher};

use okt_core::record::Recorded;
use okt_core::{Parts, StateId};

use crate::machine::{self, NotReadyReason};

/// A version of the object, as the API server stores it or as a cache shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Object {
    pub(crate) version: Version,
    pub(crate) spec: Spec,
    /// It has the operator's finalizer.
    pub(crate) finalizer: bool,
    pub(crate) status: Status,
}

/// `metadata.resourceVersion`.
///
/// Only the order of versions matters, so the hash of a world leaves the number out:
/// [`World::fingerprint`](crate::world::World::fingerprint) hashes how far each version is from the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Version(pub(crate) u16);

impl Version {
    /// Returns the version as the machine reads it.
    pub(crate) fn of_machine(self) -> machine::Version {
        machine::Version::Number(u64::from(self.0))
    }
}

impl Hash for Version {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The requests of the user, in the spec and in annotations.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of an object of its own"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Spec {
    pub(crate) desired: Option<Request>,
    pub(crate) visit: Option<Request>,
    pub(crate) revision: u64,
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) abandoned: bool,
    pub(crate) paused: bool,
    /// It does not decode.
    pub(crate) garbled: bool,
    /// Labels, on which nothing depends.
    pub(crate) labels: u8,
}

/// A state that the user asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Request {
    pub(crate) state: StateId,
    /// The number that distinguishes one request for a state from the next.
    pub(crate) number: u8,
}

/// The status, as the operator wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Status {
    pub(crate) recorded: Recorded,
    /// The state on record belongs to a newer operator.
    pub(crate) newer: bool,
    /// The desired state and the visit, as they are recorded.
    pub(crate) desired: Option<Request>,
    pub(crate) visit: Option<Request>,
    /// `status.observedGeneration`.
    pub(crate) generation: i64,
    pub(crate) report: Report,
    /// The part of the spec that a trigger names, at the last edge for its change.
    pub(crate) part: u64,
    /// How many things the handler of the work on record has had recorded while it ran.
    pub(crate) records: u8,
    /// The application's own fields.
    pub(crate) extra: u8,
    /// It has conditions of an earlier controller.
    pub(crate) is_inherited: bool,
    /// Others left something in it that no apply removes.
    pub(crate) has_leftovers: bool,
}

/// The content of the conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Report {
    pub(crate) about: About,
    /// The reason outside the lifecycle why the object is not ready.
    pub(crate) not_ready: NotReadyReason,
    pub(crate) is_ready: bool,
    pub(crate) is_stalled: bool,
    pub(crate) is_paused: bool,
    /// A hash of type, status and reason of every condition.
    pub(crate) conditions: u64,
}

/// The subject of the conditions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum About {
    /// Nothing was written yet.
    #[default]
    Nothing,
    /// The state of the object.
    Life,
    /// A write that fails.
    FailedWrite,
    /// An object that cannot be read.
    Garbled,
}

impl Object {
    /// Returns an object that a user has just created.
    pub(crate) fn created() -> Self {
        Self {
            version: Version(1),
            spec: Spec {
                revision: 1,
                generation: 1,
                ..Spec::default()
            },
            ..Self::default()
        }
    }

    /// Returns whether a pause is in force.
    pub(crate) fn is_paused(&self) -> bool {
        self.spec.paused && !self.spec.deleting
    }
}

/// Returns the part of the spec that a trigger names: every second change of the spec changes it.
pub(crate) fn part(revision: u64) -> u64 {
    revision / 2
}

impl Status {
    /// Returns the parts that have changed since an edge for their change was taken.
    pub(crate) fn changed_parts(&self, spec: &Spec) -> Parts {
        let is_changed = self.recorded != Recorded::Nothing && self.part != part(spec.revision);
        Parts(u32::from(is_changed))
    }
}

impl Spec {
    /// Returns whether two specs differ in something other than annotations, so that the generation changes.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let plain = |spec: &Self| Self {
            paused: false,
            abandoned: false,
            labels: 0,
            ..*spec
        };
        plain(self) != plain(other)
    }
}

impl Request {
    /// Returns a request that differs from the one before.
    pub(crate) fn anew(before: Option<Self>, state: StateId) -> Self {
        Self {
            state,
            number: before.map_or(0, |before| before.number + 1),
        }
    }
}
