//! Ownership of resources: by an owner reference, or by a record in the status of their owner.
//!
//! An owner reference works in the owner's namespace only, and not for an unowned resource. The status of the owner
//! records the others before the operator creates them, so that it finds them again after a crash.

use serde_json::Value;

use super::declared::{Declared, Owner};
use super::drift::owned_fields;
use super::index::mark;
use super::kept::Kept;
use super::names::Key;
use super::site::Site;
use super::stamp::named;
use crate::wire::object::LifecycleObject;

impl<'a, K: LifecycleObject> Site<'a, K> {
    /// Returns the marks of resources that the status records.
    pub(super) fn recorded(&self) -> &'a [String] {
        let status = self.object.status_of();
        status.map_or(&[], |status| &status.recorded_resources)
    }

    pub(super) fn is_recorded(&self, key: &Key) -> bool {
        self.recorded().contains(&self.mark(key))
    }

    pub(super) fn mark(&self, key: &Key) -> String {
        mark(self.kind(key), key)
    }

    /// Returns whether the status has to record a declared object.
    pub(super) fn has_to_record(&self, declared: &Declared, key: &Key) -> bool {
        declared.owner == Owner::None || !self.is_beside(key)
    }

    /// Returns whether an object of the cache proves its owner by an owner reference.
    pub(super) fn is_shown(&self, key: &Key, there: &Kept) -> bool {
        there.reference.is_some() && self.is_beside(key)
    }

    /// Returns whether an object that the cache does not show as owned belongs to the owner all the same: its
    /// creation is so recent, or its label was removed.
    pub(super) fn is_own(&self, key: &Key, found: &Kept, object: &Value) -> bool {
        let uid = self.uid();
        let owners = object["metadata"]["ownerReferences"].as_array();
        let has_reference = owners.is_some_and(|owners| owners.iter().any(|it| it["uid"] == uid));
        // It is recorded, and this operator created it for this owner.
        let is_recorded = self.is_recorded(key)
            && owned_fields(object, &self.cluster.identity.manager).is_some()
            && found.owner.as_deref().is_none_or(|owner| owner == uid)
            && found.owner_name.as_deref() == Some(&*named(self.object.meta()));
        is_recorded || (has_reference && self.is_beside(key))
    }

    /// Returns whether an object is in the namespace of its owner, or cluster-scoped like it.
    fn is_beside(&self, key: &Key) -> bool {
        key.1 == self.object.meta().namespace
    }
}
