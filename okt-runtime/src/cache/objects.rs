//! The cached objects, by name.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use kube::Resource;
use kube::runtime::reflector::ObjectRef;

use crate::cache::cached::Cached;
use crate::sharding::ranges::{Range, Ranges};
use crate::wire::object::LifecycleObject;

/// The objects of a kind that this process has listed and watches.
pub(crate) struct Objects<K: LifecycleObject>(RwLock<HashMap<ObjectRef<Cached<K>>, Cached<K>>>);

impl<K: LifecycleObject> Default for Objects<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: LifecycleObject> Objects<K> {
    /// Returns an object.
    pub(crate) fn get(&self, name: &ObjectRef<Cached<K>>) -> Option<Cached<K>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(name).cloned()
    }

    /// Returns the objects in these ranges.
    pub(crate) fn in_ranges(&self, ranges: Ranges) -> Vec<Cached<K>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let all = objects
            .values()
            .filter(|object| ranges.contains(range_of(object)));
        all.cloned().collect()
    }

    /// Puts a new version of an object.
    pub(crate) fn put(&self, object: Cached<K>) {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(object.reference(), object);
    }

    /// Removes an object, unless there is another one of its name by now.
    pub(crate) fn remove(&self, object: &Cached<K>) {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let name = object.reference();
        if objects
            .get(&name)
            .is_some_and(|it| it.meta().uid == object.meta().uid)
        {
            objects.remove(&name);
        }
    }

    /// Replaces all objects of these ranges by those of a list.
    pub(crate) fn replace(&self, ranges: Ranges, list: Vec<Cached<K>>) {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let names: HashSet<_> = list.iter().map(Cached::reference).collect();
        objects.retain(|name, object| !ranges.contains(range_of(object)) || names.contains(name));
        objects.extend(list.into_iter().map(|object| (object.reference(), object)));
        // A list after a failure may be much smaller than the one before.
        if objects.len() < objects.capacity() / 4 {
            objects.shrink_to_fit();
        }
    }
}

/// Returns the range of an object.
pub(crate) fn range_of<K: LifecycleObject>(object: &Cached<K>) -> Range {
    Range::of(object.meta().uid.as_deref().unwrap_or_default())
}
