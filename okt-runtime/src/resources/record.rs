//! Ownership of resources: by an owner reference, or by a record in the status of their owner.
//!
//! An owner reference works in the owner's namespace only, and not for an unowned resource. The status of the owner
//! records the others before the operator creates them, so that it finds them again after a crash. Anyone who may write a
//! resource can change all of it but its uid, so a uid that is on record proves more than its content.

use kube::Resource;
use okt_reach::Failure;
use okt_wire::keys::OWNER_KIND_LABEL;
use serde_json::Value;

use super::declared::{Declared, DeclaredOwner};
use super::drift::owned_fields;
use super::inventory::{Inventory, InventoryEntry};
use super::kept::Kept;
use super::names::Key;
use super::site::Site;

impl Site<'_> {
    /// Returns what the status of the owner records.
    pub(crate) fn inventory(&self) -> Inventory {
        Inventory::of(self.owner.recorded)
    }

    /// Returns whether the status has to record a declared object.
    pub(super) fn has_to_record(&self, declared: &Declared, key: &Key) -> bool {
        declared.owner == DeclaredOwner::None || !self.is_beside(key)
    }

    /// Returns whether an object of the cache proves its owner by an owner reference.
    pub(super) fn is_shown(&self, key: &Key, there: &Kept) -> bool {
        there.reference.is_some() && self.is_beside(key)
    }

    /// Returns whether an object that the cache does not show as owned belongs to the owner all the same: its
    /// creation is so recent, or somebody has changed what shows its owner.
    pub(super) fn is_own(
        &self,
        inventory: &Inventory,
        key: &Key,
        found: &Kept,
        object: &Value,
    ) -> bool {
        let kind = self.kind(key);
        let is_recorded = match inventory.get(kind, key) {
            Some(entry) => self.is_recorded_as(entry, found, object),
            None => inventory.has(kind, key) && self.is_made_for(found, object),
        };
        is_recorded || (self.refers_to_owner(object) && self.is_beside(key))
    }

    /// Returns whether an object has an owner reference with the uid of the owner.
    pub(super) fn refers_to_owner(&self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|it| it["uid"] == self.uid()))
    }

    /// Returns whether an object was made for an earlier object of the owner's name, which is gone, as names are unique: a
    /// restored backup brings back resources without owner references.
    ///
    /// Beside the owner that is enough: who may write there may write the owner, too. Elsewhere the object has to be on
    /// record.
    pub(super) fn is_inherited(
        &self,
        inventory: &Inventory,
        key: &Key,
        found: &Kept,
        object: &Value,
    ) -> bool {
        let kind = object["metadata"]["labels"][OWNER_KIND_LABEL].as_str();
        let mut owners = object["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten();
        let is_of_another = |it: &Value| {
            let uid = it["uid"].as_str();
            it["controller"] == true && uid != Some(self.uid()) && uid != found.owner.as_deref()
        };
        if owners.any(is_of_another) {
            return false;
        }
        found
            .owner
            .as_deref()
            .is_some_and(|owner| owner != self.uid())
            && kind == Some(&*self.cluster.identity.owner_kind)
            && found.owner_name.as_deref() == Some(&*self.owner_name())
            && (self.is_beside(key) || inventory.has(self.kind(key), key))
    }

    /// Returns the other owner of an object, if it is there.
    ///
    /// # Errors
    ///
    /// If it cannot be read; a retry may help.
    pub(super) async fn other_owner(
        &self,
        found: &Kept,
        object: &Value,
    ) -> Result<Option<String>, Failure> {
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let mut controllers = owners.filter(|it| it["controller"] == true);
        if let Some(other) = controllers.find(|it| it["uid"] != self.uid()) {
            let text = |name: &str| other[name].as_str().unwrap_or_default().to_owned();
            return Ok(Some(format!("{} {}", text("kind"), text("name"))));
        }
        let label = metadata["labels"][OWNER_KIND_LABEL].as_str();
        let (Some(uid), Some(name), Some(kind)) =
            (found.owner.as_deref(), found.owner_name.as_deref(), label)
        else {
            return Ok(None);
        };
        if uid == self.uid() {
            return Ok(None);
        }
        let other = format!("{} {name}", kind.split('.').next().unwrap_or(kind));
        // Whether an object of another kind is there cannot be seen from here.
        let is_there = kind != self.cluster.identity.owner_kind || self.is_there(name, uid).await?;
        Ok(is_there.then_some(other))
    }

    /// Returns whether an object is the one that an entry names.
    pub(super) fn is_recorded_as(
        &self,
        entry: &InventoryEntry,
        found: &Kept,
        object: &Value,
    ) -> bool {
        match &entry.uid {
            Some(uid) => found.meta().uid.as_ref() == Some(uid),
            None => self.is_made_for(found, object),
        }
    }

    /// Returns whether the marks of an object name this operator as the one that created it for this owner.
    fn is_made_for(&self, found: &Kept, object: &Value) -> bool {
        let uid = self.uid();
        owned_fields(object, &self.cluster.identity.manager).is_some()
            && found.owner.as_deref().is_none_or(|owner| owner == uid)
            && found.owner_name.as_deref() == Some(&*self.owner_name())
    }

    /// Returns whether an object is in the namespace of its owner, or cluster-scoped like it.
    pub(super) fn is_beside(&self, key: &Key) -> bool {
        key.1 == self.owner.meta.namespace
    }
}
