//! What is known of the cluster beside the operator's own objects: caches of the kinds that are owned and referred to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::watch;

use super::index::{Index, Key, Name, Side, key_of, parsed};
use super::kept::Kept;
use super::kind::Kind;
use super::stamp::Identity;
use super::watches::Watches;
use crate::failure::chain;
use crate::object::LifecycleObject;

/// How many objects are read at once from a list.
pub(crate) const PAGE: u32 = 500;

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

    /// Whether anything was made for an object.
    pub(crate) fn owns_anything(&self, uid: &str) -> bool {
        self.index().owned.contains_key(uid)
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

/// Whether a list was refused for what only somebody mends: there is no such kind, or it may not be read.
fn is_refusal(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => {
            matches!(status.code, 403 | 404)
        }
        _ => false,
    }
}

/// Namespace and name of an object.
pub(crate) fn name_of<K: Resource>(object: &K) -> Name {
    let meta = object.meta();
    (
        meta.namespace.clone(),
        meta.name.clone().unwrap_or_default(),
    )
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
