//! The last stage: the object is stored.

use std::mem;
use std::sync::Arc;

use serde_json::Value;

use super::shown::{check_readable, hide, reread};
use super::{Write, WriteOutcome};
use crate::convert::{self, Foreseen, current, stored_id};
use crate::kind::ServedKind;
use crate::refusal::Refusal;
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::{crd, delete, object, strategy};

impl Write {
    /// Converts the validated object to the form in which it is stored and read.
    pub(super) fn convert(&mut self) -> Result<(), Refusal> {
        let Self { params, new, .. } = self;
        if let Some(old) = &self.old {
            self.outcome.same = is_same(old, new);
            if self.outcome.same {
                // A change of the times of entries alone is no change.
                let entries = object::at(old, &["metadata", "managedFields"]).cloned();
                object::set(object::metadata(new), "managedFields", entries);
            }
            self.outcome.removes = delete::is_gone(&params.kind, new);
        }
        if !self.outcome.removes {
            *new = convert::absorb(params.calls(), &params.kind, mem::take(new))?;
            self.outcome.hides = hide(params, new);
        }
        Ok(())
    }

    /// Commits a new object.
    pub(super) fn commit_new(&mut self, store: &mut Store) -> Result<Arc<StoredObject>, Refusal> {
        let Self { params, new, .. } = self;
        let (kind, calls) = (&params.kind, params.calls());
        let foreseen = Foreseen::of(calls, kind, new)?;
        calls.check_made()?;
        let (id, key) = (stored_id(kind), Key::of(new));
        if !object::version(new).is_empty() && !params.dry_run {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Refusal::new(500, "", why));
        }
        if let Some(found) = store.get(&id, &key) {
            let subject = kind.subject(&key.name);
            return Err(Refusal::already_exists(subject, found.is_deleting()));
        }
        if params.dry_run {
            return Ok(foreseen.show(kind, &Arc::new(StoredObject::new(new))));
        }
        object::metadata(new).remove("resourceVersion");
        let created = store.put(&id, new);
        if self.outcome.hides {
            store.set_hiding(&id, key);
        }
        if let Some(declared) = self.declared.take() {
            store.add_kind(declared.into_iter().map(Arc::new).collect());
        }
        delete::after_write(store, &id, None, &created);
        Ok(foreseen.show(kind, &created))
    }

    /// Commits a change.
    pub(super) fn commit_update(
        &mut self,
        store: &mut Store,
    ) -> Result<Arc<StoredObject>, Refusal> {
        let Self { params, new, .. } = self;
        let (kind, calls, outcome) = (&params.kind, params.calls(), self.outcome);
        let (id, key) = (stored_id(kind), Key::of(new));
        strategy::allocate(store, kind, new)?;
        if let Some(old) = &self.old {
            strategy::date_conditions(kind, old, new, &store.clock.text());
        }
        calls.check_made()?;
        // A write to an object whose written form differs from the one that is read is always a change.
        let unchanged = !store.is_hiding(&id, &key) && is_stored_so(store, kind, new, outcome);
        if unchanged && let Some(same) = current(calls, store, kind, &key)? {
            return Ok(same);
        }
        let old = self.old.as_ref().unwrap_or(&Value::Null);
        if outcome.removes {
            // The last state is the stored one; the change that removes the object appears only in the answer.
            if !params.dry_run {
                let mut stored = convert::stored_form(store, kind, old);
                let last = store.remove(&id, &mut stored);
                delete::after_removal(store, kind, &last);
            }
            return Ok(Arc::new(StoredObject::new(new)));
        }
        let foreseen = Foreseen::of(calls, kind, new)?;
        if params.dry_run {
            return Ok(foreseen.show(kind, &Arc::new(StoredObject::new(new))));
        }
        let is_crd = kind.is(crd::GROUP, crd::PLURAL);
        let mut declared = None;
        if is_crd {
            let now = store.clock.text();
            crd::accept(store, new, &now);
            declared = declared_anew(store, old, new)?;
        }
        let shown = store.put(&id, new);
        if outcome.hides {
            store.set_hiding(&id, key);
        }
        if let Some(declared) = declared {
            reread(store, declared);
        }
        if is_crd {
            crd::reconsider(store, object::text(new, &["spec", "group"]));
        }
        delete::after_write(store, &id, Some(old), &shown);
        Ok(foreseen.show(kind, &shown))
    }
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
