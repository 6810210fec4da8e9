//! The cached objects, by name.

use std::collections::{HashMap, HashSet};

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use okt_sharding::ranges::{Range, Ranges};
use okt_wire::object::LifecycleObject;
use parking_lot::RwLock;
use tokio::sync::broadcast;

use crate::cache::cached::Cached;

/// The objects of a kind that this process has listed and watches.
pub(crate) struct Objects<K: LifecycleObject> {
    all: RwLock<HashMap<ObjectRef<Cached<K>>, Cached<K>>>,
    changes: broadcast::Sender<ObjectChange<K>>,
}

/// A change of the objects.
#[derive(Clone)]
pub(crate) enum ObjectChange<K: LifecycleObject> {
    /// There is a new version of this object.
    Put(ObjectRef<Cached<K>>),
    /// This object is gone.
    Gone(Cached<K>),
    /// Any of them may have changed.
    Listed,
}

impl<K: LifecycleObject> Objects<K> {
    /// Returns no objects; their changes are reported to this channel.
    pub(crate) fn reporting(changes: broadcast::Sender<ObjectChange<K>>) -> Self {
        Self {
            all: RwLock::default(),
            changes,
        }
    }

    /// Returns an object.
    pub(crate) fn get(&self, name: &ObjectRef<Cached<K>>) -> Option<Cached<K>> {
        let objects = self.all.read();
        objects.get(name).cloned()
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        let objects = self.all.read();
        objects.len()
    }

    /// Calls a function with each object, in any order; it must be quick.
    pub(crate) fn for_each(&self, see: impl FnMut(&Cached<K>)) {
        let objects = self.all.read();
        objects.values().for_each(see);
    }

    /// Returns the objects in these ranges.
    pub(crate) fn in_ranges(&self, ranges: Ranges) -> Vec<Cached<K>> {
        let objects = self.all.read();
        let all = objects
            .values()
            .filter(|object| ranges.contains(range_of(object)));
        all.cloned().collect()
    }

    /// Puts a new version of an object; returns the version before.
    pub(crate) fn put(&self, object: Cached<K>) -> Option<Cached<K>> {
        let mut objects = self.all.write();
        // While the lock is held, so that changes are reported in their order.
        self.report(|| ObjectChange::Put(object.reference()));
        objects.insert(object.reference(), object)
    }

    /// Removes an object, unless there is another one of its name by now.
    pub(crate) fn remove(&self, object: &Cached<K>) {
        let mut objects = self.all.write();
        let name = object.reference();
        if objects
            .get(&name)
            .is_some_and(|it| it.meta().uid == object.meta().uid)
        {
            objects.remove(&name);
        }
        self.report(|| ObjectChange::Gone(object.clone()));
    }

    /// Replaces all objects of these ranges by those of a list.
    pub(crate) fn replace(&self, ranges: Ranges, list: Vec<Cached<K>>) {
        let mut objects = self.all.write();
        let names: HashSet<_> = list.iter().map(Cached::reference).collect();
        objects.retain(|name, object| !ranges.contains(range_of(object)) || names.contains(name));
        objects.extend(list.into_iter().map(|object| (object.reference(), object)));
        // A list after a failure may be much smaller than the one before.
        if objects.len() < objects.capacity() / 4 {
            objects.shrink_to_fit();
        }
        self.report(|| ObjectChange::Listed);
    }

    fn report(&self, change: impl FnOnce() -> ObjectChange<K>) {
        if self.changes.receiver_count() > 0 {
            // A receiver that has gone since then needs no change.
            let _ = self.changes.send(change());
        }
    }
}

/// Returns the range of an object.
pub(crate) fn range_of<K: LifecycleObject>(object: &Cached<K>) -> Range {
    Range::of(object.meta().uid.as_deref().unwrap_or_default())
}
