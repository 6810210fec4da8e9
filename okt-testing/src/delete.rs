//! This file deletes objects, and what goes with them: dependents, the content of a namespace, the
//! objects of a CRD.
//!
//! What controllers of a cluster do in their own time happens here within the same request.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    crd,
    kind::{Kind, KindId, Origin},
    object,
    refusal::Refusal,
    store::{Key, Place, Store},
    stored::Stored,
    write::{Precondition, raise_generation, stored_id},
};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What becomes of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How a deletion is asked for.
#[derive(Debug)]
pub(crate) struct Deletion {
    pub(crate) precondition: Precondition,
    pub(crate) propagation: Propagation,
    pub(crate) dry_run: bool,
}

/// Deletes an object; the answer is the object where it waits for finalizers, else a `Status`.
pub(crate) fn delete(
    store: &mut Store,
    kind: &Arc<Kind>,
    key: &Key,
    deletion: &Deletion,
) -> Result<Value, Refusal> {
    let Some(old) = store.get(&stored_id(kind), key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let old = old.read();
    deletion.precondition.check_delete(kind, &old)?;
    let is_shown = ["serviceaccounts", "persistentvolumeclaims", "services"]
        .iter()
        .any(|plural| kind.is("", plural));
    if deletion.dry_run {
        let marked = mark(kind, &old, deletion.propagation, &store.clock.text());
        return Ok(match marked {
            Some(marked) => marked,
            None if is_shown => old,
            None => success(kind, &old),
        });
    }
    Ok(match remove(store, kind, &old, deletion.propagation) {
        Left::Marked(left) => left.read(),
        Left::Nothing(last) if is_shown => last.read(),
        Left::Nothing(_) => success(kind, &old),
    })
}

fn success(kind: &Kind, object: &Value) -> Value {
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

/// What is left of an object that was deleted.
enum Left {
    /// It waits for somebody.
    Marked(Arc<Stored>),
    /// It is gone; this was its last state, under the version of its removal.
    Nothing(Arc<Stored>),
}

/// Removes an object or, where finalizers hold it, marks it.
fn remove(store: &mut Store, kind: &Arc<Kind>, old: &Value, propagation: Propagation) -> Left {
    let id = stored_id(kind);
    let place = Place {
        kind: id.clone(),
        key: Key::of(old),
    };
    let Some(mut marked) = mark(kind, old, propagation, &store.clock.text()) else {
        let last = store.remove(&id, &mut old.clone());
        after_removal(store, kind, &last);
        return Left::Nothing(last);
    };
    // What is marked already is not marked again, unless it was not written as it is shown.
    let is_marked = object::is_deleting(old) && !store.is_hiding(&id, &place.key);
    let marked = match store.at(&place) {
        Some(marked) if is_marked => Arc::clone(marked),
        _ => store.put(&id, &mut marked),
    };
    proceed(store, kind, &place);
    Left::Marked(marked)
}

/// The object with the marks of its deletion; nothing where it does not have to wait for anybody.
fn mark(kind: &Kind, old: &Value, propagation: Propagation, now: &str) -> Option<Value> {
    let mut finalizers: Vec<String> = object::finalizers(old)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let own = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let own = own.or((kind.is(crd::GROUP, crd::PLURAL)).then_some(CRD_CLEANUP));
    if let Some(own) = own
        && !finalizers.iter().any(|finalizer| finalizer == own)
    {
        finalizers.push(own.to_owned());
    }
    let is_namespace = kind.is("", "namespaces");
    if finalizers.is_empty() && !is_namespace {
        return None;
    }
    let mut marked = old.clone();
    if object::is_deleting(old) {
        return Some(marked);
    }
    let metadata = object::metadata(&mut marked);
    metadata.insert("deletionTimestamp".to_owned(), now.into());
    if !is_namespace {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
    }
    if !finalizers.is_empty() {
        metadata.insert("finalizers".to_owned(), finalizers.into());
    }
    if metadata.contains_key("generation") {
        raise_generation(&mut marked);
    }
    if is_namespace {
        object::put(&mut marked, &["status", "phase"], "Terminating".into());
    }
    Some(marked)
}

/// Does what the finalizers of Kubernetes itself wait for, as far as it can be done now.
fn proceed(store: &mut Store, kind: &Arc<Kind>, place: &Place) {
    let Some(object) = store.at(place) else {
        return;
    };
    let object = object.read();
    let uid = object::uid(&object).to_owned();
    let has = |finalizer: &str| object::finalizers(&object).contains(&finalizer);
    if has(FOREGROUND) {
        let mut blocked = false;
        for dependent in store.dependents(&uid) {
            delete_dependent(store, &dependent, &uid);
            blocked |= store
                .at(&dependent)
                .is_some_and(|dependent| blocks(&dependent.read(), &uid));
        }
        if !blocked {
            drop_finalizer(store, kind, place, FOREGROUND);
        }
    } else if has(ORPHAN) {
        for dependent in store.dependents(&uid) {
            disown(store, &dependent, &uid);
        }
        drop_finalizer(store, kind, place, ORPHAN);
    } else if has(CRD_CLEANUP) {
        proceed_crd(store, kind, place, &object);
    } else if kind.is("", "namespaces") {
        proceed_namespace(store, kind, place);
    }
}

fn blocks(dependent: &Value, owner: &str) -> bool {
    object::owners(dependent).iter().any(|reference| {
        object::text(reference, &["uid"]) == owner
            && reference.get("blockOwnerDeletion") == Some(&true.into())
    })
}

fn proceed_crd(store: &mut Store, kind: &Arc<Kind>, place: &Place, crd: &Value) {
    let id = KindId {
        group: object::text(crd, &["spec", "group"]).to_owned(),
        plural: object::text(crd, &["spec", "names", "plural"]).to_owned(),
    };
    let objects: Vec<_> = store
        .list(&id, None)
        .map(|(_, object)| Arc::clone(object))
        .collect();
    if let Some(declared) = store.kind(&id).cloned() {
        for object in objects.iter().filter(|object| !object.is_deleting()) {
            remove(store, &declared, &object.read(), Propagation::Background);
        }
    }
    if store.at(place).is_some() && store.list(&id, None).next().is_none() {
        store.remove_kind(&id);
        drop_finalizer(store, kind, place, CRD_CLEANUP);
    }
}

fn proceed_namespace(store: &mut Store, kind: &Arc<Kind>, place: &Place) {
    let namespace = place.key.name.clone();
    for inner in store.in_namespace(&namespace) {
        if let (Some(object), Some(kind)) =
            (store.at(&inner).cloned(), store.kind(&inner.kind).cloned())
            && !object.is_deleting()
        {
            remove(store, &kind, &object.read(), Propagation::Background);
        }
    }
    if store.in_namespace(&namespace).is_empty()
        && let Some(mut object) = store.at(place).map(|object| object.read())
        && object::finalizers(&object).is_empty()
    {
        let last = store.remove(&place.kind, &mut object);
        after_removal(store, kind, &last);
    }
}

fn drop_finalizer(store: &mut Store, kind: &Arc<Kind>, place: &Place, finalizer: &str) {
    let Some(object) = store.at(place) else {
        return;
    };
    let mut object = object.read();
    let rest: Vec<Value> = object::finalizers(&object)
        .into_iter()
        .filter(|&other| other != finalizer)
        .map(Value::from)
        .collect();
    let empty = rest.is_empty();
    let rest = (!empty).then(|| rest.into());
    object::set(object::metadata(&mut object), "finalizers", rest);
    if empty {
        let last = store.remove(&place.kind, &mut object);
        after_removal(store, kind, &last);
    } else {
        store.put(&place.kind, &mut object);
    }
}

/// What follows when an object is gone.
pub(crate) fn after_removal(store: &mut Store, kind: &Arc<Kind>, last: &Stored) {
    let uid = last.uid();
    for dependent in store.dependents(uid) {
        delete_dependent(store, &dependent, uid);
    }
    // Whoever waited for it may go on.
    for owner in last.owners() {
        let Some(place) = store.by_uid(owner).cloned() else {
            continue;
        };
        proceed_if_deleting(store, &place);
    }
    if kind.namespaced {
        let namespace = place_of("", "namespaces", object::namespace(&last.read()));
        proceed_if_deleting(store, &namespace);
    }
    if kind.is(crd::GROUP, crd::PLURAL) {
        let last = last.read();
        crd::reconsider(store, object::text(&last, &["spec", "group"]));
    }
    if kind.origin == Origin::Crd {
        let name = format!("{}.{}", kind.plural, kind.group);
        proceed_if_deleting(store, &place_of(crd::GROUP, crd::PLURAL, &name));
    }
}

fn proceed_if_deleting(store: &mut Store, place: &Place) {
    let deleting = store.at(place).is_some_and(|object| object.is_deleting());
    if deleting && let Some(kind) = store.kind(&place.kind).cloned() {
        proceed(store, &kind, place);
    }
}

fn place_of(group: &str, plural: &str, name: &str) -> Place {
    Place {
        kind: KindId {
            group: group.to_owned(),
            plural: plural.to_owned(),
        },
        key: Key {
            namespace: String::new(),
            name: name.to_owned(),
        },
    }
}

/// Deletes a dependent of an owner that is going, unless it has another one.
fn delete_dependent(store: &mut Store, place: &Place, owner: &str) {
    let (Some(object), Some(kind)) = (store.at(place).cloned(), store.kind(&place.kind).cloned())
    else {
        return;
    };
    let has_another = object
        .owners()
        .any(|uid| uid != owner && store.is_alive(uid));
    if has_another {
        disown(store, place, owner);
    } else if !object.is_deleting() {
        remove(store, &kind, &object.read(), Propagation::Background);
    }
}

/// Takes the reference to an owner away.
fn disown(store: &mut Store, place: &Place, owner: &str) {
    let Some(object) = store.at(place) else {
        return;
    };
    let mut object = object.read();
    let rest: Vec<Value> = object::owners(&object)
        .iter()
        .filter(|reference| object::text(reference, &["uid"]) != owner)
        .cloned()
        .collect();
    let rest = (!rest.is_empty()).then(|| rest.into());
    object::set(object::metadata(&mut object), "ownerReferences", rest);
    store.put(&place.kind, &mut object);
}

/// Collects an object that names owners none of which exists.
pub(crate) fn collect_if_orphaned(store: &mut Store, id: &KindId, object: &Stored) {
    let orphaned =
        object.owners().next().is_some() && !object.owners().any(|owner| store.is_alive(owner));
    if orphaned
        && !object.is_deleting()
        && let Some(kind) = store.kind(id).cloned()
    {
        remove(store, &kind, &object.read(), Propagation::Background);
    }
}

/// No object of a kind is made while its CRD is going.
pub(crate) fn check_not_terminating(store: &Store, kind: &Kind, name: &str) -> Result<(), Refusal> {
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
