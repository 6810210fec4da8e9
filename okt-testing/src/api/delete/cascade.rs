//! Runs the consequences of a deletion: it deletes dependents, the content of a namespace, and the objects of
//! a CRD.
//!
//! In a cluster, controllers do this asynchronously; here it happens within the same request. It runs step by step, so
//! that a cascade over thousands of objects needs no deeper stack than one deletion.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::mark::{CRD_CLEANUP, FOREGROUND, ORPHAN, Propagation, mark};
use crate::api::convert::{self, stored_id};
use crate::api::kind::{KindId, ServedKind};
use crate::api::store::{Key, Store, StorePlace};
use crate::api::stored::StoredObject;
use crate::api::{crd, object};

/// The state of an object after its deletion.
pub(super) enum Left {
    /// The object is marked; its deletion is pending.
    Marked(Arc<StoredObject>),
    /// The object is gone; this is its last state, with the version of its removal.
    Nothing(Arc<StoredObject>),
}

/// The steps that remain after a deletion.
#[derive(Debug)]
pub(super) struct Cascade {
    now: String,
    /// The steps as a stack, so that the consequences of a step run before the next step.
    steps: Vec<CascadeStep>,
    /// The objects whose deletion is under way; they are checked again after all their dependents were deleted.
    under_way: BTreeSet<StorePlace>,
}

#[derive(Debug)]
enum CascadeStep {
    /// Deletes an object, unless it is being deleted already.
    Remove(StorePlace),
    /// Deletes a dependent of an owner that is being deleted, unless it has another owner.
    Collect {
        dependent: StorePlace,
        owner: String,
    },
    /// Starts the work that the finalizers of Kubernetes itself wait for, if the object is being deleted.
    Proceed(StorePlace),
    /// Completes the work that `Proceed` started, as far as possible now.
    Conclude(StorePlace),
}

/// The work that Kubernetes itself does before it removes an object that is being deleted.
enum Duty {
    Foreground,
    Orphan,
    Crd(KindId),
    Namespace,
}

impl Duty {
    fn of(kind: &ServedKind, object: &Value) -> Option<Self> {
        let finalizers = object::finalizers(object);
        if finalizers.contains(&FOREGROUND) {
            Some(Self::Foreground)
        } else if finalizers.contains(&ORPHAN) {
            Some(Self::Orphan)
        } else if finalizers.contains(&CRD_CLEANUP) {
            let group = object::text(object, &["spec", "group"]);
            let plural = object::text(object, &["spec", "names", "plural"]);
            Some(Self::Crd(KindId::new(group, plural)))
        } else {
            kind.is("", "namespaces").then_some(Self::Namespace)
        }
    }
}

impl Cascade {
    /// Returns the steps of a deletion at this time: none yet.
    pub(super) fn at(now: String) -> Self {
        Self {
            now,
            steps: Vec::new(),
            under_way: BTreeSet::new(),
        }
    }

    /// Runs all remaining steps.
    pub(super) fn run(mut self, store: &mut Store) {
        while let Some(step) = self.steps.pop() {
            match step {
                CascadeStep::Remove(place) => self.remove_at(store, &place),
                CascadeStep::Collect { dependent, owner } => {
                    self.collect(store, &dependent, &owner);
                }
                CascadeStep::Proceed(place) => self.proceed(store, &place),
                CascadeStep::Conclude(place) => self.conclude(store, &place),
            }
        }
    }

    /// Removes an object, or marks it if it has finalizers.
    pub(super) fn remove(
        &mut self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        old: &Value,
        propagation: Option<Propagation>,
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
        let Some(marked) = mark(kind, old, propagation, &self.now) else {
            let mut stored = convert::stored_form(store, kind, old);
            let last = store.remove(&id, &mut stored);
            self.after_removal(store, kind, &last);
            return Left::Nothing(last);
        };
        // A marked object is not marked again, unless its stored form differs from the shown one.
        let is_marked = marked == *old && !store.is_hiding(&id, &place.key);
        let marked = match store.at(&place) {
            Some(marked) if is_marked => Arc::clone(marked),
            _ => store.put(&id, &mut convert::absorb_unasked(kind, marked)),
        };
        self.steps.push(CascadeStep::Proceed(place));
        Left::Marked(marked)
    }

    /// Adds the consequences of the removal of an object.
    pub(super) fn after_removal(
        &mut self,
        store: &mut Store,
        kind: &ServedKind,
        last: &StoredObject,
    ) {
        if kind.is(crd::GROUP, crd::PLURAL) {
            // Another CRD may take the names of this one.
            let last = last.read();
            crd::reconsider(store, object::text(&last, &["spec", "group"]));
        }
        // Pushed in reverse order, because the last step runs first.
        if !kind.is_built_in() {
            let name = format!("{}.{}", kind.plural, kind.group);
            let crd = place_of(crd::GROUP, crd::PLURAL, &name);
            self.steps.push(CascadeStep::Proceed(crd));
        }
        if kind.namespaced {
            let namespace = object::namespace(&last.read()).to_owned();
            let place = place_of("", "namespaces", &namespace);
            self.steps.push(CascadeStep::Proceed(place));
        }
        // Owners that waited for the object may proceed.
        let owners = last.owners().filter_map(|owner| store.by_uid(owner));
        self.steps.extend(owners.cloned().map(CascadeStep::Proceed));
        self.collect_all(store, last.uid());
    }

    fn collect_all(&mut self, store: &Store, owner: &str) {
        let dependents = store.dependents(owner).into_iter().rev();
        self.steps
            .extend(dependents.map(|dependent| CascadeStep::Collect {
                dependent,
                owner: owner.to_owned(),
            }));
    }

    fn remove_at(&mut self, store: &mut Store, place: &StorePlace) {
        if let (Some(object), Some(kind)) =
            (store.at(place).cloned(), store.kind(&place.kind).cloned())
            && !object.is_deleting()
        {
            self.remove(store, &kind, &object.read(), None);
        }
    }

    fn collect(&mut self, store: &mut Store, dependent: &StorePlace, owner: &str) {
        let Some(object) = store.at(dependent) else {
            return;
        };
        let has_another = object
            .owners()
            .any(|uid| uid != owner && store.is_alive(uid));
        if has_another {
            disown(store, dependent, owner);
        } else {
            self.remove_at(store, dependent);
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
        self.steps.push(CascadeStep::Conclude(place.clone()));
        match duty {
            Duty::Foreground => self.collect_all(store, object::uid(&object)),
            Duty::Orphan => {
                let uid = object::uid(&object);
                for dependent in store.dependents(uid) {
                    disown(store, &dependent, uid);
                }
            }
            Duty::Crd(id) => {
                let first = self.steps.len();
                let places = store
                    .list(&id, None)
                    .map(|(key, _)| StorePlace::new(&id, key));
                self.steps.extend(places.map(CascadeStep::Remove));
                self.steps[first..].reverse();
            }
            Duty::Namespace => {
                let content = store.in_namespace(&place.key.name).into_iter().rev();
                self.steps.extend(content.map(CascadeStep::Remove));
            }
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
                    self.drop_finalizer(store, &kind, place, FOREGROUND);
                }
            }
            Some(Duty::Orphan) => self.drop_finalizer(store, &kind, place, ORPHAN),
            Some(Duty::Crd(id)) if store.list(&id, None).next().is_none() => {
                store.remove_kind(&id);
                self.drop_finalizer(store, &kind, place, CRD_CLEANUP);
            }
            Some(Duty::Namespace)
                if store.in_namespace(&place.key.name).is_empty()
                    && object::finalizers(&object).is_empty() =>
            {
                let last = store.remove(&place.kind, &mut object);
                self.after_removal(store, &kind, &last);
            }
            // It waits for the remaining objects.
            Some(Duty::Crd(_) | Duty::Namespace) | None => {}
        }
    }

    fn drop_finalizer(
        &mut self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        place: &StorePlace,
        finalizer: &str,
    ) {
        let Some(stored) = store.at(place) else {
            return;
        };
        let mut object = stored.read();
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
            self.after_removal(store, kind, &last);
        } else {
            store.put(&place.kind, &mut convert::absorb_unasked(kind, object));
        }
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
