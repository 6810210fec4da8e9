//! The store: all objects, their history and the watches on it.
//!
//! There is one version counter and one lock (the server's) for everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

use crate::clock::Clock;
use crate::kind::{KindId, ServedKind};
use crate::refusal::Refusal;
use crate::stored::StoredObject;
use crate::{builtin, object};

/// The number of changes of a kind that are replayed to watches that start in the past.
const HISTORY: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) clock: Clock,
    version: u64,
    uids: u64,
    /// Each kind with its versions, the storage version first.
    kinds: BTreeMap<KindId, Vec<Arc<ServedKind>>>,
    collections: BTreeMap<KindId, Collection>,
    /// The objects with an owner reference, by the owner's uid.
    dependents: BTreeMap<String, BTreeSet<StorePlace>>,
    alive: BTreeMap<String, StorePlace>,
    /// The changes of kinds that were removed.
    retired: Vec<(KindId, VecDeque<Arc<StoreChange>>)>,
    /// What is left to the controllers of Kubernetes itself, as a stack: the consequences of a step run before the next.
    pub(crate) cleanup: Vec<CleanupStep>,
    /// Whether to keep changes that no watch can ask for any more.
    keeps_all: bool,
}

/// What a deletion leaves to the controllers of Kubernetes itself.
#[derive(Clone, Debug)]
pub(crate) enum CleanupStep {
    /// Deletes an object, unless it is being deleted already.
    Remove(StorePlace),
    /// Deletes a dependent of an owner that is gone or being deleted, unless it has another owner.
    Collect {
        dependent: StorePlace,
        owner: String,
    },
    /// Deletes an object if all its owners are gone.
    CollectOrphan(StorePlace),
    /// Starts the work that the finalizers of Kubernetes itself wait for, if the object is being deleted.
    Proceed(StorePlace),
    /// Completes the work that `Proceed` started, as far as possible now.
    Conclude(StorePlace),
}

/// The kind and the key of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StorePlace {
    pub(crate) kind: KindId,
    pub(crate) key: Key,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The objects of a kind, in the order of a list.
pub(crate) type Objects = BTreeMap<Key, Arc<StoredObject>>;

#[derive(Clone, Debug, Default)]
struct Collection {
    objects: Objects,
    /// The objects that were written differently from how they are shown: with more or fewer fields.
    hiding: BTreeSet<Key>,
    history: VecDeque<Arc<StoreChange>>,
    /// No client gets changes up to this version: for clients they are compacted.
    forgotten: u64,
    /// No watch gets changes up to this version, because the kind was served anew since.
    begun: u64,
    /// Changes up to this version are not kept.
    dropped: u64,
    watchers: Vec<mpsc::UnboundedSender<Arc<StoreChange>>>,
}

/// One committed change.
#[derive(Debug)]
pub(crate) struct StoreChange {
    pub(crate) version: u64,
    pub(crate) key: Key,
    /// The object before the change, if it existed.
    pub(crate) previous: Option<Arc<StoredObject>>,
    /// The object after the change; for a removal, its last state under the removal's version.
    pub(crate) object: Arc<StoredObject>,
    pub(crate) removed: bool,
    /// The time of the commit.
    pub(crate) made: Instant,
}

/// The changes for a watch: those to be replayed, and those to come.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) backlog: VecDeque<Arc<StoreChange>>,
    pub(crate) coming: mpsc::UnboundedReceiver<Arc<StoreChange>>,
}

impl StorePlace {
    pub(crate) fn new(kind: &KindId, key: &Key) -> Self {
        Self {
            kind: kind.clone(),
            key: key.clone(),
        }
    }
}

impl Key {
    /// The key of an object in a namespace; of a cluster-scoped object if the namespace is empty.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn of(object: &Value) -> Self {
        Self::new(object::namespace(object), object::name(object))
    }
}

impl Collection {
    /// Returns the kept changes after a version.
    fn after(&self, version: u64) -> impl DoubleEndedIterator<Item = &Arc<StoreChange>> {
        let first = self
            .history
            .partition_point(|change| change.version <= version);
        self.history.range(first..)
    }

    fn check_kept(&self, version: u64) -> Result<(), Refusal> {
        if version < self.dropped {
            return Err(Refusal::expired(format!(
                "too old resource version: {version} ({})",
                self.dropped
            )));
        }
        Ok(())
    }

    fn drop_forgotten(&mut self) {
        while let Some(oldest) = self.history.front()
            && oldest.version <= self.forgotten
        {
            self.history.pop_front();
        }
        self.dropped = self.dropped.max(self.forgotten);
    }
}

impl Store {
    /// Creates a store with the built-in kinds and no objects.
    pub(crate) fn new() -> Self {
        let mut store = Self {
            clock: Clock::new(),
            version: 0,
            uids: 0,
            kinds: BTreeMap::new(),
            collections: BTreeMap::new(),
            dependents: BTreeMap::new(),
            alive: BTreeMap::new(),
            retired: Vec::new(),
            cleanup: Vec::new(),
            keeps_all: true,
        };
        for kind in builtin::kinds() {
            store.add_kind(vec![kind]);
        }
        store
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Sets whether all changes are kept, for recordings and for replicas that are behind.
    pub(crate) fn keep_all(&mut self, keep: bool) {
        self.keeps_all = keep;
    }

    /// Returns all changes that are kept, in order.
    pub(crate) fn changes(&self) -> Vec<(KindId, Arc<StoreChange>)> {
        let collections = self.collections.iter();
        let alive = collections.map(|(id, collection)| (id, &collection.history));
        let retired = self.retired.iter().map(|(id, history)| (id, history));
        let mut changes: Vec<_> = alive
            .chain(retired)
            .flat_map(|(id, history)| {
                let changes = history.iter();
                changes.map(|change| (id.clone(), Arc::clone(change)))
            })
            .collect();
        changes.sort_by_key(|(_, change)| change.version);
        changes
    }

    /// Returns the version before the first change that was committed after a moment.
    pub(crate) fn version_at(&self, moment: Instant) -> u64 {
        let first_after = self.collections.values().filter_map(|collection| {
            let history = &collection.history;
            let index = history.partition_point(|change| change.made <= moment);
            history.get(index).map(|change| change.version)
        });
        first_after
            .min()
            .map_or(self.version, |version| version - 1)
    }

    /// Returns a new uid, the same in each run of a test.
    ///
    /// Uids that differ only at their end have nearly the same FNV-1a hash, so all would be in one shard. Therefore the
    /// first digits are mixed from the number at the end.
    pub(crate) fn new_uid(&mut self) -> String {
        self.uids += 1;
        let number = self.uids;
        let first = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        format!("{first:08x}-0000-4000-8000-{number:012x}")
    }

    /// Returns five characters as `generateName` appends them.
    pub(crate) fn new_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        // A step that is coprime to the number of suffixes visits all of them before one repeats.
        const STEP: u64 = 6_364_139;
        const SUFFIXES: u64 = 3_u64.pow(15);
        const { assert!(!STEP.is_multiple_of(3)) };
        self.uids += 1;
        let mut number = self.uids.wrapping_mul(STEP) % SUFFIXES;
        let mut suffix = String::new();
        for _ in 0..5 {
            let digit = usize::try_from(number % 27).unwrap_or_default();
            suffix.push(char::from(ALPHABET[digit]));
            number /= 27;
        }
        suffix
    }

    /// Returns all kinds in all served versions.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<ServedKind>> {
        let kinds = self.kinds.values().flatten();
        kinds.filter(|kind| kind.is_served)
    }

    /// Returns a kind in its storage version.
    pub(crate) fn kind(&self, id: &KindId) -> Option<&Arc<ServedKind>> {
        self.kinds.get(id)?.first()
    }

    /// Returns a kind in a version, if it is served.
    pub(crate) fn served(&self, id: &KindId, version: &str) -> Option<&Arc<ServedKind>> {
        let mut versions = self.kinds.get(id)?.iter();
        versions.find(|kind| kind.is_served && kind.version == version)
    }

    /// Adds or replaces a kind, given its versions with the storage version first.
    pub(crate) fn add_kind(&mut self, versions: Vec<Arc<ServedKind>>) {
        let Some(kind) = versions.first() else {
            return;
        };
        let (id, version) = (kind.id(), self.version);
        self.collections
            .entry(id.clone())
            .or_insert_with(|| Collection {
                // A client that names an older version gets an error; without a version the list is empty.
                forgotten: version,
                ..Collection::default()
            });
        self.kinds.insert(id, versions);
    }

    /// Serves a kind anew: its watches end, and no watch can start from an earlier version.
    pub(crate) fn serve_anew(&mut self, versions: Vec<Arc<ServedKind>>) {
        let id = versions.first().map(|kind| kind.id());
        self.add_kind(versions);
        if let Some(collection) = id.and_then(|id| self.collections.get_mut(&id)) {
            collection.watchers.clear();
            collection.begun = self.version;
        }
    }

    /// Removes a kind; its watches end.
    pub(crate) fn remove_kind(&mut self, id: &KindId) {
        self.kinds.remove(id);
        if let Some(collection) = self.collections.remove(id)
            && self.keeps_all
        {
            self.retired.push((id.clone(), collection.history));
        }
    }

    pub(crate) fn get(&self, id: &KindId, key: &Key) -> Option<&Arc<StoredObject>> {
        self.collections.get(id)?.objects.get(key)
    }

    pub(crate) fn at(&self, place: &StorePlace) -> Option<&Arc<StoredObject>> {
        self.get(&place.kind, &place.key)
    }

    /// Returns the objects of a kind in order; of one namespace if one is given.
    pub(crate) fn list<'a>(
        &'a self,
        id: &KindId,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<StoredObject>)> {
        let first = Key::new(namespace.unwrap_or_default(), "");
        self.collections
            .get(id)
            .into_iter()
            .flat_map(move |collection| collection.objects.range(first.clone()..))
            .take_while(move |(key, _)| namespace.is_none_or(|wanted| wanted == key.namespace))
    }

    /// Returns all objects of a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<StorePlace> {
        self.kinds
            .values()
            .filter_map(|versions| versions.first())
            .filter(|kind| kind.namespaced)
            .flat_map(|kind| {
                let id = kind.id();
                let objects = self.list(&id, Some(namespace));
                let places = objects.map(|(key, _)| StorePlace::new(&id, key));
                places.collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns the objects of a kind as they were at a version, for a client that asks for it.
    ///
    /// # Errors
    /// The version is compacted.
    pub(crate) fn list_at(&self, id: &KindId, version: u64) -> Result<Objects, Refusal> {
        match self.collections.get(id) {
            Some(collection) if version < collection.forgotten => Err(Refusal::expired(
                "The provided continue parameter is too old to display a consistent list result.",
            )),
            _ => self.list_then(id, version),
        }
    }

    /// Returns the objects of a kind as a cache has them that saw nothing after a version.
    ///
    /// # Errors
    /// The changes since that version are not kept.
    pub(crate) fn list_then(&self, id: &KindId, version: u64) -> Result<Objects, Refusal> {
        let Some(collection) = self.collections.get(id) else {
            return Ok(BTreeMap::new());
        };
        collection.check_kept(version)?;
        let mut objects = collection.objects.clone();
        for change in collection.after(version).rev() {
            match &change.previous {
                Some(previous) => objects.insert(change.key.clone(), Arc::clone(previous)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// Returns an object as a cache has it that saw nothing after a version.
    ///
    /// # Errors
    /// The changes since that version are not kept.
    pub(crate) fn get_then(
        &self,
        id: &KindId,
        key: &Key,
        version: u64,
    ) -> Result<Option<&Arc<StoredObject>>, Refusal> {
        let Some(collection) = self.collections.get(id) else {
            return Ok(None);
        };
        collection.check_kept(version)?;
        let mut later = collection.after(version);
        Ok(match later.find(|change| change.key == *key) {
            Some(change) => change.previous.as_ref(),
            None => collection.objects.get(key),
        })
    }

    /// Writes an object under a new version.
    pub(crate) fn put(&mut self, id: &KindId, object: &mut Value) -> Arc<StoredObject> {
        self.version += 1;
        object::set_version(object, self.version);
        let key = Key::of(object);
        let object = Arc::new(StoredObject::new(object));
        let place = StorePlace::new(id, &key);
        let collection = self.collections.entry(id.clone()).or_default();
        collection.hiding.remove(&key);
        let previous = collection.objects.insert(key.clone(), Arc::clone(&object));
        if let Some(previous) = &previous {
            self.unlink(&place, previous);
        }
        for owner in object.owners() {
            let places = self.dependents.entry(owner.to_owned()).or_default();
            places.insert(place.clone());
        }
        self.alive.insert(object.uid().to_owned(), place);
        self.publish(id, key, previous, Arc::clone(&object), false);
        object
    }

    /// Records that an object was written differently from how it is shown.
    pub(crate) fn set_hiding(&mut self, id: &KindId, key: Key) {
        if let Some(collection) = self.collections.get_mut(id) {
            collection.hiding.insert(key);
        }
    }

    pub(crate) fn is_hiding(&self, id: &KindId, key: &Key) -> bool {
        let collection = self.collections.get(id);
        collection.is_some_and(|collection| collection.hiding.contains(key))
    }

    /// Replaces an object without an event or a new version: as a new schema reads the stored one.
    pub(crate) fn reread(&mut self, id: &KindId, object: &Value) {
        if let Some(collection) = self.collections.get_mut(id) {
            let key = Key::of(object);
            let shown = Arc::new(StoredObject::new(object));
            let was = collection.objects.insert(key.clone(), Arc::clone(&shown));
            if was.is_none_or(|was| was.json() != shown.json()) {
                collection.hiding.insert(key);
            }
        }
    }

    /// Removes an object; takes its last state and returns it under a new version.
    pub(crate) fn remove(&mut self, id: &KindId, last: &mut Value) -> Arc<StoredObject> {
        self.version += 1;
        object::set_version(last, self.version);
        let key = Key::of(last);
        let last = Arc::new(StoredObject::new(last));
        let place = StorePlace::new(id, &key);
        let previous = self.collections.get_mut(id).and_then(|collection| {
            collection.hiding.remove(&key);
            collection.objects.remove(&key)
        });
        if let Some(previous) = &previous {
            self.unlink(&place, previous);
            self.alive.remove(previous.uid());
        }
        self.publish(id, key, previous, Arc::clone(&last), true);
        last
    }

    fn unlink(&mut self, place: &StorePlace, object: &StoredObject) {
        for uid in object.owners() {
            if let Some(places) = self.dependents.get_mut(uid) {
                places.remove(place);
                if places.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }

    fn publish(
        &mut self,
        id: &KindId,
        key: Key,
        previous: Option<Arc<StoredObject>>,
        object: Arc<StoredObject>,
        removed: bool,
    ) {
        let change = Arc::new(StoreChange {
            version: self.version,
            key,
            previous,
            object,
            removed,
            made: Instant::now(),
        });
        let Some(collection) = self.collections.get_mut(id) else {
            return;
        };
        collection
            .watchers
            .retain(|watcher| watcher.send(Arc::clone(&change)).is_ok());
        let history = &mut collection.history;
        history.push_back(change);
        if history.len() > HISTORY {
            let last_forgotten = &history[history.len() - HISTORY - 1];
            collection.forgotten = collection.forgotten.max(last_forgotten.version);
        }
        if !self.keeps_all {
            collection.drop_forgotten();
        }
    }

    /// Compacts the history: a watch from any version before this moment gets 410 Gone.
    pub(crate) fn compact(&mut self) {
        for collection in self.collections.values_mut() {
            collection.forgotten = self.version;
            if !self.keeps_all {
                collection.drop_forgotten();
            }
        }
    }

    /// Returns a copy of the stored objects, without their history and without watches.
    pub(crate) fn backup(&self) -> Self {
        let mut copy = self.clone();
        copy.retired.clear();
        for collection in copy.collections.values_mut() {
            collection.history.clear();
            collection.watchers.clear();
            collection.forgotten = self.version;
            collection.dropped = self.version;
        }
        copy
    }

    /// Replaces the content with a backup: versions repeat from here on, uids do not.
    pub(crate) fn restore(&mut self, backup: &Self) {
        *self = Self {
            uids: self.uids,
            keeps_all: self.keeps_all,
            clock: self.clock.clone(),
            ..backup.backup()
        };
    }

    /// Checks that a watch can still start from a version.
    ///
    /// # Errors
    /// The version is compacted, or the kind was served anew since.
    pub(crate) fn check_remembered(&self, id: &KindId, version: u64) -> Result<(), Refusal> {
        let collection = self.collections.get(id);
        let oldest = collection.map_or(0, |collection| collection.forgotten.max(collection.begun));
        if version < oldest {
            return Err(Refusal::expired(format!(
                "too old resource version: {version} ({oldest})"
            )));
        }
        Ok(())
    }

    /// Checks that all changes after a version are kept, also those that no client can get.
    ///
    /// # Errors
    /// Not all changes are kept.
    pub(crate) fn check_kept(&self, id: &KindId, version: u64) -> Result<(), Refusal> {
        match self.collections.get(id) {
            Some(collection) => collection.check_kept(version),
            None => Ok(()),
        }
    }

    /// Returns all changes of a kind after a version, until the receiver is dropped.
    pub(crate) fn feed(&mut self, id: &KindId, after: u64) -> Feed {
        let (sender, coming) = mpsc::unbounded_channel();
        let mut backlog = VecDeque::new();
        if let Some(collection) = self.collections.get_mut(id) {
            backlog.extend(collection.after(after).cloned());
            collection.watchers.retain(|watcher| !watcher.is_closed());
            collection.watchers.push(sender);
        }
        Feed { backlog, coming }
    }

    pub(crate) fn is_alive(&self, uid: &str) -> bool {
        self.alive.contains_key(uid)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&StorePlace> {
        self.alive.get(uid)
    }

    /// Returns the objects that have this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<StorePlace> {
        self.dependents
            .get(uid)
            .map(|places| places.iter().cloned().collect())
            .unwrap_or_default()
    }
}
