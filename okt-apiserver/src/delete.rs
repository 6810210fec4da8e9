//! Deletes objects.

mod cleanup;
mod mark;
mod namespaces;
mod protection;

pub(crate) use self::cleanup::{after_removal, after_write, clean_up_soon, is_gone};
pub(crate) use self::mark::{Manner, Propagation};

use std::sync::Arc;

use serde_json::{Value, json};

use self::cleanup::{Left, remove};
use self::mark::mark;
use crate::admission::Admission;
use crate::convert::{self, Foreseen, current};
use crate::kind::{KindId, ServedKind};
use crate::refusal::{Refusal, Subject};
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::{crd, object};

/// The namespaces that no client may delete.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The parameters of a deletion.
#[derive(Debug)]
pub(crate) struct Deletion {
    /// The object must have this uid.
    pub(crate) uid: Option<String>,
    /// The object must be of this version.
    pub(crate) version: Option<String>,
    pub(crate) manner: Manner,
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

impl AllowedDeletion {
    /// Returns the object, which an eviction changes before it is deleted.
    pub(crate) fn object(&mut self) -> &mut Value {
        &mut self.object
    }
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
    if kind.is("", "namespaces") && IMMORTAL.contains(&key.name.as_str()) {
        let why = "this namespace may not be deleted";
        return Err(Refusal::forbidden(kind.subject(&key.name), why));
    }
    admission.check_deletion(&object)?;
    let now = calls.once("now", || store.clock.text());
    // Where a webhook converts, an object is marked in the version in which it is stored.
    let marked = kind.conversion.as_ref().and_then(|_| {
        let stored = convert::stored_form(store, kind, &object);
        mark(kind, &stored, deletion.manner, &now)
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
    if deletion.dry_run {
        let marked = mark(kind, &old, deletion.manner, &now);
        return Deleted {
            waits: marked.as_ref().is_some_and(|marked| !is_gone(kind, marked)),
            answer: match marked {
                Some(marked) => marked,
                None if kind.returns_deleted => old,
                None => success(kind, &old),
            },
        };
    }
    let left = remove(store, kind, &old, deletion.manner, &now);
    Deleted {
        waits: matches!(left, Left::Marked(_)),
        answer: match left {
            Left::Marked(left) => foreseen.show(kind, &left).read(),
            Left::Nothing(last) if kind.returns_deleted => last.read(),
            Left::Nothing(_) => success(kind, &old),
        },
    }
}

/// Deletes an object of a collection, which nothing can prevent any more; the deletion of a CRD may have changed it.
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
    remove(store, kind, &old, deletion.manner, now);
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

/// Refuses to create an object whose namespace or CRD is missing or being deleted.
pub(crate) fn check_creatable(store: &Store, kind: &ServedKind, key: &Key) -> Result<(), Refusal> {
    let is_terminating = |id: &KindId, name: &str| {
        let found = store.get(id, &Key::new("", name));
        found.map(|found| found.is_deleting())
    };
    let namespaces = KindId::new("", "namespaces");
    let namespace = &key.namespace;
    if kind.namespaced {
        match (
            is_terminating(&namespaces, namespace),
            store.kind(&namespaces),
        ) {
            (Some(true), _) => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                let cause = json!({
                    "reason": "NamespaceTerminating",
                    "message": format!("namespace {namespace} is being terminated"),
                    "field": "metadata.namespace",
                });
                let subject = kind.subject(&key.name);
                return Err(Refusal::forbidden(subject, &why).caused(&cause));
            }
            (None, Some(namespaces)) => {
                return Err(Refusal::not_found(namespaces.subject(namespace)));
            }
            _ => {}
        }
    }
    let crd = format!("{}.{}", kind.plural, kind.group);
    if is_terminating(&KindId::new(crd::GROUP, crd::PLURAL), &crd) == Some(true) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Refusal::forbidden(kind.subject(&key.name), why));
    }
    Ok(())
}
