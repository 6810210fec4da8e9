//! Applies configurations: most of the work needs no store, so it runs with the store unlocked.

use std::mem;
use std::sync::Arc;

use serde_json::Value;

use super::clean::clean;
use super::finish::{WriteOutcome, commit_update, finish_create, finish_update};
use super::{Precondition, WriteParams, WrittenObject, check_address, isolate, place};
use crate::api::apply::{self, BareFields};
use crate::api::calls::WebhookCalls;
use crate::api::convert::{self, stored_id};
use crate::api::kind::ServedKind;
use crate::api::object;
use crate::api::refusal::Refusal;
use crate::api::store::{Key, Store};
use crate::api::stored::StoredObject;

/// The state of an object that a draft is based on.
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

/// A prepared write, which only needs to be committed to the state that it is based on.
#[derive(Debug)]
pub(crate) struct Draft {
    name: String,
    warnings: Vec<String>,
    new: Value,
    /// `None` for an object that is created.
    old: Option<(Value, WriteOutcome)>,
}

impl Draft {
    /// Commits the draft; its [`Moment`] must still hold.
    ///
    /// The caller can drop the rest of the draft after it unlocks the store.
    pub(crate) fn commit(
        &mut self,
        store: &mut Store,
        params: &WriteParams,
    ) -> Result<WrittenObject, Refusal> {
        let object = match &self.old {
            Some((old, outcome)) => commit_update(store, params, old, &mut self.new, *outcome)?,
            None => finish_create(store, params, mem::take(&mut self.new))?,
        };
        Ok(WrittenObject {
            name: mem::take(&mut self.name),
            object,
            created: self.old.is_none(),
            warnings: mem::take(&mut self.warnings),
        })
    }
}

/// Applies a number of replicas through the scale of an existing object.
pub(crate) fn apply_scale(
    store: &mut Store,
    params: &WriteParams,
    old: &Value,
    replicas: (&[String], i64),
    force: bool,
) -> Result<Arc<StoredObject>, Refusal> {
    let now = params.calls().once("now", || store.clock.text());
    let scene = params.scene(&now);
    let mut new = apply::apply_scale(scene, old, replicas, &params.manager, force)?;
    params.admission.mutate(Some(old), &mut new)?;
    let outcome = finish_update(params, old, &mut new, false)?;
    commit_update(store, params, old, &mut new, outcome)
}

/// Prepares an apply, which is most of its work and needs no store.
pub(crate) fn draft_apply(
    moment: &Moment,
    params: &WriteParams,
    key: &Key,
    config: Value,
    force: bool,
) -> Result<Draft, Refusal> {
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
    let mut new = apply::apply(scene, old.as_ref(), config, &params.manager, force)?;
    let old = old.map(BareFields::whole);
    address?;
    if object::name(&new).is_empty() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            key.name
        )));
    }
    // As on the server, a version does not prevent a creation, but a uid does.
    if old.is_none() && !precondition.uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {}, and no existing object was found",
            precondition.uid
        );
        return Err(Refusal::conflict(kind.subject(&key.name), &why));
    }
    let metadata = object::metadata(&mut new);
    if !precondition.uid.is_empty() {
        // Here the uid is a field like any other, and immutable.
        metadata.insert("uid".to_owned(), precondition.uid.clone().into());
    }
    if old.is_none() && params.dry_run && !precondition.version.is_empty() {
        // Only a stored object gets a new version.
        metadata.insert(
            "resourceVersion".to_owned(),
            precondition.version.clone().into(),
        );
    }
    metadata.insert("name".to_owned(), key.name.clone().into());
    place(kind, &key.namespace, &mut new);
    let warnings = clean(params, &mut new)?;
    params.admission.mutate(old.as_ref(), &mut new)?;
    let old = match old {
        None => None,
        Some(old) => {
            precondition.check_version(kind, &old)?;
            isolate(kind, params.subresource, &old, &mut new);
            let outcome = finish_update(params, &old, &mut new, false)?;
            Some((old, outcome))
        }
    };
    Ok(Draft {
        name: key.name.clone(),
        warnings,
        new,
        old,
    })
}
