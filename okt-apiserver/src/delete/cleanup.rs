//! What the controllers of Kubernetes itself do after a deletion: they delete dependents, the content of a namespace and
//! the objects of a CRD, and release claims and volumes that nobody uses.
//!
//! A deletion leaves steps in the store; they run a moment later, all at once. They run step by step, so that a cascade
//! over thousands of objects needs no deeper stack than one deletion.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;

use super::mark::{CRD_CLEANUP, FOREGROUND, Manner, ORPHAN, mark};
use super::{namespaces, protection};
use crate::convert::{self, stored_id};
use crate::kind::{KindId, ServedKind};
use crate::state::Shared;
use crate::store::{CleanupStep, Key, Store, StorePlace};
use crate::stored::StoredObject;
use crate::{crd, object, strategy};

/// How long the controllers take until they act, on tokio's clock.
const MOMENT: Duration = Duration::from_millis(100);

/// The state of an object after its deletion.
pub(super) enum Left {
    /// The object is marked; its deletion is pending.
    Marked(Arc<StoredObject>),
    /// The object is gone; this is its last state, with the version of its removal.
    Nothing(Arc<StoredObject>),
}

/// The work that Kubernetes itself does before it removes an object that is being deleted.
enum Duty {
    Foreground,
    Orphan,
    Crd(KindId),
    Namespace,
    /// It keeps a claim or a volume that is used, by this finalizer.
    Protect(&'static str),
}

impl Duty {
    fn of(kind: &ServedKind, object: &Value) -> Option<Self> {
        let finalizers = object::finalizers(object);
        if finalizers.contains(&FOREGROUND) {
            Some(Self::Foreground)
        } else if finalizers.contains(&ORPHAN) {
            Some(Self::Orphan)
        } else if finalizers.contains(&CRD_CLEANUP) {
            Some(Self::Crd(crd::declared_id(object)))
        } else if let Some(finalizer) = strategy::protection(kind)
            && finalizers.contains(&finalizer)
        {
            Some(Self::Protect(finalizer))
        } else {
            kind.is("", "namespaces").then_some(Self::Namespace)
        }
    }
}

/// Removes an object, or marks it if something keeps it.
pub(super) fn remove(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    old: &Value,
    manner: Manner,
    now: &str,
) -> Left {
    let id = stored_id(kind);
    let place = StorePlace::new(&id, &Key::of(old));
    let stored;
    let old = if kind.conversion.is_some() {
        // The server marks an object in its stored version, because it calls no webhook here.
        stored = convert::stored_form(store, kind, old);
        &stored
    } else {
        old
    };
    let Some(marked) = mark(kind, old, manner, now) else {
        let mut stored = convert::stored_form(store, kind, old);
        let last = store.remove(&id, &mut stored);
        after_removal(store, kind, &last);
        return Left::Nothing(last);
    };
    // A marked object is not marked again, unless its stored form differs from the shown one.
    let is_marked = marked == *old && !store.is_hiding(&id, &place.key);
    let marked = match store.at(&place) {
        Some(marked) if is_marked => Arc::clone(marked),
        _ => store.put(&id, &mut convert::absorb_unasked(kind, marked)),
    };
    let mut last = marked.read();
    if is_gone(kind, &last) {
        let last = store.remove(&id, &mut last);
        after_removal(store, kind, &last);
        return Left::Nothing(last);
    }
    store.cleanup.push(CleanupStep::Proceed(place));
    Left::Marked(marked)
}

/// Whether nothing keeps an object any more; a namespace is kept by its content.
pub(crate) fn is_gone(kind: &ServedKind, object: &Value) -> bool {
    object::is_gone(object) && !kind.is("", "namespaces")
}

/// Leaves the consequences of the removal of an object to the controllers.
pub(crate) fn after_removal(store: &mut Store, kind: &ServedKind, last: &StoredObject) {
    let object = last.read();
    if kind.is(crd::GROUP, crd::PLURAL) {
        // Its kind is no longer served, and another CRD may take its names.
        store.remove_kind(&crd::declared_id(&object));
        crd::reconsider(store, object::text(&object, &["spec", "group"]));
    }
    // Pushed in reverse order, because the last step runs first.
    let mut waiting = Vec::new();
    if !kind.is_built_in() {
        let name = format!("{}.{}", kind.plural, kind.group);
        waiting.push(place_of(crd::GROUP, crd::PLURAL, &name));
    }
    if kind.namespaced {
        waiting.push(place_of("", "namespaces", object::namespace(&object)));
    }
    waiting.extend(protection::claims_of(kind, &object));
    waiting.extend(
        last.owners()
            .filter_map(|owner| store.by_uid(owner))
            .cloned(),
    );
    waiting.retain(|place| store.at(place).is_some_and(|found| found.is_deleting()));
    store
        .cleanup
        .extend(waiting.into_iter().map(CleanupStep::Proceed));
    collect_all(store, last.uid());
}

/// Leaves the consequences of a write to the controllers.
///
/// `old` is the object before, if there was one.
pub(crate) fn after_write(
    store: &mut Store,
    id: &KindId,
    old: Option<&Value>,
    object: &StoredObject,
) {
    // An owner that is being deleted may no longer have to wait for this object.
    let owners = old.into_iter().flat_map(object::owners);
    let owners = owners.filter_map(|owner| store.by_uid(object::text(owner, &["uid"])));
    let owners = owners.filter(|place| store.at(place).is_some_and(|owner| owner.is_deleting()));
    let owners: Vec<_> = owners.cloned().map(CleanupStep::Proceed).collect();
    store.cleanup.extend(owners);
    let place = || StorePlace::new(id, &Key::of(&object.read()));
    if object.is_deleting() {
        // The last finalizer that others had may be gone, or the last use of a volume.
        if let Some(kind) = store.kind(id)
            && Duty::of(kind, &object.read()).is_some()
        {
            store.cleanup.push(CleanupStep::Proceed(place()));
        }
    } else if is_orphan(store, object) {
        store.cleanup.push(CleanupStep::CollectOrphan(place()));
    }
}

fn is_orphan(store: &Store, object: &StoredObject) -> bool {
    object.owners().next().is_some() && !object.owners().any(|owner| store.is_alive(owner))
}

fn collect_all(store: &mut Store, owner: &str) {
    let dependents = store.dependents(owner).into_iter().rev();
    store
        .cleanup
        .extend(dependents.map(|dependent| CleanupStep::Collect {
            dependent,
            owner: owner.to_owned(),
        }));
}

/// Lets the controllers act a moment from now.
pub(crate) fn clean_up_soon(shared: &Arc<Shared>) {
    if shared.cleans.swap(true, Ordering::AcqRel) {
        return;
    }
    let Ok(runtime) = Handle::try_current() else {
        shared.cleans.store(false, Ordering::Release);
        return Cleanup::run(&mut shared.lock());
    };
    let turn = CleanupTurn(Arc::downgrade(shared));
    runtime.spawn(async move {
        tokio::time::sleep(MOMENT).await;
        let Some(shared) = turn.0.upgrade() else {
            return;
        };
        drop(turn);
        Cleanup::run(&mut shared.lock());
    });
}

/// The turn of the controllers, which begins anew if the runtime of a test ends before.
struct CleanupTurn(Weak<Shared>);

impl Drop for CleanupTurn {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.cleans.store(false, Ordering::Release);
        }
    }
}

/// The controllers at work.
#[derive(Default)]
struct Cleanup {
    /// The objects whose deletion is under way; they are checked again after all their dependents were deleted.
    under_way: BTreeSet<StorePlace>,
}

impl Cleanup {
    /// Runs all steps.
    fn run(store: &mut Store) {
        let mut cleanup = Self::default();
        while let Some(step) = store.cleanup.pop() {
            match step {
                CleanupStep::Remove(place) => remove_at(store, &place),
                CleanupStep::Collect { dependent, owner } => collect(store, &dependent, &owner),
                CleanupStep::CollectOrphan(place) => {
                    if store
                        .at(&place)
                        .is_some_and(|object| is_orphan(store, object))
                    {
                        remove_at(store, &place);
                    }
                }
                CleanupStep::Proceed(place) => cleanup.proceed(store, &place),
                CleanupStep::Conclude(place) => cleanup.conclude(store, &place),
            }
        }
    }

    fn proceed(&mut self, store: &mut Store, place: &StorePlace) {
        let (Some(object), Some(kind)) = (store.at(place), store.kind(&place.kind)) else {
            return;
        };
        if !object.is_deleting() || self.under_way.contains(place) {
            return;
        }
        let object = object.read();
        let Some(duty) = Duty::of(kind, &object) else {
            return;
        };
        self.under_way.insert(place.clone());
        store.cleanup.push(CleanupStep::Conclude(place.clone()));
        match duty {
            Duty::Foreground => collect_all(store, object::uid(&object)),
            Duty::Orphan => {
                let uid = object::uid(&object);
                for dependent in store.dependents(uid) {
                    disown(store, &dependent, uid);
                }
            }
            Duty::Crd(id) => {
                let mut crd = object.clone();
                let explained = (
                    "InstanceDeletionInProgress",
                    "CustomResource deletion is in progress",
                );
                crd::terminate(&mut crd, explained, &store.clock.text());
                if crd != object {
                    store.put(&place.kind, &mut crd);
                }
                let places = store.list(&id, None);
                let places: Vec<_> = places.map(|(key, _)| StorePlace::new(&id, key)).collect();
                store
                    .cleanup
                    .extend(places.into_iter().rev().map(CleanupStep::Remove));
            }
            Duty::Namespace => {
                let content = store.in_namespace(&place.key.name).into_iter().rev();
                store.cleanup.extend(content.map(CleanupStep::Remove));
            }
            Duty::Protect(_) => {}
        }
    }

    fn conclude(&mut self, store: &mut Store, place: &StorePlace) {
        self.under_way.remove(place);
        let (Some(stored), Some(kind)) = (store.at(place), store.kind(&place.kind).cloned()) else {
            return;
        };
        let mut object = stored.read();
        match Duty::of(&kind, &object) {
            Some(Duty::Foreground) => {
                let uid = object::uid(&object);
                let blocks = |dependent: &StorePlace| {
                    store
                        .at(dependent)
                        .is_some_and(|dependent| blocks(&dependent.read(), uid))
                };
                if !store.dependents(uid).iter().any(blocks) {
                    drop_finalizer(store, &kind, place, FOREGROUND);
                }
            }
            Some(Duty::Orphan) => drop_finalizer(store, &kind, place, ORPHAN),
            Some(Duty::Crd(id)) if store.list(&id, None).next().is_none() => {
                drop_finalizer(store, &kind, place, CRD_CLEANUP);
            }
            Some(Duty::Namespace) => {
                let content = store.in_namespace(&place.key.name);
                if content.is_empty() && object::finalizers(&object).is_empty() {
                    let last = store.remove(&place.kind, &mut object);
                    after_removal(store, &kind, &last);
                    return;
                }
                let before = object.clone();
                namespaces::explain(store, &content, &mut object);
                if object != before {
                    store.put(&place.kind, &mut object);
                }
            }
            Some(Duty::Protect(finalizer)) if !protection::is_used(store, &kind, &object) => {
                drop_finalizer(store, &kind, place, finalizer);
            }
            // It waits for the remaining objects.
            Some(Duty::Crd(_) | Duty::Protect(_)) | None => {}
        }
    }
}

fn remove_at(store: &mut Store, place: &StorePlace) {
    if let (Some(object), Some(kind)) = (store.at(place).cloned(), store.kind(&place.kind).cloned())
        && !object.is_deleting()
    {
        let now = store.clock.text();
        remove(store, &kind, &object.read(), Manner::default(), &now);
    }
}

fn collect(store: &mut Store, dependent: &StorePlace, owner: &str) {
    let Some(object) = store.at(dependent) else {
        return;
    };
    // Since the step was left, another client may have changed it.
    if !object.owners().any(|uid| uid == owner) {
        return;
    }
    let has_another = object
        .owners()
        .any(|uid| uid != owner && store.is_alive(uid));
    if has_another {
        disown(store, dependent, owner);
    } else {
        remove_at(store, dependent);
    }
}

/// Drops a finalizer of Kubernetes itself, and removes the object if nothing else keeps it.
fn drop_finalizer(store: &mut Store, kind: &Arc<ServedKind>, place: &StorePlace, finalizer: &str) {
    let Some(stored) = store.at(place) else {
        return;
    };
    let mut object = stored.read();
    let rest: Vec<Value> = object::finalizers(&object)
        .into_iter()
        .filter(|&other| other != finalizer)
        .map(Value::from)
        .collect();
    let rest = (!rest.is_empty()).then(|| rest.into());
    object::set(object::metadata(&mut object), "finalizers", rest);
    if is_gone(kind, &object) {
        let last = store.remove(&place.kind, &mut object);
        after_removal(store, kind, &last);
    } else {
        store.put(&place.kind, &mut convert::absorb_unasked(kind, object));
        store.cleanup.push(CleanupStep::Proceed(place.clone()));
    }
}

fn blocks(dependent: &Value, owner: &str) -> bool {
    object::owners(dependent).iter().any(|reference| {
        object::text(reference, &["uid"]) == owner
            && reference.get("blockOwnerDeletion") == Some(&true.into())
    })
}

/// Removes the reference to an owner.
fn disown(store: &mut Store, place: &StorePlace, owner: &str) {
    let Some(stored) = store.at(place) else {
        return;
    };
    let mut object = stored.read();
    let owners: Vec<Value> = object::owners(&object)
        .iter()
        .filter(|reference| object::text(reference, &["uid"]) != owner)
        .cloned()
        .collect();
    let rest = (!owners.is_empty()).then(|| owners.into());
    object::set(object::metadata(&mut object), "ownerReferences", rest);
    if let Some(kind) = store.kind(&place.kind).cloned() {
        store.put(&place.kind, &mut convert::absorb_unasked(&kind, object));
    }
}

/// Returns the place of a cluster-scoped object.
pub(super) fn place_of(group: &str, plural: &str, name: &str) -> StorePlace {
    StorePlace::new(&KindId::new(group, plural), &Key::new("", name))
}
