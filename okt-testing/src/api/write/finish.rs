//! Completes a write: it sets the fields of the server and commits.

use std::mem;
use std::sync::Arc;

use serde_json::{Value, json};

use super::check::{check, check_crd_update, check_namespace};
use super::shown::{check_readable, hide, reread};
use super::{Subresource, WriteParams};
use crate::api::convert::{self, Foreseen, current, stored_id};
use crate::api::kind::ServedKind;
use crate::api::refusal::Refusal;
use crate::api::store::{Key, Store};
use crate::api::stored::StoredObject;
use crate::api::{builtin, crd, delete, object};

/// Validates and commits a new object.
pub(super) fn finish_create(
    store: &mut Store,
    params: &WriteParams,
    mut object: Value,
) -> Result<Arc<StoredObject>, Refusal> {
    let kind = &*params.kind;
    let name = object::name(&object).to_owned();
    let namespace = object::namespace(&object).to_owned();
    check_namespace(store, kind, &namespace, &name)?;
    if !kind.is_built_in() {
        delete::check_not_terminating(store, kind, &name)?;
    }
    let calls = params.calls();
    let now = calls.once("now", || store.clock.text());
    let uid = calls.once("uid", || store.new_uid());
    let fields = object::fields(&mut object);
    if kind.has_status {
        fields.remove("status");
    }
    if kind.is_built_in() {
        builtin::fill(&kind.kind, &mut object);
    }
    let metadata = object::metadata(&mut object);
    for key in [
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        metadata.remove(key);
    }
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), now.clone().into());
    if kind.has_generation {
        metadata.insert("generation".to_owned(), 1.into());
    }
    let declared = initialise(store, kind, &mut object, &now)?;
    check(params, &object, None)?;
    params.admission.validate(None, &object)?;
    let mut object = convert::absorb(calls, kind, object)?;
    let hides = hide(params, &mut object);
    let foreseen = Foreseen::of(calls, kind, &object)?;
    calls.check_made()?;
    let id = stored_id(kind);
    let key = Key::of(&object);
    if !object::version(&object).is_empty() && !params.dry_run {
        return Err(Refusal::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    if let Some(found) = store.get(&id, &key) {
        let deleting = object::is_deleting(&found.read());
        return Err(Refusal::already_exists(kind.subject(&name), deleting));
    }
    if params.dry_run {
        return Ok(foreseen.show(&params.kind, &Arc::new(StoredObject::new(&object))));
    }
    object::metadata(&mut object).remove("resourceVersion");
    let created = store.put(&id, &mut object);
    if hides {
        store.set_hiding(&id, key);
    }
    if let Some(declared) = declared {
        store.add_kind(declared.into_iter().map(Arc::new).collect());
    }
    delete::collect_if_orphaned(store, &id, &created);
    Ok(foreseen.show(&params.kind, &created))
}

/// Fills in the server's fields of some built-in kinds. For a CRD, returns the kinds that it declares, if it is
/// established.
fn initialise(
    store: &Store,
    kind: &ServedKind,
    object: &mut Value,
    now: &str,
) -> Result<Option<Vec<ServedKind>>, Refusal> {
    if kind.is("", "namespaces") {
        let name = object::name(object).to_owned();
        object::put(object, &["spec", "finalizers"], json!(["kubernetes"]));
        object::put(object, &["status", "phase"], "Active".into());
        let label = "kubernetes.io/metadata.name";
        object::put(object, &["metadata", "labels", label], name.into());
    }
    if kind.is(crd::GROUP, crd::PLURAL) {
        let declared = crd::read(object)?;
        crd::complete(object);
        crd::accept(store, object, now);
        return Ok(Some(declared).filter(|_| crd::is_established(object)));
    }
    Ok(None)
}

/// The remaining work for a new state of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteOutcome {
    /// The new state equals the old one.
    same: bool,
    /// The object is removed.
    removes: bool,
    /// The written form differs from the one that is read.
    hides: bool,
}

/// Validates a new state of an object and prepares its commit.
///
/// `rewritten` means that a field which counts for the generation was written in another form than it is stored.
pub(super) fn finish_update(
    params: &WriteParams,
    old: &Value,
    new: &mut Value,
    rewritten: bool,
) -> Result<WriteOutcome, Refusal> {
    let kind = &*params.kind;
    keep_metadata(old, new);
    if kind.is(crd::GROUP, crd::PLURAL) {
        check_crd_update(kind, old, new)?;
        // Only `storedVersions` of the status can be written; the server sets the rest.
        let stored = object::at(new, &["status", "storedVersions"]).cloned();
        let status = old.get("status").cloned();
        object::set(object::fields(new), "status", status);
        if params.subresource == Subresource::Status {
            crd::set_stored(new, stored.unwrap_or_default());
        } else {
            crd::note_stored(new);
            crd::read(new)?;
            crd::complete(new);
        }
    }
    let counted = rewritten || !kind.same_content(old, new) || is_rollout(params, old, new);
    if kind.has_generation && counted {
        object::raise_generation(new);
    }
    check(params, new, Some(old))?;
    params.admission.validate(Some(old), new)?;
    let same = is_same(old, new);
    if same {
        // A change of the times of entries alone is no change.
        let entries = object::at(old, &["metadata", "managedFields"]).cloned();
        object::set(object::metadata(new), "managedFields", entries);
    }
    // A namespace is removed when it is empty, which is checked elsewhere.
    let is_gone = object::is_deleting(new) && object::finalizers(new).is_empty();
    let removes = is_gone && !kind.is("", "namespaces");
    if !removes {
        *new = convert::absorb(params.calls(), kind, mem::take(new))?;
    }
    Ok(WriteOutcome {
        same,
        removes,
        hides: !removes && hide(params, new),
    })
}

/// Commits a prepared state.
pub(super) fn commit_update(
    store: &mut Store,
    params: &WriteParams,
    old: &Value,
    new: &mut Value,
    outcome: WriteOutcome,
) -> Result<Arc<StoredObject>, Refusal> {
    let kind = &*params.kind;
    let (id, key) = (stored_id(kind), Key::of(old));
    params.calls().check_made()?;
    // A write to an object whose written form differs from the one that is read is always a change.
    let unchanged = !store.is_hiding(&id, &key) && is_stored_so(store, kind, new, outcome);
    let calls = params.calls();
    if unchanged && let Some(same) = current(calls, store, &params.kind, &key)? {
        return Ok(same);
    }
    if outcome.removes {
        // The last state is the stored one; the change that removes the object appears only in the answer.
        if !params.dry_run {
            let mut stored = convert::stored_form(store, kind, old);
            let last = store.remove(&id, &mut stored);
            delete::after_removal(store, &params.kind, &last);
        }
        return Ok(Arc::new(StoredObject::new(new)));
    }
    let foreseen = Foreseen::of(calls, kind, new)?;
    if params.dry_run {
        return Ok(foreseen.show(&params.kind, &Arc::new(StoredObject::new(new))));
    }
    let declared = if kind.is(crd::GROUP, crd::PLURAL) {
        let now = store.clock.text();
        crd::accept(store, new, &now);
        declared_anew(store, old, new)?
    } else {
        None
    };
    let shown = store.put(&id, new);
    if outcome.hides {
        store.set_hiding(&id, key);
    }
    if let Some(declared) = declared {
        reread(store, declared);
    }
    if kind.is(crd::GROUP, crd::PLURAL) {
        crd::reconsider(store, object::text(new, &["spec", "group"]));
    }
    delete::collect_if_orphaned(store, &id, &shown);
    Ok(foreseen.show(&params.kind, &shown))
}

/// Returns the kinds that a CRD declares, if it is established and its kinds or names have changed.
///
/// # Errors
/// Objects are stored in a version that was removed.
fn declared_anew(
    store: &Store,
    old: &Value,
    new: &Value,
) -> Result<Option<Vec<ServedKind>>, Refusal> {
    let is_kept = |path: &[&str]| object::at(old, path) == object::at(new, path);
    let is_same = is_kept(&["spec"]) && is_kept(&["status", "acceptedNames"]);
    if is_same || !crd::is_established(new) {
        return Ok(None);
    }
    let mut declared = crd::read(new)?;
    for kind in &mut declared {
        kind.was_changed = true;
    }
    check_readable(store, &declared)?;
    Ok(Some(declared))
}

/// Whether the new state equals the stored one.
fn is_stored_so(store: &Store, kind: &ServedKind, new: &Value, outcome: WriteOutcome) -> bool {
    if kind.siblings.is_empty() || outcome.removes {
        return outcome.same;
    }
    // An object that is equal in this version may be stored in another.
    let stored = store.get(&stored_id(kind), &Key::of(new));
    !outcome.hides && stored.is_some_and(|stored| stored.read() == *new)
}

/// Restores the metadata that a client cannot change or may omit.
fn keep_metadata(old: &Value, new: &mut Value) {
    let metadata = object::metadata(new);
    for key in ["generation", "creationTimestamp", "resourceVersion"] {
        let value = object::at(old, &["metadata", key]).cloned();
        object::set(metadata, key, value);
    }
    for key in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let given = metadata.contains_key(key) && key != "deletionTimestamp";
        if let (Some(value), false) = (object::at(old, &["metadata", key]), given) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
}

/// Whether the annotations of a Deployment change, which counts for its generation.
fn is_rollout(params: &WriteParams, old: &Value, new: &Value) -> bool {
    let path = ["metadata", "annotations"];
    params.kind.is("apps", "deployments")
        && params.subresource == Subresource::None
        && object::at(old, &path) != object::at(new, &path)
}

/// Whether a write changes nothing except for the times in `managedFields`.
fn is_same(old: &Value, new: &Value) -> bool {
    fn but<'v>(value: Option<&'v Value>, left_out: &str) -> Vec<(&'v String, &'v Value)> {
        let fields = value.and_then(Value::as_object).into_iter().flatten();
        fields.filter(|(key, _)| *key != left_out).collect()
    }
    let entries = ["metadata", "managedFields"];
    let (before, after) = (object::items(old, &entries), object::items(new, &entries));
    // A time that changes the order of the entries is a change.
    let same_entries = before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(a, b)| but(Some(a), "time") == but(Some(b), "time"));
    same_entries
        && but(Some(old), "metadata") == but(Some(new), "metadata")
        && but(old.get("metadata"), "managedFields") == but(new.get("metadata"), "managedFields")
}
