//! Deletes objects.

mod cascade;
mod mark;

pub(crate) use self::mark::Propagation;

use std::sync::Arc;

use serde_json::{Value, json};

use self::cascade::{Cascade, Left, place_of};
use self::mark::mark;
use crate::api::admission::Admission;
use crate::api::convert::{self, Foreseen, current};
use crate::api::kind::{KindId, ServedKind};
use crate::api::refusal::{Refusal, Subject};
use crate::api::store::{Key, Store};
use crate::api::stored::StoredObject;
use crate::api::{crd, object};

/// The parameters of a deletion.
#[derive(Debug)]
pub(crate) struct Deletion {
    /// The object must have this uid.
    pub(crate) uid: Option<String>,
    /// The object must be of this version.
    pub(crate) version: Option<String>,
    /// `None` if the request sets none; then the existing finalizers decide.
    pub(crate) propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

impl Deletion {
    /// Checks the preconditions against the current object.
    fn check(&self, kind: &ServedKind, object: &Value) -> Result<(), Refusal> {
        let (uid, version) = (object::uid(object), object::version(object));
        let differs = |asked: &Option<String>, found: &str| {
            let asked = asked.as_deref();
            asked.filter(|asked| *asked != found).map(str::to_owned)
        };
        let why = if let Some(asked) = differs(&self.uid, uid) {
            format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            )
        } else if let Some(asked) = differs(&self.version, version) {
            format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
            )
        } else {
            return Ok(());
        };
        // Here a server names the kind instead of the resource.
        let subject = Subject {
            plural: &kind.kind,
            ..kind.subject(object::name(object))
        };
        Err(Refusal::conflict(subject, &why))
    }
}

/// The result of a deletion.
pub(crate) struct Deleted {
    /// The object if its deletion is pending, else a `Status`.
    pub(crate) answer: Value,
    pub(crate) waits: bool,
}

/// A deletion that nothing can prevent any more.
pub(crate) struct AllowedDeletion {
    /// The object in the version of the request.
    object: Value,
    /// The time of the request.
    now: String,
    /// How the object is shown if it stays, marked.
    marked: Foreseen,
}

/// Checks that an object may be deleted.
///
/// # Errors
/// There is no such object, it is not the one that is meant, or a webhook refuses its deletion or is yet to be called.
pub(crate) fn allow(
    store: &Store,
    admission: &Admission,
    kind: &Arc<ServedKind>,
    key: &Key,
    deletion: &Deletion,
) -> Result<AllowedDeletion, Refusal> {
    let calls = admission.calls();
    let Some(shown) = current(calls, store, kind, key)? else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let object = shown.read();
    deletion.check(kind, &object)?;
    admission.check_deletion(&object)?;
    let now = calls.once("now", || store.clock.text());
    // Where a webhook converts, an object is marked in the version in which it is stored.
    let marked = kind.conversion.as_ref().and_then(|_| {
        let stored = convert::stored_form(store, kind, &object);
        mark(kind, &stored, deletion.propagation, &now)
    });
    let marked = Foreseen::of(calls, kind, marked.as_ref().unwrap_or(&object))?;
    calls.check_made()?;
    Ok(AllowedDeletion {
        object,
        now,
        marked,
    })
}

/// Deletes an object, or marks it as deleting if it has finalizers.
pub(crate) fn delete(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    allowed: AllowedDeletion,
    deletion: &Deletion,
) -> Deleted {
    let AllowedDeletion {
        object: old,
        now,
        marked: foreseen,
    } = allowed;
    let is_shown = ["serviceaccounts", "persistentvolumeclaims", "services"]
        .iter()
        .any(|plural| kind.is("", plural));
    if deletion.dry_run {
        let marked = mark(kind, &old, deletion.propagation, &now);
        return Deleted {
            waits: marked.is_some(),
            answer: match marked {
                Some(marked) => marked,
                None if is_shown => old,
                None => success(kind, &old),
            },
        };
    }
    let left = remove(store, kind, &old, now, deletion);
    Deleted {
        waits: matches!(left, Left::Marked(_)),
        answer: match left {
            Left::Marked(left) => foreseen.show(kind, &left).read(),
            Left::Nothing(last) if is_shown => last.read(),
            Left::Nothing(_) => success(kind, &old),
        },
    }
}

/// Deletes an object of a collection, which nothing can prevent any more: it may have changed, or be gone, with one that
/// was deleted before it.
pub(crate) fn delete_shown(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    shown: &Arc<StoredObject>,
    now: &str,
    deletion: &Deletion,
) {
    let shown = shown.read();
    let stored = store.get(&convert::stored_id(kind), &Key::of(&shown));
    let (Some(stored), false) = (stored, deletion.dry_run) else {
        return;
    };
    let old = if kind.conversion.is_some() {
        shown
    } else {
        Foreseen::default().show(kind, stored).read()
    };
    remove(store, kind, &old, now.to_owned(), deletion);
}

fn remove(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    old: &Value,
    now: String,
    deletion: &Deletion,
) -> Left {
    let mut cascade = Cascade::at(now);
    let left = cascade.remove(store, kind, old, deletion.propagation);
    cascade.run(store);
    left
}

fn success(kind: &ServedKind, object: &Value) -> Value {
    let mut details = json!({
        "name": object::name(object),
        "kind": kind.plural,
        "uid": object::uid(object),
    });
    if !kind.group.is_empty() {
        details["group"] = kind.group.clone().into();
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}

/// Runs the consequences of the removal of an object.
pub(crate) fn after_removal(store: &mut Store, kind: &Arc<ServedKind>, last: &StoredObject) {
    let mut cascade = Cascade::at(store.clock.text());
    cascade.after_removal(store, kind, last);
    cascade.run(store);
}

/// Collects an object whose owners are all gone.
pub(crate) fn collect_if_orphaned(store: &mut Store, id: &KindId, object: &StoredObject) {
    let orphaned =
        object.owners().next().is_some() && !object.owners().any(|owner| store.is_alive(owner));
    if orphaned
        && !object.is_deleting()
        && let Some(kind) = store.kind(id).cloned()
    {
        let mut cascade = Cascade::at(store.clock.text());
        cascade.remove(store, &kind, &object.read(), None);
        cascade.run(store);
    }
}

/// Refuses to create an object whose CRD is being deleted.
pub(crate) fn check_not_terminating(
    store: &Store,
    kind: &ServedKind,
    name: &str,
) -> Result<(), Refusal> {
    let crd = format!("{}.{}", kind.plural, kind.group);
    let place = place_of(crd::GROUP, crd::PLURAL, &crd);
    match store.at(&place) {
        Some(found) if found.is_deleting() => Err(Refusal::forbidden(
            kind.subject(name),
            "create not allowed while custom resource definition is terminating",
        )),
        _ => Ok(()),
    }
}
