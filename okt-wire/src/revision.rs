//! The revision of an object: a hash of what its handlers act upon.

use serde_json::Value;

use super::object::{LifecycleObject, LifecycleSpec, position_of};
use super::{digest, read};

/// The revision of an object, by this release of its operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revision {
    /// A hash of the spec without its lifecycle field. It also changes with a release whose spec has another field, so it
    /// counts only if somebody has changed the spec.
    OfSpec(u64),
    /// A hash of what the application returns.
    OnPurpose(u64),
}

/// The referred objects that are part of a revision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Referred {
    /// There are none.
    None,
    /// They cannot be seen.
    Unknown,
    /// A hash of their content.
    Hash(u64),
}

impl Referred {
    /// Returns the hash that counts, as they are or as they were recorded.
    pub fn counted(self, recorded: Option<u64>) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Unknown => recorded,
            Self::Hash(hash) => Some(hash),
        }
    }
}

impl Revision {
    /// Returns the hash of the spec without its lifecycle field.
    pub fn of_spec<K: LifecycleObject>(object: &K) -> Self {
        Self::OfSpec(digest::revision(&without_lifecycle(object)))
    }

    /// Returns the revision that counts: the recorded one, if nobody has changed the spec since it was recorded.
    ///
    /// `known` is the hash of this release for the recorded revision of an earlier one; a later change of the lifecycle
    /// field alone makes no new revision either.
    pub fn counted<K: LifecycleObject>(
        self,
        object: &K,
        referred: Referred,
        known: &mut Option<(u64, u64)>,
    ) -> u64 {
        let position = position_of(object);
        let before = position.and_then(read::recorded_referred);
        let referred = referred.counted(before);
        let (Self::OfSpec(plain) | Self::OnPurpose(plain)) = self;
        let with = |referred: Option<u64>| match referred {
            Some(referred) => digest::revision(&(plain, referred)),
            None => plain,
        };
        let hash = with(referred);
        let Some((generation, recorded)) = position.and_then(read::recorded_revision) else {
            return hash;
        };
        // A release that has begun, or ceased, to count referred objects changes nothing.
        if before.is_some() && referred.is_some() && before != referred {
            return hash;
        }
        if [plain, hash, with(before)].contains(&recorded) {
            *known = None;
            return recorded;
        }
        if matches!(self, Self::OnPurpose(_)) {
            return hash;
        }
        if object.meta().generation == Some(generation) {
            *known = Some((hash, recorded));
            return recorded;
        }
        match *known {
            Some((now, before)) if now == hash && before == recorded => recorded,
            _ => hash,
        }
    }
}

/// Returns the spec of an object without its lifecycle field.
fn without_lifecycle<K: LifecycleObject>(object: &K) -> Value {
    let mut spec = object.spec_of().clone();
    spec.forget_lifecycle();
    serde_json::to_value(spec).unwrap_or_default()
}
