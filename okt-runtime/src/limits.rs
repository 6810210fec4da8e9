//! The limits of an operator: who has a place, who is next, and what is given back.
//!
//! | module | content |
//! |---|---|
//! | `rules` | what a replica may change of a table of places; pure |
//! | `tables` | the tables on the API server |
//! | this | what the cache knows of the objects, and when that changes a table |

mod rules;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use okt_core::{Gate as DeclaredGate, GateKind, Lifecycle, LifecycleGate, reasons};
use okt_sharding::gate::{Access, Gate, Holders};
use okt_wire::clock::Clock;
use okt_wire::object::{LifecycleObject, position_of};
use okt_wire::places::{LimitKey, LimitPlace, LimitTable, WaitingObject};
use okt_wire::scope::{api, with_name};
use okt_wire::texts::api_message;
use okt_wire::watch::Connection;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use self::rules::{Asking, OwnObjects, Replicas, Waits, is_news, registered, taken, tended};
use self::tables::{KnownTable, Tables};
use crate::author::application::{Application, StateOf};
use crate::author::limit::Limit;
use crate::cache::cached::Cached;
use crate::cache::store::Store;

/// How long an object may take for the move for which it has got a place, if its version changes meanwhile.
const PENDING: Duration = Duration::from_secs(10);

/// How long news are collected before a table is written for them: many objects begin to wait at a time.
const SOON: Duration = Duration::from_millis(100);

/// How often the tables are tended if nothing happens.
const ROUTINE: Duration = Duration::from_secs(10);

/// How long a move that is made in any case waits until it is registered (L8).
const FORCED: Duration = Duration::from_secs(3);

/// The limits of an operator.
pub(crate) struct Limits<A: Application> {
    application: Arc<A>,
    client: Client,
    tables: Tables,
    /// The run of this process, if it is in no group.
    alone: String,
    gate: Gate,
    store: Store<A::Resource>,
    clock: Clock,
    /// What is known of objects that wait, by their uids.
    waiting: Mutex<HashMap<String, KnownWait<A::Resource>>>,
    /// Objects that have asked in vain: the cache may not have their new status yet.
    asked: Mutex<HashMap<String, Refused<A::Resource>>>,
    /// The uids of objects whose status was written: the cache may not have it yet.
    written: Mutex<HashSet<String>>,
    /// Places of which the API server has said that they are used no more: they never are again.
    left: Mutex<Vec<LimitPlace>>,
    /// Something has happened that a table may have to know.
    news: Notify,
    /// One change of a table at a time.
    turn: tokio::sync::Mutex<()>,
}

/// An object that waits, as a version of it says.
#[derive(Clone)]
struct KnownWait<K: LifecycleObject> {
    version: String,
    key: LimitKey,
    /// The number of places, unless a person has set another one.
    places: u32,
    waiting: WaitingObject,
    object: ObjectRef<K>,
}

impl<K: LifecycleObject> KnownWait<K> {
    /// Returns how the object would ask.
    fn asking(&self) -> Asking {
        Asking {
            key: self.waiting.clone(),
            version: self.version.clone(),
            transition: 0,
            object: self.object.name.clone(),
            places: self.places,
        }
    }
}

/// An object that has asked in vain, and when.
struct Refused<K: LifecycleObject> {
    wait: KnownWait<K>,
    at: Instant,
}

impl<K: LifecycleObject> Refused<K> {
    fn is_recent(&self) -> bool {
        self.at.elapsed() < PENDING
    }
}

/// Why an object got no place, as the end of a sentence.
pub(crate) struct NoPlace(pub(crate) String);

impl<A: Application> Limits<A> {
    /// Returns the limits of an application; none if its graph has none.
    pub(crate) fn of(
        application: &Arc<A>,
        client: &Client,
        gate: &Gate,
        store: Store<A::Resource>,
        clock: Clock,
    ) -> Option<Arc<Self>> {
        let mut gates = StateOf::<A>::GRAPH.gates.iter();
        gates.find(|gate| gate.kind == GateKind::Limit)?;
        let plural = A::Resource::plural(&());
        let group = gate.group();
        let place = group.unwrap_or((&plural, client.default_namespace()));
        Some(Arc::new(Self {
            application: Arc::clone(application),
            client: client.clone(),
            tables: Tables::new(client, place, A::Resource::crd_name()),
            alone: format!("{plural}-alone"),
            gate: gate.clone(),
            store,
            clock,
            waiting: Mutex::default(),
            asked: Mutex::default(),
            written: Mutex::default(),
            left: Mutex::default(),
            news: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    /// Looks after the tables; `wake` is called with an object whose turn it is.
    pub(crate) async fn tend(
        &self,
        connection: &Connection,
        wake: impl Fn(ObjectRef<A::Resource>),
    ) {
        let watched = self.tables.watch(connection, || self.news.notify_one());
        let tended = async {
            loop {
                tokio::select! {
                    () = self.news.notified() => sleep(SOON).await,
                    () = sleep(ROUTINE) => {}
                }
                self.forget_old();
                for known in self.tables.all() {
                    self.tend_one(&known, &wake).await;
                }
            }
        };
        tokio::select! {
            () = watched => {}
            () = tended => {}
        }
    }

    /// Notes that the status of an object was written: it may have left the states of a limit.
    pub(crate) fn note(&self, uid: &str) {
        if self.tables.has(uid) {
            self.written.lock().insert(uid.to_owned());
            self.news.notify_one();
        }
    }

    /// Returns the place of an object in a limit.
    pub(crate) fn place(&self, gate: &DeclaredGate<'_>, uid: &str) -> Option<LimitPlace> {
        self.tables.place(gate.name, uid).map(|(_, place)| place)
    }

    /// Returns the group in which an object has its place in a limit.
    pub(crate) fn group(&self, gate: &DeclaredGate<'_>, uid: &str) -> Option<String> {
        let (key, _) = self.tables.place(gate.name, uid)?;
        Some(key.group)
    }

    /// Takes a place for an object, by its version. `since` is when it began to wait.
    ///
    /// # Errors
    ///
    /// Why it has none, as the end of a sentence.
    pub(crate) async fn take(
        &self,
        gate: &'static DeclaredGate<'static>,
        object: &A::Resource,
        since: Timestamp,
    ) -> Result<(), NoPlace> {
        let (key, asking) = self.asking(gate, object, since)?;
        let name = key.to_string();
        let _turn = self.turn.lock().await;
        let now = self.clock.now();
        let replicas = self.replicas(&key);
        let mut own = self.own(gate, &key).await;
        own.left.retain(|place| place.uid != asking.key.uid);
        let known = self.tables.get(&key);
        let passes = known.is_some_and(|known| known.passes());
        let mut waits = None;
        let changed = self.tables.change(&key, now, |table| {
            match taken(table, &replicas, &own, &asking, passes, now) {
                Ok(next) => {
                    waits = None;
                    Some(next)
                }
                Err(why) => {
                    waits = Some(why);
                    // Others count their objects once they see that one waits.
                    (*table == LimitTable::default()).then(|| {
                        let mut own = own.clone();
                        own.waiting.push(asking.key.clone());
                        own.waiting.sort();
                        tended(table, &replicas, &own)
                    })
                }
            }
        });
        changed
            .await
            .map_err(|why| NoPlace(format!("{name}: {why}")))?;
        let Some(waits) = waits else { return Ok(()) };
        let wait = KnownWait {
            version: asking.version,
            key,
            places: asking.places,
            waiting: asking.key,
            object: ObjectRef::from_obj(object),
        };
        let uid = wait.waiting.uid.clone();
        let at = Instant::now();
        self.asked.lock().insert(uid, Refused { wait, at });
        self.news.notify_one();
        Err(NoPlace(match waits {
            Waits::Full | Waits::Behind => name,
            Waits::Uncounted => format!(
                "{name}: not every replica has counted its objects yet, or one is of a release without the limit"
            ),
        }))
    }

    /// Registers an object before a move that is made in any case; after three seconds the move goes first.
    pub(crate) async fn register(
        &self,
        gate: &'static DeclaredGate<'static>,
        object: &A::Resource,
    ) -> Result<(), NoPlace> {
        let now = self.clock.now();
        let (key, asking) = self.asking(gate, object, now)?;
        let registers = async {
            let _turn = self.turn.lock().await;
            let (replicas, own) = (self.replicas(&key), self.own(gate, &key).await);
            let changed = self.tables.change(&key, now, |table| {
                Some(registered(table, &replicas, &own, &asking, now))
            });
            changed.await.map_err(NoPlace)
        };
        let registered = tokio::time::timeout(FORCED, registers).await;
        registered.unwrap_or_else(|_| Err(NoPlace("no answer".to_owned())))
    }

    fn asking(
        &self,
        gate: &'static DeclaredGate<'static>,
        object: &A::Resource,
        since: Timestamp,
    ) -> Result<(LimitKey, Asking), NoPlace> {
        let limit = self
            .limit(gate, object)
            .ok_or_else(|| NoPlace(gate.name.to_owned()))?;
        let meta = object.meta();
        let uid = meta.uid.clone().unwrap_or_default();
        // It keeps its place where it took it.
        let held = self.tables.place(gate.name, &uid).map(|(key, _)| key);
        let key = held.unwrap_or_else(|| Self::key(gate, limit.group.clone()));
        let asking = Asking {
            key: WaitingObject {
                rank: limit.rank,
                since,
                uid,
            },
            version: meta.resource_version.clone().unwrap_or_default(),
            transition: position_of(object).map_or(0, |it| it.transition),
            object: object_name(object),
            places: limit.places,
        };
        Ok((key, asking))
    }

    fn limit(&self, gate: &'static DeclaredGate<'static>, object: &A::Resource) -> Option<Limit> {
        let gates = StateOf::<A>::GRAPH.all_gates();
        let (id, _) = gates.into_iter().find(|(_, it)| it.name == gate.name)?;
        let named = <StateOf<A> as Lifecycle>::Gate::from_id(id)?;
        Some(self.application.limit(object, named))
    }

    fn key(gate: &DeclaredGate<'_>, group: String) -> LimitKey {
        LimitKey {
            crd: A::Resource::crd_name().to_owned(),
            limit: gate.name.to_owned(),
            group,
        }
    }

    fn replicas(&self, key: &LimitKey) -> Replicas {
        let alone = || Holders {
            own: self.alone.clone(),
            all: Some([self.alone.clone()].into()),
            epoch: 0,
        };
        let holders = self.gate.holders().unwrap_or_else(alone);
        Replicas {
            own: holders.own,
            holders: holders.all,
            epoch: holders.epoch,
            has_counted: !self.tables.is_lost(key),
        }
    }

    /// Returns what this replica knows of its objects, for a table.
    async fn own(&self, gate: &'static DeclaredGate<'static>, key: &LimitKey) -> OwnObjects {
        let table = self
            .tables
            .get(key)
            .map(|known| known.table)
            .unwrap_or_default();
        let mut seen = Vec::new();
        self.store.for_each(|cached| {
            let uid = cached.meta().uid.as_deref().unwrap_or_default();
            if self.gate.access(uid) != Access::Open {
                return;
            }
            let glance = cached.glance();
            let waits = matches!(&glance.unsettled, Some((_, reason)) if **reason == *reasons::WAITING_FOR_LIMIT);
            let is_inside = glance.state.is_some_and(|state| gate.states.contains(&state));
            if waits || (is_inside && self.tables.place(gate.name, uid).is_none()) {
                seen.push((cached.clone(), is_inside));
            }
        });
        let mut own = OwnObjects::default();
        for (cached, is_inside) in seen {
            if is_inside {
                own.unregistered
                    .extend(self.unregistered(gate, key, &cached));
            } else if let Some(wait) = self.wait(gate, &cached)
                && wait.key == *key
            {
                own.waiting.push(wait.waiting);
            }
        }
        own.waiting.extend(self.asked_for(key, &own.waiting));
        own.waiting
            .retain(|it| table.of(&it.uid).is_none_or(|place| place.registered));
        own.waiting.sort();
        self.left.lock().retain(|place| self.tables.has(&place.uid));
        for place in &table.places {
            if !self.left.lock().contains(place) {
                if !self.has_left(gate, place).await {
                    continue;
                }
                self.left.lock().push(place.clone());
            }
            own.left.push(place.clone());
        }
        own
    }

    /// Returns the objects that have asked in vain, and of which the cache has no newer version.
    fn asked_for(&self, key: &LimitKey, known: &[WaitingObject]) -> Vec<WaitingObject> {
        let asked = self.asked.lock();
        let waits = asked.values().filter(|refused| {
            let wait = &refused.wait;
            refused.is_recent()
                && wait.key == *key
                && self.is_newest(wait)
                && known.iter().all(|it| it.uid != wait.waiting.uid)
        });
        waits.map(|it| it.wait.waiting.clone()).collect()
    }

    /// Returns whether the cache has the version of an object by which it waits.
    fn is_newest(&self, wait: &KnownWait<A::Resource>) -> bool {
        let object = &wait.object;
        let cached = self.store.find(&object.name, object.namespace.as_deref());
        cached.is_some_and(|cached| cached.meta().resource_version.as_ref() == Some(&wait.version))
    }

    /// Returns an object inside without a place, as it is registered.
    fn unregistered(
        &self,
        gate: &'static DeclaredGate<'static>,
        key: &LimitKey,
        cached: &Cached<A::Resource>,
    ) -> Option<LimitPlace> {
        let object = cached.read().ok()?;
        let limit = self.limit(gate, &object)?;
        (limit.group == key.group).then_some(())?;
        Some(LimitPlace {
            uid: object.uid()?,
            version: object.resource_version()?,
            object: object_name(&*object),
            transition: position_of(&*object)?.transition,
            since: self.clock.now(),
            registered: true,
        })
    }

    /// Returns what an object waits for, which is computed once for each version of it.
    fn wait(
        &self,
        gate: &'static DeclaredGate<'static>,
        cached: &Cached<A::Resource>,
    ) -> Option<KnownWait<A::Resource>> {
        let meta = cached.meta();
        let (uid, version) = (meta.uid.clone()?, meta.resource_version.clone()?);
        let known = self.waiting.lock().get(&uid).cloned();
        if let Some(known) = known.filter(|known| known.version == version) {
            return Some(known);
        }
        let object = cached.read().ok()?;
        let waiting = position_of(&*object)?.waiting.as_ref()?;
        let waits_here = waiting.gate == gate.name;
        let limit = self.limit(gate, &object).filter(|_| waits_here)?;
        let wait = KnownWait {
            version,
            key: Self::key(gate, limit.group),
            places: limit.places,
            waiting: WaitingObject {
                rank: limit.rank,
                since: waiting.since.unwrap_or(Timestamp::UNIX_EPOCH),
                uid: uid.clone(),
            },
            object: ObjectRef::from_obj(&*object),
        };
        self.waiting.lock().insert(uid, wait.clone());
        Some(wait)
    }

    /// Returns whether the place of an object of this replica is used no more, by the API server (L1, L3).
    async fn has_left(&self, gate: &DeclaredGate<'_>, place: &LimitPlace) -> bool {
        if self.gate.access(&place.uid) != Access::Open {
            return false;
        }
        let (namespace, name) = match place.object.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &*place.object),
        };
        // What was just written is read from the API server.
        if !self.written.lock().remove(&place.uid)
            && let Some(cached) = self.store.find(name, namespace)
            && cached.meta().uid.as_deref() == Some(&place.uid)
        {
            let state = cached.glance().state;
            let is_inside = state.is_some_and(|state| gate.states.contains(&state));
            let is_bound = cached.meta().resource_version.as_deref() == Some(&place.version);
            if is_inside || is_bound {
                return false;
            }
        }
        let kind = ApiResource::erase::<A::Resource>(&());
        let objects: Api<DynamicObject> = api(&self.client, namespace, &kind);
        let found = match objects.list(&with_name(name)).await {
            Ok(found) => found.items.into_iter().next(),
            Err(error) => {
                tracing::debug!(object = place.object, "not read: {}", api_message(&error));
                return false;
            }
        };
        let Some(found) = found.filter(|found| found.uid().as_ref() == Some(&place.uid)) else {
            return true;
        };
        let position = &found.data["status"]["lifecycle"];
        let state = position["state"].as_str().unwrap_or_default();
        let state = StateOf::<A>::from_name(state).map(Lifecycle::id);
        let is_outside = state.is_none_or(|state| !gate.states.contains(&state));
        let is_moved = position["transition"].as_u64().unwrap_or_default() != place.transition;
        let age: Duration = self.clock.since(place.since);
        is_outside
            && found.resource_version().as_ref() != Some(&place.version)
            && (is_moved || age >= PENDING)
    }

    /// Writes what others have to know, and wakes the object whose turn it is.
    async fn tend_one(&self, known: &KnownTable, wake: &impl Fn(ObjectRef<A::Resource>)) {
        let mut gates = StateOf::<A>::GRAPH.gates.iter();
        let Some(gate) = gates.find(|gate| gate.name == known.key.limit) else {
            return;
        };
        let _turn = self.turn.lock().await;
        let now = self.clock.now();
        if known.is_over(now) {
            return self.tables.delete(known).await;
        }
        let replicas = self.replicas(&known.key);
        if !replicas.is_holder(&replicas.own) {
            return;
        }
        let own = self.own(gate, &known.key).await;
        let first = own.waiting.first().and_then(|it| self.known_wait(&it.uid));
        let mut is_turn = false;
        let changed = self.tables.change(&known.key, now, |table| {
            let after = tended(table, &replicas, &own);
            is_turn = first.as_ref().is_some_and(|first| {
                let asking = first.asking();
                taken(&after, &replicas, &own, &asking, known.passes(), now).is_ok()
            });
            is_news(table, &after, &replicas).then_some(after)
        });
        if let Err(why) = changed.await {
            tracing::debug!(limit = known.key.limit, "not written: {why}");
        }
        if let Some(first) = first.filter(|_| is_turn) {
            wake(first.object);
        }
    }

    fn known_wait(&self, uid: &str) -> Option<KnownWait<A::Resource>> {
        let known = self.waiting.lock().get(uid).cloned();
        known.or_else(|| Some(self.asked.lock().get(uid)?.wait.clone()))
    }

    /// Forgets what is known of objects that wait no more.
    fn forget_old(&self) {
        self.waiting.lock().retain(|_, wait| self.is_newest(wait));
        self.asked.lock().retain(|_, it| it.is_recent());
    }
}

fn object_name<K: LifecycleObject>(object: &K) -> String {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    match meta.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
