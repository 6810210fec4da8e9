//! What is known of the cluster beside the operator's own objects: caches of the kinds that are owned and referred to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::watch;

use super::kept::Kept;
use super::kind::Kind;
use super::stamp::Identity;
use super::watches::Watches;
use crate::failure::chain;
use crate::object::LifecycleObject;

/// How many objects are read at once from a list.
const PAGE: u32 = 500;

/// Namespace and name of an object.
pub(crate) type Name = (Option<String>, String);

/// Which object it is: its kind, by number, its namespace and its name.
pub(crate) type Key = (usize, Option<String>, String);

/// Caches of the kinds that an application owns and refers to, in one namespace or in all.
pub(crate) struct Cluster<K> {
    pub(crate) watches: Watches<K>,
    pub(crate) identity: Identity,
    /// The only namespace that is looked at.
    pub(crate) namespace: Option<String>,
    known: Mutex<Index>,
    /// How many kinds were not listed yet.
    missing: watch::Sender<usize>,
}

#[derive(Default)]
struct Index {
    /// By the uid of whom they were made for.
    owned: HashMap<String, BTreeMap<Key, Arc<Kept>>>,
    /// Whose they are.
    owners: HashMap<Key, Owner>,
    referred: HashMap<Key, Arc<Kept>>,
    /// Who refers to what, whether it is there or not.
    referrers: HashMap<Key, BTreeSet<Name>>,
    refers: HashMap<Name, BTreeSet<Key>>,
    /// What was taken in since a list was begun, which it may not show yet.
    taken: BTreeSet<Key>,
    /// Owned kinds that cannot be listed, and why.
    unlisted: HashMap<usize, String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Owner {
    uid: String,
    name: Option<Name>,
}

/// Which of the two caches a kind is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Owned(usize),
    Referred(usize),
}

impl<K: LifecycleObject> Cluster<K> {
    pub(crate) fn new(watches: Watches<K>, namespace: Option<String>) -> Self {
        let kinds = watches.owned.len() + watches.referred.len();
        Self {
            watches,
            identity: Identity::of::<K>(),
            namespace,
            known: Mutex::default(),
            missing: watch::Sender::new(kinds),
        }
    }

    /// Whether all kinds were listed.
    pub(crate) fn is_known(&self) -> bool {
        *self.missing.borrow() == 0
    }

    /// Tells when kinds were listed.
    pub(crate) fn listed(&self) -> watch::Receiver<usize> {
        self.missing.subscribe()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // What panicked meanwhile has changed a map at most half; the next list mends it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was made for an object.
    pub(crate) fn owned(&self, uid: &str) -> BTreeMap<Key, Arc<Kept>> {
        self.index().owned.get(uid).cloned().unwrap_or_default()
    }

    /// Why an owned kind cannot be listed, if so.
    pub(crate) fn unlisted(&self, number: usize) -> Option<String> {
        self.index().unlisted.get(&number).cloned()
    }

    /// The number of a kind that is owned.
    pub(crate) fn number_of(&self, kind: &Kind) -> Option<usize> {
        self.watches.owned.iter().position(|it| it == kind)
    }

    /// Whether objects of this kind may be referred to.
    pub(crate) fn refers_to(&self, kind: &Kind) -> bool {
        self.watches.referred.iter().any(|it| it.kind == *kind)
    }

    /// An object that is referred to.
    pub(crate) fn referred(&self, kind: &Kind, name: &Name) -> Option<Arc<Kept>> {
        let number = (self.watches.referred.iter()).position(|it| it.kind == *kind)?;
        let index = self.index();
        let key = (number, name.0.clone(), name.1.clone());
        index.referred.get(&key).cloned()
    }

    /// Notes to what an object refers now.
    pub(crate) fn note_references(&self, object: &K) {
        if self.watches.referred.is_empty() {
            return;
        }
        let own = object.meta().namespace.as_deref();
        let all = self.watches.referred.iter().enumerate();
        let keys: BTreeSet<Key> = all
            .flat_map(|(number, referred)| {
                let names = (referred.names)(object).into_iter();
                let kind = &referred.kind;
                names.map(move |name| {
                    let (namespace, name) = named_from(kind, own, &name);
                    (number, namespace, name)
                })
            })
            .collect();
        let who = name_of(object);
        let index = &mut *self.index();
        if index.refers.get(&who) == Some(&keys) {
            return;
        }
        index.forget_references(&who);
        for key in &keys {
            let referrers = index.referrers.entry(key.clone()).or_default();
            referrers.insert(who.clone());
        }
        index.refers.insert(who, keys);
    }

    /// An object is gone: nothing of it is to be woken any more.
    pub(crate) fn forget(&self, object: &Name) {
        self.index().forget_references(object);
    }

    /// Forgets every object but these, after a list.
    pub(crate) fn keep_only(&self, alive: impl Fn(&Name) -> bool) {
        let index = &mut *self.index();
        let gone: Vec<Name> = (index.refers.keys())
            .filter(|name| !alive(name))
            .cloned()
            .collect();
        for name in gone {
            index.forget_references(&name);
        }
    }

    /// Takes an answer of the server in, before the watch brings it.
    pub(crate) fn take_in(&self, number: usize, kept: Kept) {
        let index = &mut *self.index();
        index.taken.insert(key_of(number, &kept));
        // Who has written it looks at it anyway.
        let _ = index.put_owned(number, kept);
    }

    /// Takes something out that was deleted, before the watch says so.
    pub(crate) fn take_out(&self, key: &Key) {
        let _ = self.index().remove_owned(key);
    }

    /// Watches all kinds, and calls `wake` for each object that something happened to; for ever.
    pub(crate) async fn watch(&self, client: &Client, wake: impl Fn(Name)) {
        let owned = self.watches.owned.iter().enumerate();
        let owned = owned.map(|(number, kind)| (Side::Owned(number), kind));
        let referred = self.watches.referred.iter().enumerate();
        let referred = referred.map(|(number, it)| (Side::Referred(number), &it.kind));
        let wake = &wake;
        let all = owned
            .chain(referred)
            .map(|(side, kind)| self.watch_kind(client, side, kind, wake));
        futures::future::join_all(all.collect::<Vec<_>>()).await;
    }

    async fn watch_kind(&self, client: &Client, side: Side, kind: &Kind, wake: &impl Fn(Name)) {
        let api: Api<Kept> = match &self.namespace {
            Some(namespace) if kind.namespaced => {
                Api::namespaced_with(client.clone(), namespace, &kind.api)
            }
            Some(_) | None => Api::all_with(client.clone(), &kind.api),
        };
        let config = watcher::Config::default().page_size(PAGE);
        let config = match side {
            Side::Owned(_) => config.labels(&self.identity.selector()),
            Side::Referred(_) => config,
        };
        let mut events = watcher(api, config).default_backoff().boxed();
        let mut fresh = Vec::new();
        let mut was_listed = false;
        while let Some(event) = events.next().await {
            let woken = match event {
                Ok(watcher::Event::Init) => {
                    fresh.clear();
                    self.index().begin_list(side);
                    continue;
                }
                Ok(watcher::Event::InitApply(kept)) => {
                    fresh.push(kept);
                    continue;
                }
                Ok(watcher::Event::InitDone) => {
                    let woken = self.index().replace(side, std::mem::take(&mut fresh));
                    if let Side::Owned(number) = side {
                        self.index().unlisted.remove(&number);
                    }
                    if !was_listed {
                        was_listed = true;
                        self.missing.send_modify(|missing| *missing -= 1);
                    }
                    woken
                }
                Ok(watcher::Event::Apply(kept)) => self.index().put(side, kept),
                Ok(watcher::Event::Delete(kept)) => self.index().remove(side, &kept),
                Err(error) => {
                    tracing::warn!(kind = %kind, "cannot watch: {}", chain(&error));
                    // What is not there, or may not be read, keeps nobody from the rest.
                    if !was_listed && is_refusal(&error) {
                        was_listed = true;
                        if let Side::Owned(number) = side {
                            self.index().unlisted.insert(number, chain(&error));
                        }
                        self.missing.send_modify(|missing| *missing -= 1);
                    }
                    continue;
                }
            };
            woken.into_iter().for_each(wake);
        }
    }
}

impl Index {
    fn put(&mut self, side: Side, kept: Kept) -> BTreeSet<Name> {
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

    fn remove(&mut self, side: Side, kept: &Kept) -> BTreeSet<Name> {
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
    fn begin_list(&mut self, side: Side) {
        if let Side::Owned(number) = side {
            self.taken.retain(|key| key.0 != number);
        }
    }

    /// A list has come: what it lacks is gone.
    fn replace(&mut self, side: Side, fresh: Vec<Kept>) -> BTreeSet<Name> {
        let mut woken = BTreeSet::new();
        let (number, known): (usize, Vec<Key>) = match side {
            Side::Owned(number) => (number, self.owners.keys().cloned().collect()),
            Side::Referred(number) => (number, self.referred.keys().cloned().collect()),
        };
        let listed: BTreeSet<Key> = fresh.iter().map(|kept| key_of(number, kept)).collect();
        let gone = (known.iter()).filter(|key| key.0 == number && !listed.contains(key));
        for key in gone {
            match side {
                Side::Owned(_) if self.taken.contains(key) => {}
                Side::Owned(_) => woken.extend(self.remove_owned(key)),
                Side::Referred(_) => {
                    self.referred.remove(key);
                    woken.extend(self.referrers.get(key).cloned().unwrap_or_default());
                }
            }
        }
        for kept in fresh {
            woken.extend(self.put(side, kept));
        }
        woken
    }

    fn put_owned(&mut self, number: usize, kept: Kept) -> BTreeSet<Name> {
        let key = key_of(number, &kept);
        // A copy of an object has its labels too, but nobody has applied it.
        let Some(uid) = kept.owner.clone().filter(|_| kept.is_applied) else {
            return self.remove_owned(&key);
        };
        let owner = Owner {
            uid,
            name: kept.owner_name.as_deref().map(parsed),
        };
        let mut woken: BTreeSet<Name> = owner.name.clone().into_iter().collect();
        let before = self.owners.insert(key.clone(), owner.clone());
        let old = before.as_ref().and_then(|before| {
            let of_it = self.owned.get_mut(&before.uid)?;
            let old = of_it.remove(&key);
            if of_it.is_empty() {
                self.owned.remove(&before.uid);
            }
            old
        });
        // A name that was rubbed out is remembered.
        if let Some(before) = before {
            woken.extend(before.name.clone());
            if owner.name.is_none()
                && let Some(owner) = self.owners.get_mut(&key)
            {
                owner.name = before.name;
            }
        }
        let newest = match old {
            Some(old) if kept.is_older(&old) => old,
            Some(old) if old.meta().resource_version == kept.meta().resource_version => {
                woken.clear();
                old
            }
            Some(_) | None => Arc::new(kept),
        };
        self.owned.entry(owner.uid).or_default().insert(key, newest);
        woken
    }

    fn remove_owned(&mut self, key: &Key) -> BTreeSet<Name> {
        let Some(owner) = self.owners.remove(key) else {
            return BTreeSet::new();
        };
        if let Some(of_it) = self.owned.get_mut(&owner.uid) {
            of_it.remove(key);
            if of_it.is_empty() {
                self.owned.remove(&owner.uid);
            }
        }
        owner.name.into_iter().collect()
    }

    fn forget_references(&mut self, who: &Name) {
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

/// Whether a list was refused for what only somebody mends: there is no such kind, or it may not be read.
fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => {
            matches!(status.code, 403 | 404)
        }
        _ => false,
    }
}

fn key_of(number: usize, kept: &Kept) -> Key {
    let meta = kept.meta();
    let name = meta.name.clone().unwrap_or_default();
    (number, meta.namespace.clone(), name)
}

/// Namespace and name of an object.
pub(crate) fn name_of<K: Resource>(object: &K) -> Name {
    let meta = object.meta();
    (
        meta.namespace.clone(),
        meta.name.clone().unwrap_or_default(),
    )
}

/// Namespace and name out of one text.
fn parsed(text: &str) -> Name {
    match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, text.to_owned()),
    }
}

/// What a name means that an object gives: it is looked for in the object's own namespace.
pub(crate) fn named_from(kind: &Kind, own: Option<&str>, text: &str) -> Name {
    if !kind.namespaced {
        return (None, text.to_owned());
    }
    match parsed(text) {
        (None, name) => (own.map(str::to_owned), name),
        named => named,
    }
}
