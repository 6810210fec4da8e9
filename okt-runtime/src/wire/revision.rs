//! The revision of an object: a hash of what its handlers act upon.

use serde_json::Value;

use super::object::{LifecycleObject, LifecycleSpec};
use super::read;

/// The revision of an object, by this release of its operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Revision {
    /// A hash of the spec without its lifecycle field. It also changes with a release whose spec has another field, so it
    /// counts only if somebody has changed the spec.
    OfSpec(u64),
    /// A hash of what the application returns.
    OnPurpose(u64),
}

impl Revision {
    pub(crate) fn of_spec<K: LifecycleObject>(object: &K) -> Self {
        Self::OfSpec(read::revision(&without_lifecycle(object)))
    }

    /// Returns the revision that counts: the recorded one, if nobody has changed the spec since it was recorded.
    ///
    /// `known` is the hash of this release for the recorded revision of an earlier one; a later change of the lifecycle
    /// field alone makes no new revision either.
    pub(crate) fn counted<K: LifecycleObject>(
        self,
        object: &K,
        known: &mut Option<(u64, u64)>,
    ) -> u64 {
        let hash = match self {
            Self::OnPurpose(hash) => return hash,
            Self::OfSpec(hash) => hash,
        };
        let position = object.status_of().and_then(|it| it.lifecycle.as_ref());
        let Some((generation, recorded)) = position.and_then(read::recorded_revision) else {
            return hash;
        };
        if object.meta().generation == Some(generation) {
            *known = (hash != recorded).then_some((hash, recorded));
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
