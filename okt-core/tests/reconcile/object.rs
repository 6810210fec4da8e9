//! This file says what the API server stores of the object.

use std::hash::{Hash, Hasher};

use okt_core::StateId;
use okt_core::reconcile::Hold;
use okt_core::record::Recorded;

/// A version of the object, as the API server stores it or as a cache shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Object {
    pub(crate) version: Version,
    pub(crate) spec: Spec,
    /// It has the operator's finalizer.
    pub(crate) finalizer: bool,
    pub(crate) status: Status,
}

/// `metadata.resourceVersion`.
///
/// Only the order of versions means something, so the number is left out of the hash of a world:
/// [`World::fingerprint`](crate::world::World::fingerprint) hashes how far each version is from the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Version(pub(crate) u16);

impl Hash for Version {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What the user asks for, in the spec and in annotations.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of an object of its own"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
}

/// A state that the user asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Request {
    pub(crate) state: StateId,
    /// What tells one request for a state from the next.
    pub(crate) number: u8,
}

/// What the operator has written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Status {
    pub(crate) recorded: Recorded,
    /// The state on record is one of a newer operator.
    pub(crate) newer: bool,
    /// The wish and the visit, as they are recorded.
    pub(crate) desired: Option<Request>,
    pub(crate) visit: Option<Request>,
    /// `status.observedGeneration`.
    pub(crate) generation: i64,
    pub(crate) report: Report,
    /// The application's own fields.
    pub(crate) extra: u8,
}

/// What the conditions say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Report {
    pub(crate) about: About,
    /// Why the object is not ready, for a reason outside its lifecycle.
    pub(crate) hold: Hold,
    pub(crate) is_ready: bool,
    pub(crate) is_stalled: bool,
    pub(crate) is_paused: bool,
    /// A hash of type, status and reason of every condition.
    pub(crate) conditions: u64,
}

/// What conditions are about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum About {
    /// Nothing was written yet.
    Nothing,
    /// Where the object is.
    Life,
    /// A write that fails.
    FailedWrite,
    /// That the object cannot be read.
    Garbled,
}

impl Object {
    /// An object that a user has just created.
    pub(crate) fn created() -> Self {
        Self {
            version: Version(1),
            spec: Spec {
                desired: None,
                visit: None,
                revision: 1,
                generation: 1,
                deleting: false,
                abandoned: false,
                paused: false,
                garbled: false,
            },
            finalizer: false,
            status: Status {
                recorded: Recorded::Nothing,
                newer: false,
                desired: None,
                visit: None,
                generation: 0,
                report: Report {
                    about: About::Nothing,
                    hold: Hold::None,
                    is_ready: false,
                    is_stalled: false,
                    is_paused: false,
                    conditions: 0,
                },
                extra: 0,
            },
        }
    }

    /// Whether a pause is in force.
    pub(crate) fn is_paused(&self) -> bool {
        self.spec.paused && !self.spec.deleting
    }
}

impl Spec {
    /// Whether two specs differ in what is no annotation, so that the generation changes.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let plain = |spec: &Self| Self {
            paused: false,
            abandoned: false,
            ..*spec
        };
        plain(self) != plain(other)
    }
}

impl Request {
    /// A request that differs from the one before.
    pub(crate) fn anew(before: Option<Self>, state: StateId) -> Self {
        Self {
            state,
            number: before.map_or(0, |before| before.number + 1),
        }
    }
}
