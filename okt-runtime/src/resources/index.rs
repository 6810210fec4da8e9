//! Which objects are in the caches: whose they are, and who is to be woken when something happens to one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use sha2::{Digest, Sha256};

use super::kept::Kept;
use super::kind::Kind;
use super::names::Name;
use crate::wire::limits::MARK_LENGTH;
use crate::wire::read::hex;

/// Which object it is: its kind, by number, its namespace and its name.
pub(crate) type Key = (usize, Option<String>, String);

/// What the caches hold, by name and by owner.
///
/// Labels and annotations say whose an object is, and who may write objects anywhere may say anything there. An object
/// is believed to be somebody's only where its owner reference has the uid and it lives beside its owner (whoever may
/// write there may also write the owner), or where the status of the owner records it ([`mark`]).
pub(crate) struct Index {
    kinds: Vec<Kind>,
    /// Whether the owners live in namespaces.
    namespaced: bool,
    /// By the uid that the labels say they were made for.
    owned: HashMap<String, BTreeMap<Key, Arc<Kept>>>,
    /// By the uid of an owner the marks that its status records.
    recorded: HashMap<String, BTreeSet<String>>,
    /// Whose they are.
    owners: HashMap<Key, Owner>,
    pub(crate) referred: HashMap<Key, Arc<Kept>>,
    /// Who refers to what, whether it is there or not.
    pub(crate) referrers: HashMap<Key, BTreeSet<Name>>,
    pub(crate) refers: HashMap<Name, BTreeSet<Key>>,
    /// What was taken in since a list was begun, which it may not show yet.
    pub(crate) taken: BTreeSet<Key>,
    /// Owned kinds that cannot be listed, and why.
    pub(crate) unlisted: BTreeMap<usize, Unlisted>,
}

/// Why an owned kind cannot be listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unlisted {
    pub(crate) why: String,
    /// Nobody knows whether there are any.
    pub(crate) may_have_objects: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Owner {
    uid: String,
    name: Option<Name>,
}

/// Which of the two caches a kind is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Owned(usize),
    Referred(usize),
}

impl Index {
    /// Knows nothing of objects of these kinds yet.
    pub(crate) fn new(kinds: Vec<Kind>, namespaced: bool) -> Self {
        Self {
            kinds,
            namespaced,
            owned: HashMap::new(),
            recorded: HashMap::new(),
            owners: HashMap::new(),
            referred: HashMap::new(),
            referrers: HashMap::new(),
            refers: HashMap::new(),
            taken: BTreeSet::new(),
            unlisted: BTreeMap::new(),
        }
    }

    /// Forgets all objects; who refers to what, and what is recorded, is noted anew by those that do.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.kinds), self.namespaced);
    }

    /// Everything that was made for an object.
    pub(crate) fn owned_by(&self, owner: &ObjectMeta) -> BTreeMap<Key, Arc<Kept>> {
        let believed = self.believed(owner);
        believed
            .map(|(key, kept)| (key.clone(), Arc::clone(kept)))
            .collect()
    }

    /// Whether anything was made for an object.
    pub(crate) fn owns_anything(&self, owner: &ObjectMeta) -> bool {
        self.believed(owner).next().is_some()
    }

    fn believed(&self, owner: &ObjectMeta) -> impl Iterator<Item = (&Key, &Arc<Kept>)> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let all = self.owned.get(uid).into_iter().flatten();
        all.filter(move |(key, kept)| {
            let is_beside = key.1 == owner.namespace;
            (is_beside && kept.reference.is_some()) || self.is_recorded(uid, key)
        })
    }

    fn is_recorded(&self, uid: &str, key: &Key) -> bool {
        let recorded = self.recorded.get(uid);
        recorded.is_some_and(|recorded| recorded.contains(&mark(&self.kinds[key.0], key)))
    }

    /// Notes what the status of an object records.
    pub(crate) fn note_recorded(&mut self, uid: &str, marks: &[String]) {
        if marks.is_empty() {
            self.recorded.remove(uid);
        } else if self
            .recorded
            .get(uid)
            .is_none_or(|own| !own.iter().eq(marks))
        {
            let marks = marks.iter().cloned().collect();
            self.recorded.insert(uid.to_owned(), marks);
        }
    }

    /// Forgets what owners recorded that are no more.
    pub(crate) fn keep_recorded(&mut self, alive: impl Fn(&str) -> bool) {
        self.recorded.retain(|uid, _| alive(uid));
    }

    /// Who is to be woken when something happens to an object; nobody where its labels alone name somebody.
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
                // An event of one that another one has replaced meanwhile.
                let other = |own: &Owner| {
                    let there = self.owned.get(&own.uid).and_then(|of| of.get(&key));
                    there.is_some_and(|there| there.meta().uid != kept.meta().uid)
                };
                if self.owners.get(&key).is_some_and(other) {
                    return BTreeSet::new();
                }
                self.remove_owned(&key)
            }
            Side::Referred(number) => {
                let key = key_of(number, kept);
                self.referred.remove(&key);
                self.referrers.get(&key).cloned().unwrap_or_default()
            }
        }
    }

    /// A list is begun: what is written from now on it may not show.
    pub(crate) fn begin_list(&mut self, side: Side) {
        if let Side::Owned(number) = side {
            self.taken.retain(|key| key.0 != number);
        }
    }

    /// A list has come: what it lacks is gone.
    pub(crate) fn replace(&mut self, side: Side, fresh: Vec<Kept>) -> BTreeSet<Name> {
        let mut woken = BTreeSet::new();
        match side {
            Side::Owned(number) => {
                self.unlisted.remove(&number);
                let known = self.owners.keys().filter(|key| !self.taken.contains(*key));
                for key in lacking(number, known, &fresh) {
                    woken.extend(self.remove_owned(&key));
                }
            }
            Side::Referred(number) => {
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
        // A copy of an object has its labels too, but nobody has applied it.
        let Some(uid) = kept.owner.clone().filter(|_| kept.is_applied) else {
            return before.and_then(|it| it.0.name).into_iter().collect();
        };
        let mut owner = Owner {
            name: self.owner_name(&uid, &key, &kept),
            uid,
        };
        let mut woken: BTreeSet<Name> = owner.name.clone().into_iter().collect();
        let mut old = None;
        if let Some((before, there)) = before {
            woken.extend(before.name.clone());
            // A name that was rubbed out is remembered.
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
        let of_it = self.owned.entry(owner.uid.clone()).or_default();
        of_it.insert(key.clone(), newest);
        self.owners.insert(key, owner);
        woken
    }

    pub(crate) fn remove_owned(&mut self, key: &Key) -> BTreeSet<Name> {
        let gone = self.detach(key);
        gone.and_then(|it| it.0.name).into_iter().collect()
    }

    /// Takes an object out: whose it was, and what was known of it.
    fn detach(&mut self, key: &Key) -> Option<(Owner, Option<Arc<Kept>>)> {
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

/// What is known of a kind and is not in a list.
fn lacking<'a>(number: usize, known: impl Iterator<Item = &'a Key>, fresh: &[Kept]) -> Vec<Key> {
    let listed: BTreeSet<Key> = fresh.iter().map(|kept| key_of(number, kept)).collect();
    known
        .filter(|key| key.0 == number && !listed.contains(*key))
        .cloned()
        .collect()
}

/// What a status records of an object that no owner reference shows to be owned: a hash of its kind, namespace and name.
pub(crate) fn mark(kind: &Kind, key: &Key) -> String {
    let (_, namespace, name) = key;
    let namespace = namespace.as_deref().unwrap_or_default();
    let text = format!("{}/{}/{namespace}/{name}", kind.api.group, kind.api.kind);
    hex(&Sha256::digest(text))[..MARK_LENGTH].to_owned()
}

pub(crate) fn key_of(number: usize, kept: &Kept) -> Key {
    let meta = kept.meta();
    let name = meta.name.clone().unwrap_or_default();
    (number, meta.namespace.clone(), name)
}

/// Namespace and name out of the annotation that says for which object another one was made.
fn parsed(text: &str) -> Name {
    match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, text.to_owned()),
    }
}
