//! Applies configurations: most of the work needs no store, so it runs with the store unlocked.

use std::sync::Arc;

use serde_json::Value;

use super::{Precondition, Write, WriteParams, check_address, check_named, place};
use crate::apply::{self as managed, BareFields};
use crate::calls::WebhookCalls;
use crate::convert::{self, stored_id};
use crate::kind::ServedKind;
use crate::refusal::Refusal;
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::{object, types};

/// The state of an object that an apply is based on.
#[derive(Debug)]
pub(crate) struct Moment {
    stored: Option<Arc<StoredObject>>,
    now: String,
}

impl Moment {
    pub(crate) fn of(store: &Store, calls: &WebhookCalls, kind: &ServedKind, key: &Key) -> Self {
        Self {
            stored: store.get(&stored_id(kind), key).cloned(),
            now: calls.once("now", || store.clock.text()),
        }
    }

    pub(crate) fn has_object(&self) -> bool {
        self.stored.is_some()
    }

    /// Whether the object and its kind are unchanged.
    pub(crate) fn holds(&self, store: &Store, kind: &Arc<ServedKind>, key: &Key) -> bool {
        let same_kind = store
            .served(&kind.id(), &kind.version)
            .is_some_and(|now| Arc::ptr_eq(now, kind));
        same_kind
            && match (&self.stored, store.get(&stored_id(kind), key)) {
                (Some(then), Some(now)) => Arc::ptr_eq(then, now),
                (then, now) => then.is_none() && now.is_none(),
            }
    }
}

impl Write {
    /// Applies a configuration and prepares the rest, which is most of the work and needs no store.
    pub(crate) fn apply(
        moment: &Moment,
        params: WriteParams,
        key: &Key,
        config: Value,
        force: bool,
    ) -> Result<Self, Refusal> {
        let kind = &*params.kind;
        let precondition = Precondition::of(&config);
        let stored = moment.stored.as_ref();
        let present = |stored| convert::present(params.calls(), &params.kind, stored);
        let old = stored.map(present).transpose()?.map(|stored| stored.read());
        if object::at(&config, &["metadata", "managedFields"]).is_some_and(|list| !list.is_null()) {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        let scene = params.scene(&moment.now);
        let address = check_address(kind, key, &config);
        let old = old.map(BareFields::of);
        let place_in_message = object::namespace(&config).to_owned();
        let mut new = managed::apply(scene, old.as_ref(), config, &params.manager, force)?;
        if let Some(go_type) = kind.go_type {
            let decoded = types::decode(go_type, &mut new.clone());
            decoded.map_err(|why| managed::inconvertible(scene, &place_in_message, &new, &why))?;
        }
        let old = old.map(BareFields::whole);
        address?;
        check_named(key, &new)?;
        let metadata = object::metadata(&mut new);
        if !precondition.uid.is_empty() {
            // As on the server, a version does not prevent a creation, but a uid does.
            if old.is_none() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    precondition.uid
                );
                return Err(Refusal::conflict(kind.subject(&key.name), &why));
            }
            // Here the uid is a field like any other, and immutable.
            metadata.insert("uid".to_owned(), precondition.uid.clone().into());
        }
        if old.is_none() && params.dry_run && !precondition.version.is_empty() {
            // Only a stored object gets a new version.
            let version = precondition.version.clone();
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        metadata.insert("name".to_owned(), key.name.clone().into());
        place(kind, &key.namespace, &mut new);
        if let Some(old) = &old {
            precondition.check_version(kind, old)?;
        }
        let mut write = Self {
            old,
            ..Self::decode(params, new)?
        };
        write.prepare()?;
        Ok(write)
    }

    /// Applies a number of replicas through the scale of an existing object.
    pub(crate) fn apply_scale(
        store: &mut Store,
        params: WriteParams,
        old: Value,
        replicas: (&[String], i64),
        force: bool,
    ) -> Result<Arc<StoredObject>, Refusal> {
        let now = params.calls().once("now", || store.clock.text());
        let scene = params.scene(&now);
        let new = managed::apply_scale(scene, &old, replicas, &params.manager, force)?;
        let mut write = Self {
            old: Some(old),
            ..Self::of(params, new)
        };
        write.prepare()?;
        Ok(write.commit(store)?.object)
    }
}
