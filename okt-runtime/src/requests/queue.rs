//! The open requests, by the object that is to serve them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::DynamicObject;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::open::OpenRequest;
use super::served::ServedKind;
use crate::resources::Name;

/// The open requests of one operator, in one namespace or in all.
#[derive(Default)]
pub(crate) struct RequestQueue {
    pub(crate) kinds: Vec<ServedKind>,
    known: Mutex<OpenByTarget>,
    /// The kinds that were listed, or that cannot be listed.
    listed: watch::Sender<BTreeSet<usize>>,
}

#[derive(Default)]
struct OpenByTarget {
    by_target: HashMap<Name, Vec<Arc<OpenRequest>>>,
    targets: HashMap<String, Name>,
}

impl RequestQueue {
    pub(crate) fn of(kinds: Vec<ServedKind>) -> Self {
        Self {
            kinds,
            ..Self::default()
        }
    }

    /// Returns the open requests for an object, in the order in which they are served: the oldest first.
    pub(crate) fn waiting(&self, target: &Name) -> Vec<Arc<OpenRequest>> {
        if self.kinds.is_empty() {
            return Vec::new();
        }
        let known = self.known.lock();
        known.by_target.get(target).cloned().unwrap_or_default()
    }

    /// Returns whether the requests of all kinds were listed, as far as they can be.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed.borrow().len() == self.kinds.len()
    }

    /// Notes that a kind was listed, or that it cannot be: objects do not wait for it any longer.
    pub(super) fn note_listed(&self, kind: usize) {
        self.listed.send_if_modified(|listed| listed.insert(kind));
    }

    /// Completes when all kinds were listed, as far as they can be.
    pub(crate) async fn listed(&self) {
        let mut listed = self.listed.subscribe();
        // The sender lives as long as `self`.
        let _ = listed
            .wait_for(|listed| listed.len() == self.kinds.len())
            .await;
    }

    /// Returns all open requests.
    pub(crate) fn all(&self) -> Vec<Arc<OpenRequest>> {
        let known = self.known.lock();
        known.by_target.values().flatten().cloned().collect()
    }

    /// Takes a request as it is now; returns the object that is to serve it.
    pub(crate) fn put(&self, kind: usize, object: &DynamicObject) -> Option<Name> {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let mut known = self.known.lock();
        let before = known.remove(uid);
        let open = OpenRequest::of(&self.kinds, kind, object);
        open.map(|open| known.add(open)).or(before)
    }

    /// Takes a request as an answer shows it, unless the watch has shown meanwhile that it is gone.
    pub(crate) fn renew(&self, kind: usize, object: &DynamicObject) {
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let mut known = self.known.lock();
        if known.remove(uid).is_some()
            && let Some(open) = OpenRequest::of(&self.kinds, kind, object)
        {
            known.add(open);
        }
    }

    /// Forgets a request that is gone, or has finished; returns the object that was to serve it.
    pub(crate) fn remove(&self, uid: &str) -> Option<Name> {
        self.known.lock().remove(uid)
    }

    /// Takes all requests of a kind; returns the objects that are to serve them, or were.
    pub(crate) fn replace(&self, kind: usize, objects: &[DynamicObject]) -> BTreeSet<Name> {
        let mut known = self.known.lock();
        let old: Vec<String> = (known.by_target.values().flatten())
            .filter(|it| it.kind == kind)
            .map(|it| it.uid.clone())
            .collect();
        let before: Vec<Name> = old.iter().filter_map(|uid| known.remove(uid)).collect();
        let open = objects.iter();
        let open = open.filter_map(|it| OpenRequest::of(&self.kinds, kind, it));
        open.map(|open| known.add(open)).chain(before).collect()
    }
}

impl OpenByTarget {
    fn add(&mut self, open: OpenRequest) -> Name {
        let target = open.target();
        self.targets.insert(open.uid.clone(), target.clone());
        let waiting = self.by_target.entry(target.clone()).or_default();
        let at = waiting.partition_point(|it| order(it) < order(&open));
        waiting.insert(at, Arc::new(open));
        target
    }

    fn remove(&mut self, uid: &str) -> Option<Name> {
        let target = self.targets.remove(uid)?;
        if let Some(waiting) = self.by_target.get_mut(&target) {
            waiting.retain(|it| it.uid != uid);
            if waiting.is_empty() {
                self.by_target.remove(&target);
            }
        }
        Some(target)
    }
}

/// Returns what orders the requests for an object: the oldest is served first.
fn order(request: &OpenRequest) -> (Option<Timestamp>, &str, usize) {
    (request.created, &request.name, request.kind)
}
