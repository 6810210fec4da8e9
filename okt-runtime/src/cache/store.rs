//! A handle of the operator's cache, for code outside of the operator: reads, and events as of a watch.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures::future::join_all;
use futures::{Stream, stream};
use kube::Resource;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use okt_sharding::ranges::Ranges;
use okt_wire::object::LifecycleObject;
use okt_wire::watch::change_objects;
use serde::de::Error as _;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::cache::cached::{Cached, reference};
use crate::cache::objects::{ObjectChange, Objects};

/// How many changes a reader of events may be behind before it gets a list instead.
const BEHIND: usize = 256;

/// The cache of an operator's objects, to be read from any task; clones share it.
///
/// Reads make no request. [`Operator::store`](crate::Operator::store) returns it before the operator runs.
///
/// # Contents
///
/// - The objects that the operator watches: those of its namespaces and selectors, and of a
///   [replica](crate::Operator::replicas) those of its ranges. A replica on standby has none.
/// - The versions that the watch has delivered. A write, also one of the operator itself, shows once its event arrives.
/// - All fields but `metadata.managedFields`.
///
/// The cache holds objects as compressed text, and every read decodes: keep a decoded object instead of reading it in a
/// loop. Once the operator has ended, the cache stays as it was.
pub struct Store<K: LifecycleObject> {
    parts: watch::Receiver<Vec<StorePart<K>>>,
    changes: broadcast::Sender<ObjectChange<K>>,
}

/// The operator has ended before its cache was filled; only another operator helps.
#[derive(Debug, thiserror::Error)]
#[error("the operator has ended")]
#[non_exhaustive]
pub struct OperatorEnded;

/// The objects of one namespace, or of all.
pub(crate) struct StorePart<K: LifecycleObject> {
    pub(crate) objects: Arc<Objects<K>>,
    /// Cancelled when all of them were listed.
    pub(crate) listed: CancellationToken,
}

/// The operator's end of a store; dropping it ends the store.
pub(crate) struct StoredObjects<K: LifecycleObject> {
    parts: watch::Sender<Vec<StorePart<K>>>,
    changes: broadcast::Sender<ObjectChange<K>>,
}

impl<K: LifecycleObject> Default for StoredObjects<K> {
    fn default() -> Self {
        Self {
            parts: watch::Sender::new(Vec::new()),
            changes: broadcast::Sender::new(BEHIND),
        }
    }
}

impl<K: LifecycleObject> StoredObjects<K> {
    /// Returns a handle.
    pub(crate) fn handle(&self) -> Store<K> {
        Store {
            parts: self.parts.subscribe(),
            changes: self.changes.clone(),
        }
    }

    /// Returns an empty cache that reports its changes to the handles.
    pub(crate) fn objects(&self) -> Arc<Objects<K>> {
        Arc::new(Objects::reporting(self.changes.clone()))
    }

    /// Shows these caches to the handles.
    pub(crate) fn show(&self, parts: Vec<StorePart<K>>) {
        self.parts.send_replace(parts);
    }
}

impl<K: LifecycleObject> Store<K> {
    /// Waits until the operator has listed all objects, so that one that is not found does not exist.
    ///
    /// # Errors
    ///
    /// If the operator has ended before.
    pub async fn wait_until_ready(&self) -> Result<(), OperatorEnded> {
        let mut parts = self.parts.clone();
        let listed: Vec<CancellationToken> = {
            let outcome = parts.wait_for(|parts| !parts.is_empty()).await;
            let parts = outcome.map_err(|_| OperatorEnded)?;
            parts.iter().map(|part| part.listed.clone()).collect()
        };
        tokio::select! {
            biased;
            _ = join_all(listed.iter().map(CancellationToken::cancelled)) => Ok(()),
            () = ended(&mut parts) => Err(OperatorEnded),
        }
    }

    /// Returns whether the operator has listed all objects.
    pub fn is_ready(&self) -> bool {
        let parts = self.parts.borrow();
        !parts.is_empty() && parts.iter().all(|part| part.listed.is_cancelled())
    }

    /// Returns an object; none if the operator does not watch one of this name.
    ///
    /// # Errors
    ///
    /// If the object does not decode. The operator reports that in the object's conditions.
    pub fn get(&self, name: &ObjectRef<K>) -> Result<Option<Arc<K>>, Box<InvalidObject>> {
        let name = reference(&name.name, name.namespace.as_deref());
        self.cached(&name).map(|cached| read(&cached)).transpose()
    }

    /// Returns all objects of this moment, in no order. Each is decoded when the iterator comes to it.
    pub fn iter(&self) -> impl Iterator<Item = Result<Arc<K>, Box<InvalidObject>>> + use<K> {
        self.all().into_iter().map(|cached| read(&cached))
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.parts
            .borrow()
            .iter()
            .map(|part| part.objects.len())
            .sum()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the events of the operator's watch, as [`watcher`](watcher()) returns them: a list first, then each change.
    ///
    /// With it other operators and controllers of the same process need no watch of their own for the kind. All that kube
    /// has for streams of a watcher works: [`WatchStreamExt`](kube::runtime::WatchStreamExt), and with kube's feature
    /// `unstable-runtime` `Controller::for_stream`.
    ///
    /// ```
    /// # use futures::StreamExt;
    /// # use kube::ResourceExt;
    /// # use kube::runtime::WatchStreamExt;
    /// # use kube::runtime::reflector::ObjectRef;
    /// # use okt::{Application, LifecycleObject, Operator, Store};
    /// # fn example<A: Application, K: LifecycleObject>(kiosks: Operator<A>, databases: Store<K>) -> Operator<A> {
    /// // A change of a database reconciles the kiosk of its name.
    /// let changed = databases.events().touched_objects();
    /// kiosks.reconcile_on(changed.filter_map(async |database| {
    ///     let database = database.inspect_err(|error| tracing::warn!("{error}")).ok()?;
    ///     Some(ObjectRef::new(&database.name_any()).within(&database.namespace()?))
    /// }))
    /// # }
    /// ```
    ///
    /// - Events begin when the operator has listed all objects, and end with the operator.
    /// - Changes that follow each other quickly may arrive as one, with the newest object.
    /// - A reader that is more than 256 changes behind gets a new list of the cache, as after a broken watch.
    /// - An object that does not decode is an error; the stream goes on.
    pub fn events(&self) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + use<K> {
        let reader = StoreReader {
            store: self.clone(),
            changes: self.changes.subscribe(),
            pending: VecDeque::new(),
            is_listed: false,
        };
        stream::unfold(reader, |mut reader| async move {
            let event = reader.next().await?;
            Some((event, reader))
        })
    }

    /// Calls a function with each object, in any order; it must be quick.
    pub(crate) fn for_each(&self, mut see: impl FnMut(&Cached<K>)) {
        for part in self.parts.borrow().iter() {
            part.objects.for_each(&mut see);
        }
    }

    /// Returns an object by its name.
    pub(crate) fn find(&self, name: &str, namespace: Option<&str>) -> Option<Cached<K>> {
        self.cached(&reference(name, namespace))
    }

    fn cached(&self, name: &ObjectRef<Cached<K>>) -> Option<Cached<K>> {
        let parts = self.parts.borrow();
        parts.iter().find_map(|part| part.objects.get(name))
    }

    fn all(&self) -> Vec<Cached<K>> {
        let parts = self.parts.borrow();
        parts
            .iter()
            .flat_map(|part| part.objects.in_ranges(Ranges::ALL))
            .collect()
    }
}

impl<K: LifecycleObject> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self {
            parts: self.parts.clone(),
            changes: self.changes.clone(),
        }
    }
}

impl<K: LifecycleObject> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("len", &self.len())
            .field("is_ready", &self.is_ready())
            .finish()
    }
}

/// A reader of events.
struct StoreReader<K: LifecycleObject> {
    store: Store<K>,
    changes: broadcast::Receiver<ObjectChange<K>>,
    /// The rest of a list; objects are decoded when it is their turn.
    pending: VecDeque<watcher::Event<Cached<K>>>,
    is_listed: bool,
}

impl<K: LifecycleObject> StoreReader<K> {
    /// Returns the next event; none once the operator has ended.
    async fn next(&mut self) -> Option<watcher::Result<watcher::Event<K>>> {
        if !self.is_listed {
            self.store.wait_until_ready().await.ok()?;
            self.is_listed = true;
            self.list();
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(change_objects(event, |cached| decoded(&cached)));
            }
            let change = tokio::select! {
                biased;
                change = self.changes.recv() => change,
                () = ended(&mut self.store.parts) => return None,
            };
            match change {
                Ok(ObjectChange::Put(name)) => {
                    // If it is gone by now, that is a change of its own.
                    let event = self.store.cached(&name).map(watcher::Event::Apply);
                    self.pending.extend(event);
                }
                Ok(ObjectChange::Gone(object)) => {
                    let is_same = |now: Cached<K>| now.meta().uid == object.meta().uid;
                    if !self.store.cached(&object.reference()).is_some_and(is_same) {
                        self.pending.push_back(watcher::Event::Delete(object));
                    }
                }
                Ok(ObjectChange::Listed) | Err(_) => self.list(),
            }
        }
    }

    /// Begins a list of the cache.
    fn list(&mut self) {
        // Changes from here on follow the list; those before are in it.
        self.changes = self.changes.resubscribe();
        let all = self.store.all().into_iter();
        self.pending = std::iter::once(watcher::Event::Init)
            .chain(all.map(watcher::Event::InitApply))
            .chain([watcher::Event::InitDone])
            .collect();
    }
}

/// Waits until the operator has ended.
async fn ended<K: LifecycleObject>(parts: &mut watch::Receiver<Vec<StorePart<K>>>) {
    while parts.changed().await.is_ok() {}
}

fn read<K: LifecycleObject>(cached: &Cached<K>) -> Result<Arc<K>, Box<InvalidObject>> {
    cached.read().map_err(|error| {
        Box::new(InvalidObject {
            error,
            metadata: cached.meta().clone(),
        })
    })
}

fn decoded<K: LifecycleObject>(cached: &Cached<K>) -> watcher::Result<K> {
    let decoded = cached.read().map(|object| K::clone(&object));
    decoded.map_err(|error| {
        let error = format!("{}: {error}", cached.reference());
        watcher::Error::WatchFailed(kube::Error::SerdeError(serde_json::Error::custom(error)))
    })
}
