//! Indexes the cached objects by owner, and knows which objects to enqueue when one changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_wire::texts::split_qualified;

use super::inventory::{Finished, Inventory};
use super::kept::Kept;
use super::kind::ResourceKind;
use super::names::{Key, Name};

/// The cached objects, by name and by owner.
///
/// Labels and annotations name the owner of an object, but anyone who may write the object can forge them. OKT believes
/// them in two cases: an owner reference has the uid and the object is in the namespace of its owner (who may write
/// there may also write the owner), or the status of the owner records the object.
pub(crate) struct Index {
    kinds: Vec<ResourceKind>,
    /// Whether the owners live in namespaces.
    namespaced: bool,
    /// Owned objects, by the owner's uid in their label.
    owned: HashMap<String, BTreeMap<Key, Arc<Kept>>>,
    /// What the status of an owner records, by its uid.
    recorded: HashMap<String, Inventory>,
    /// The owner of each owned object.
    owners: HashMap<Key, IndexedOwner>,
    /// How objects ended that are done once and are gone, by the owner's uid, until the owner is.
    ended: HashMap<String, BTreeMap<Key, Finished>>,
    /// Owned objects that are gone and were not made again, each with the uid of its owner and its own.
    vanished: BTreeMap<Key, (String, String)>,
    pub(crate) referred: HashMap<Key, Arc<Kept>>,
    /// The objects that refer to a key, whether an object of that key exists or not.
    pub(crate) referrers: HashMap<Key, BTreeSet<Name>>,
    pub(crate) refers: HashMap<Name, BTreeSet<Key>>,
    /// Objects taken from responses since a list began: the list may lack them.
    pub(crate) taken: BTreeSet<Key>,
    /// The indexes of referred kinds that cannot be listed, and why.
    pub(crate) unseen_referred: BTreeMap<usize, Unlisted>,
    /// Owned kinds that cannot be listed, and why.
    pub(crate) unlisted: BTreeMap<usize, Unlisted>,
    /// The objects that wait until an owned kind is listed.
    waiting: HashMap<usize, BTreeSet<Name>>,
}

/// How many objects that are gone are remembered until they are made again.
const VANISHED: usize = 1000;

/// Why a kind cannot be listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unlisted {
    pub(crate) why: String,
    /// Whether objects of the kind may exist although they cannot be listed.
    pub(crate) may_have_objects: bool,
    /// Whether the list was refused, and did not fail: nobody can tell how long that lasts.
    pub(crate) is_refused: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct IndexedOwner {
    uid: String,
    name: Option<Name>,
}

/// The cache that a kind is in, and its index there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Owned(usize),
    Referred(usize),
}

impl Index {
    /// Returns an empty index for these owned kinds.
    pub(crate) fn new(kinds: Vec<ResourceKind>, namespaced: bool) -> Self {
        Self {
            kinds,
            namespaced,
            owned: HashMap::new(),
            recorded: HashMap::new(),
            owners: HashMap::new(),
            ended: HashMap::new(),
            vanished: BTreeMap::new(),
            referred: HashMap::new(),
            referrers: HashMap::new(),
            refers: HashMap::new(),
            taken: BTreeSet::new(),
            unseen_referred: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// Forgets all objects, references and records; later reconciliations note references and records anew.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.kinds), self.namespaced);
    }

    /// Returns the objects that an owner owns.
    pub(crate) fn owned_by(&self, owner: &ObjectMeta) -> BTreeMap<Key, Arc<Kept>> {
        let believed = self.believed(owner);
        believed
            .map(|(key, kept)| (key.clone(), Arc::clone(kept)))
            .collect()
    }

    /// Returns whether an owner owns any object.
    pub(crate) fn owns_anything(&self, owner: &ObjectMeta) -> bool {
        self.believed(owner).next().is_some()
    }

    fn believed(&self, owner: &ObjectMeta) -> impl Iterator<Item = (&Key, &Arc<Kept>)> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let all = self.owned.get(uid).into_iter().flatten();
        all.filter(move |(key, kept)| {
            let is_beside = key.1 == owner.namespace;
            (is_beside && kept.reference.is_some()) || self.is_proved(uid, key, is_beside)
        })
    }

    fn is_proved(&self, uid: &str, key: &Key, is_beside: bool) -> bool {
        let recorded = self.recorded.get(uid);
        recorded.is_some_and(|recorded| recorded.proves(&self.kinds[key.0], key, is_beside))
    }

    fn is_recorded(&self, uid: &str, key: &Key) -> bool {
        let recorded = self.recorded.get(uid);
        recorded.is_some_and(|recorded| recorded.has(&self.kinds[key.0], key))
    }

    /// Notes what the status of an owner records.
    pub(crate) fn note_recorded(&mut self, uid: &str, recorded: &[String]) {
        match Inventory::proof(recorded) {
            Some(inventory) => self.recorded.insert(uid.to_owned(), inventory),
            None => self.recorded.remove(uid),
        };
    }

    /// Returns the owner to enqueue when an object changes; none if only labels name an owner.
    fn owner_name(&self, uid: &str, key: &Key, kept: &Kept) -> Option<Name> {
        if self.is_recorded(uid, key) {
            return kept.owner_name.as_deref().map(parsed);
        }
        let is_beside = key.1.is_some() == self.namespaced;
        let name = kept.reference.clone().filter(|_| is_beside)?;
        Some((key.1.clone(), name))
    }

    pub(crate) fn put(&mut self, side: Side, kept: Kept) -> BTreeSet<Name> {
        match side {
            Side::Owned(number) => self.put_owned(number, kept),
            Side::Referred(number) => {
                let key = key_of(number, &kept);
                let same =
                    |old: &Arc<Kept>| old.meta().resource_version == kept.meta().resource_version;
                if self.referred.get(&key).is_some_and(same) {
                    return BTreeSet::new();
                }
                self.referred.insert(key.clone(), Arc::new(kept));
                self.referrers.get(&key).cloned().unwrap_or_default()
            }
        }
    }

    pub(crate) fn remove(&mut self, side: Side, kept: &Kept) -> BTreeSet<Name> {
        match side {
            Side::Owned(number) => {
                let key = key_of(number, kept);
                // The event is about an object that another one of the same name has replaced.
                let other = |own: &IndexedOwner| {
                    let there = self.owned.get(&own.uid).and_then(|of| of.get(&key));
                    there.is_some_and(|there| there.meta().uid != kept.meta().uid)
                };
                if self.owners.get(&key).is_some_and(other) {
                    return BTreeSet::new();
                }
                self.note_end(&key, kept);
                self.note_vanished(&key);
                self.remove_owned(&key)
            }
            Side::Referred(number) => {
                let key = key_of(number, kept);
                self.referred.remove(&key);
                self.referrers.get(&key).cloned().unwrap_or_default()
            }
        }
    }

    /// Notes that a list begins: it may lack objects written from now on.
    pub(crate) fn begin_list(&mut self, side: Side) {
        if let Side::Owned(number) = side {
            self.taken.retain(|key| key.0 != number);
        }
    }

    /// Replaces the objects of a kind by a completed list, and returns the objects to enqueue.
    pub(crate) fn replace(&mut self, side: Side, fresh: Vec<Kept>) -> BTreeSet<Name> {
        let mut woken = BTreeSet::new();
        match side {
            Side::Owned(number) => {
                self.unlisted.remove(&number);
                woken.extend(self.waiting.remove(&number).into_iter().flatten());
                let known = self.owners.keys().filter(|key| !self.taken.contains(*key));
                for key in lacking(number, known, &fresh) {
                    if let Some(last) = self.last_seen(&key) {
                        self.note_end(&key, &last);
                    }
                    self.note_vanished(&key);
                    woken.extend(self.remove_owned(&key));
                }
            }
            Side::Referred(number) => {
                if self.unseen_referred.remove(&number).is_some() {
                    // Objects may wait for what was not seen.
                    woken.extend(self.refers.keys().cloned());
                }
                for key in lacking(number, self.referred.keys(), &fresh) {
                    self.referred.remove(&key);
                    woken.extend(self.referrers.get(&key).cloned().unwrap_or_default());
                }
            }
        }
        for kept in fresh {
            woken.extend(self.put(side, kept));
        }
        woken
    }

    pub(crate) fn put_owned(&mut self, number: usize, kept: Kept) -> BTreeSet<Name> {
        let key = key_of(number, &kept);
        let before = self.detach(&key);
        // A copy of an object has its labels too, but OKT has not applied it.
        let Some(uid) = kept.owner.clone().filter(|_| kept.is_applied) else {
            return before.and_then(|it| it.0.name).into_iter().collect();
        };
        let mut owner = IndexedOwner {
            name: self.owner_name(&uid, &key, &kept),
            uid,
        };
        let mut woken: BTreeSet<Name> = owner.name.clone().into_iter().collect();
        let mut old = None;
        if let Some((before, there)) = before {
            woken.extend(before.name.clone());
            // If the owner's name was removed from the object, keep the known one.
            owner.name = owner.name.or(before.name);
            old = there;
        }
        let newest = match old {
            Some(old) if kept.is_older(&old) => old,
            Some(old) if old.meta().resource_version == kept.meta().resource_version => {
                woken.clear();
                old
            }
            Some(_) | None => Arc::new(kept),
        };
        if let Some(ended) = self.ended.get_mut(&owner.uid) {
            ended.remove(&key);
        }
        self.vanished.remove(&key);
        let of_it = self.owned.entry(owner.uid.clone()).or_default();
        of_it.insert(key.clone(), newest);
        self.owners.insert(key, owner);
        woken
    }

    pub(crate) fn remove_owned(&mut self, key: &Key) -> BTreeSet<Name> {
        let gone = self.detach(key);
        gone.and_then(|it| it.0.name).into_iter().collect()
    }

    fn last_seen(&self, key: &Key) -> Option<Arc<Kept>> {
        let owner = self.owners.get(key)?;
        self.owned.get(&owner.uid)?.get(key).cloned()
    }

    /// Notes how an object ended that is gone, if it is done once: nobody may have recorded it yet.
    fn note_end(&mut self, key: &Key, last: &Kept) {
        if let (Some(uid), Some(content)) = (&last.owner, &last.content)
            && let Some(end) = last.end(&self.kinds[key.0])
        {
            let content = content.clone();
            let of_owner = self.ended.entry(uid.clone()).or_default();
            of_owner.insert(key.clone(), Finished { end, content });
        }
    }

    /// Notes that an object waits until an owned kind is listed.
    pub(crate) fn note_waiting(&mut self, number: usize, who: Name) {
        self.waiting.entry(number).or_default().insert(who);
    }

    /// Notes that an owned object is gone: its owner may not have wanted that.
    fn note_vanished(&mut self, key: &Key) {
        if let Some(owner) = self.owners.get(key)
            && let Some(uid) = self.last_seen(key).and_then(|it| it.meta().uid.clone())
        {
            let gone = (owner.uid.clone(), uid);
            if self.vanished.len() >= VANISHED {
                // Most went with their owners, which nobody asks about.
                self.vanished.clear();
            }
            self.vanished.insert(key.clone(), gone);
        }
    }

    /// Returns the uid of an object of an owner that is gone and was not made again.
    pub(crate) fn vanished(&self, owner: &str, key: &Key) -> Option<String> {
        let (of, uid) = self.vanished.get(key)?;
        (of == owner).then(|| uid.clone())
    }

    /// Forgets which objects of an owner are gone, but for those that are still declared.
    pub(crate) fn keep_vanished(&mut self, owner: &str, declared: &BTreeSet<Key>) {
        self.vanished
            .retain(|key, (of, _)| of != owner || declared.contains(key));
    }

    /// Forgets how objects of an owner ended, but for those that are still declared.
    pub(crate) fn keep_ended(&mut self, uid: &str, declared: &[&Key]) {
        if let Some(ended) = self.ended.get_mut(uid) {
            ended.retain(|key, _| declared.contains(&key));
            if ended.is_empty() {
                self.ended.remove(uid);
            }
        }
    }

    /// Returns how an object ended that is gone and is done once.
    pub(crate) fn ended(&self, uid: &str, key: &Key) -> Option<Finished> {
        self.ended.get(uid)?.get(key).cloned()
    }

    /// Forgets what was known of the resources of an object that is gone.
    pub(crate) fn forget_owner(&mut self, uid: &str) {
        self.recorded.remove(uid);
        self.ended.remove(uid);
    }

    /// Removes an object and returns its owner and its cached version.
    fn detach(&mut self, key: &Key) -> Option<(IndexedOwner, Option<Arc<Kept>>)> {
        let owner = self.owners.remove(key)?;
        let mut there = None;
        if let Some(of_it) = self.owned.get_mut(&owner.uid) {
            there = of_it.remove(key);
            if of_it.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
        Some((owner, there))
    }

    pub(crate) fn forget_references(&mut self, who: &Name) {
        for key in self.refers.remove(who).unwrap_or_default() {
            if let Some(referrers) = self.referrers.get_mut(&key) {
                referrers.remove(who);
                if referrers.is_empty() {
                    self.referrers.remove(&key);
                }
            }
        }
    }
}

/// Returns the known keys of a kind that a list lacks.
fn lacking<'a>(number: usize, known: impl Iterator<Item = &'a Key>, fresh: &[Kept]) -> Vec<Key> {
    let listed: BTreeSet<Key> = fresh.iter().map(|kept| key_of(number, kept)).collect();
    known
        .filter(|key| key.0 == number && !listed.contains(*key))
        .cloned()
        .collect()
}

pub(crate) fn key_of(number: usize, kept: &Kept) -> Key {
    let meta = kept.meta();
    let name = meta.name.clone().unwrap_or_default();
    (number, meta.namespace.clone(), name)
}

/// Parses the namespace and name in the annotation that names an owner.
fn parsed(text: &str) -> Name {
    let (namespace, name) = split_qualified(text);
    (namespace.map(str::to_owned), name.to_owned())
}
