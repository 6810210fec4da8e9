//! Caches of the kinds that an application owns and refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher;
use okt_sharding::gate::Gate;
use okt_sharding::ranges::Ranges;
use okt_wire::clock::{after, until};
use okt_wire::digest;
use okt_wire::object::LifecycleObject;
use okt_wire::revision;
use okt_wire::texts::{LastError, watch_message};
use okt_wire::watch::{Connection, PAGE};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::cascade::Exposed;
use super::index::{Index, Side, Unlisted, key_of};
use super::inventory::Finished;
use super::kept::Kept;
use super::kind::ResourceKind;
use super::names::{Key, Misnamed, Name, placed};
use super::owner::Owner;
use super::ready::{Lack, is_judged_by_conditions, lack};
use super::requests;
use super::stamp::Identity;
use super::watches::{Mapped, Referred, WatchedKinds, Watches};

/// How long fewer ranges must be wanted before the others are not watched any more.
const REST: Duration = Duration::from_mins(1);

/// How long a kind may fail to be listed at first before the objects go on without it. A refusal counts at once: it does
/// not pass by itself.
const LIST_PATIENCE: Duration = Duration::from_secs(30);

/// A function that enqueues an object.
type Wake<'a> = dyn Fn(Name) + Send + Sync + 'a;

/// Caches of the kinds that an application owns and refers to, in one namespace or in all.
pub struct Cluster {
    pub(crate) watches: WatchedKinds,
    pub(crate) identity: Identity,
    /// The only watched namespace, if the operator is limited to one.
    pub(crate) namespace: Option<String>,
    known: Mutex<Index>,
    misnamed: Misnamed,
    /// For each kind, owned ones first: the ranges of owners whose objects were listed.
    listed: watch::Sender<Vec<Ranges>>,
    /// The owned kinds whose objects have a status, as far as that is known.
    with_status: Mutex<BTreeSet<usize>>,
    /// The workloads that a deletion of their owner in the foreground takes away.
    pub exposed: Exposed,
    /// Notifies when an owned object changes.
    heard: watch::Sender<()>,
}

impl Cluster {
    /// Creates empty caches.
    ///
    /// `namespaced` is the scope of the operator's own kind; `namespace` is the only watched namespace, if any.
    pub fn new<K: LifecycleObject>(
        watches: Watches<K>,
        namespaced: bool,
        namespace: Option<String>,
    ) -> Self {
        Self::with(watches.kinds, Identity::of::<K>(), namespaced, namespace)
    }

    fn with(
        watches: WatchedKinds,
        identity: Identity,
        namespaced: bool,
        namespace: Option<String>,
    ) -> Self {
        let kinds = watches.owned.len() + watches.referred.len();
        let known = Index::new(watches.owned.clone(), namespaced);
        Self {
            watches,
            identity,
            namespace,
            known: Mutex::new(known),
            misnamed: Misnamed::default(),
            listed: watch::Sender::new(vec![Ranges::NONE; kinds]),
            with_status: Mutex::default(),
            exposed: Exposed::default(),
            heard: watch::Sender::default(),
        }
    }

    /// Fills the caches by hand, for tests: all kinds count as listed.
    pub(crate) fn fill(&self, objects: impl IntoIterator<Item = (Side, Kept)>) {
        let mut index = self.index();
        for (side, kept) in objects {
            let _ = index.put(side, kept);
        }
        self.listed.send_modify(|listed| listed.fill(Ranges::ALL));
    }

    /// Returns the ranges of owners of which all kinds were listed.
    pub fn known(&self) -> Ranges {
        known(&self.listed.borrow())
    }

    /// Returns a stream of the ranges of owners of which all kinds are listed from now on.
    pub fn becoming_known(&self) -> BoxStream<'static, Ranges> {
        let listed = self.listed.subscribe();
        let first = known(&listed.borrow());
        stream::unfold((listed, first), |(mut listed, before)| async move {
            if listed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let now = known(&listed.borrow_and_update());
            Some((now.without(before), (listed, now)))
        })
        .boxed()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // A panic may have left a map half updated; the next list corrects it.
        self.known.lock()
    }

    /// Returns the objects that an owner owns.
    pub(crate) fn owned(&self, owner: &ObjectMeta) -> BTreeMap<Key, Arc<Kept>> {
        self.index().owned_by(owner)
    }

    /// Returns whether an owner owns any object.
    pub(crate) fn owns_anything(&self, owner: &ObjectMeta) -> bool {
        self.index().owns_anything(owner)
    }

    /// Forgets how objects of an owner ended, but for those that are still declared.
    pub(super) fn keep_ended(&self, uid: &str, declared: &[&Key]) {
        self.index().keep_ended(uid, declared);
    }

    /// Returns how an object ended that is gone and is done once.
    pub(super) fn ended(&self, uid: &str, key: &Key) -> Option<Finished> {
        self.index().ended(uid, key)
    }

    /// Returns the uid of an object of an owner that is gone and was not made again.
    pub(super) fn vanished(&self, owner: &str, key: &Key) -> Option<String> {
        self.index().vanished(owner, key)
    }

    /// Forgets which objects of an owner are gone, but for those that are still declared.
    pub(super) fn keep_vanished(&self, owner: &str, declared: &BTreeSet<Key>) {
        self.index().keep_vanished(owner, declared);
    }

    /// Notes the owned objects that the status of an object records.
    pub fn note_recorded(&self, owner: Owner<'_>) {
        self.index().note_recorded(owner.uid(), owner.recorded);
    }

    /// Returns why an owned kind cannot be listed; none if it can.
    pub(crate) fn unlisted(&self, number: usize) -> Option<String> {
        let index = self.index();
        Some(index.unlisted.get(&number)?.why.clone())
    }

    /// Lets an object wait until an owned kind is listed: it is reconciled then.
    pub(crate) fn wait_for_list(&self, number: usize, owner: Owner<'_>) {
        self.index().note_waiting(number, owner.name());
    }

    /// Returns why owned objects may exist that the operator cannot see; none if it sees all.
    pub fn hidden(&self) -> Option<String> {
        let index = self.index();
        let hidden = |(_, kind): &(&usize, &Unlisted)| kind.may_have_objects;
        let (number, unlisted) = index.unlisted.iter().find(hidden)?;
        Some(self.unlisted_text(*number, unlisted))
    }

    fn unlisted_text(&self, number: usize, unlisted: &Unlisted) -> String {
        let kind = &self.watches.owned[number];
        format!("{kind} objects cannot be listed: {}", unlisted.why)
    }

    /// Returns the kinds that cannot be listed, each with the reason.
    pub fn unlisted_kinds(&self) -> Vec<String> {
        let index = self.index();
        let unlisted = index.unlisted.iter();
        let owned = unlisted.map(|(number, unlisted)| self.unlisted_text(*number, unlisted));
        let unseen = index.unseen_referred.iter();
        let referred = unseen.map(|(number, unlisted)| self.unseen_text(*number, unlisted));
        owned.chain(referred).collect()
    }

    /// Returns the kinds that were not listed so far, although nothing says that they cannot be.
    pub fn awaited_kinds(&self) -> Vec<String> {
        let owned = self.watches.owned.iter();
        let referred = self.watches.referred.iter().map(|it| &it.kind);
        let listed = self.listed.borrow();
        let kinds = owned.chain(referred).zip(listed.iter());
        kinds
            .filter(|(_, ranges)| **ranges != Ranges::ALL)
            .map(|(kind, _)| kind.to_string())
            .collect()
    }

    /// Returns whether objects may exist of a kind that objects refer to, and that cannot be listed.
    pub(crate) fn lacks_referred(&self) -> bool {
        if self.watches.referred.is_empty() {
            return false;
        }
        let index = self.index();
        index.unseen_referred.values().any(|it| it.may_have_objects)
    }

    /// Returns why an object that an owner refers to may not be seen although it exists; none if all are seen.
    pub(super) fn unseen_reference(&self, owner: Owner<'_>) -> Option<String> {
        if !self.lacks_referred() {
            return None;
        }
        let keys = self.references_of(owner, |_| true);
        self.unseen_among(|number, _| keys.iter().any(|key| key.0 == number))
    }

    /// Returns why a kind that objects refer to fails to be listed; none if it does not, or is refused.
    pub(crate) fn failing_reference(&self, api: &ApiResource) -> Option<String> {
        let is_it = |number: usize| self.watches.referred[number].kind.api == *api;
        self.unseen_among(|number, unlisted| !unlisted.is_refused && is_it(number))
    }

    fn unseen_among(&self, is_it: impl Fn(usize, &Unlisted) -> bool) -> Option<String> {
        let index = self.index();
        let mut unseen = index.unseen_referred.iter();
        let (number, unlisted) =
            unseen.find(|(number, it)| it.may_have_objects && is_it(**number, it))?;
        Some(self.unseen_text(*number, unlisted))
    }

    fn unseen_text(&self, number: usize, unlisted: &Unlisted) -> String {
        let kind = &self.watches.referred[number].kind;
        format!(
            "{kind} objects, to which it refers, cannot be listed: {}",
            unlisted.why
        )
    }

    /// Returns why an owned kind fails to be listed; none if it does not, or is refused.
    pub(crate) fn failing_kind(&self, number: usize) -> Option<String> {
        let index = self.index();
        let unlisted = index.unlisted.get(&number).filter(|it| !it.is_refused)?;
        Some(self.unlisted_text(number, unlisted))
    }

    /// Returns why an object of an owned kind is not ready; none if it is.
    pub(crate) fn lack(&self, number: usize, object: &Value) -> Option<Lack> {
        let has_status = self.with_status.lock().contains(&number);
        lack(&self.watches.owned[number], has_status, object)
    }

    /// Asks the API server whether the objects of an owned kind have a status.
    ///
    /// Without an answer, an object that has none counts as ready.
    async fn learn_status(&self, connection: &Connection, number: usize, kind: &ResourceKind) {
        if self.is_bare(number) || !is_judged_by_conditions(kind) {
            return;
        }
        let asked = connection
            .client
            .list_api_group_resources(&kind.api.api_version);
        let served = match asked.await {
            Ok(served) => served.resources,
            Err(error) => {
                tracing::debug!(%kind, "cannot learn whether it has a status: {error}");
                return;
            }
        };
        let status = format!("{}/status", kind.api.plural);
        if served.iter().any(|it| it.name == status) {
            self.with_status.lock().insert(number);
        }
    }

    /// Returns a receiver that is notified when an owned object changes.
    pub(crate) fn heard(&self) -> watch::Receiver<()> {
        self.heard.subscribe()
    }

    /// Returns the index of an owned kind.
    pub(crate) fn number_of(&self, api: &ApiResource) -> Option<usize> {
        self.watches.owned.iter().position(|it| it.api == *api)
    }

    /// Returns whether only the metadata of a kind is watched.
    pub(crate) fn is_bare(&self, number: usize) -> bool {
        self.watches.bare.contains(&number)
    }

    /// Returns the declared references to a kind, within a namespace or across namespaces, with their indexes.
    fn referred_as(
        &self,
        api: &ApiResource,
        across: bool,
    ) -> impl Iterator<Item = (usize, &Referred)> {
        let all = self.watches.referred.iter().enumerate();
        all.filter(move |(_, it)| it.kind.api == *api && it.is_across == across)
    }

    /// Returns whether the application declares references to this kind, within a namespace or across namespaces.
    pub(crate) fn refers_to(&self, api: &ApiResource, across: bool) -> bool {
        self.referred_as(api, across).next().is_some()
    }

    /// Returns an object that `object` refers to; a namespace counts only for references across namespaces.
    pub(crate) fn referred(
        &self,
        owner: Owner<'_>,
        api: &ApiResource,
        across: bool,
        (namespace, name): (Option<&str>, &str),
    ) -> Option<Arc<Kept>> {
        let namespace = namespace.filter(|_| across);
        self.referred_as(api, across)
            .find_map(|(number, referred)| {
                let (namespace, name) = self.placed(owner, &referred.kind, namespace, name)?;
                let key = (number, namespace, name);
                self.index().referred.get(&key).cloned()
            })
    }

    /// Returns the namespace and name of a referenced object; logs a name that cannot exist, once.
    pub fn placed(
        &self,
        owner: Owner<'_>,
        kind: &ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Name> {
        let own = owner.meta.namespace.as_deref();
        let placed = placed(kind, own, namespace, name);
        if placed.is_none() {
            self.misnamed.log(&owner.name(), kind, namespace, name);
        }
        placed
    }

    /// Returns the keys of the objects that an object refers to.
    fn references_of(&self, owner: Owner<'_>, counts: impl Fn(&Referred) -> bool) -> BTreeSet<Key> {
        let all = self.watches.referred.iter().enumerate();
        all.filter(|(_, referred)| counts(referred))
            .flat_map(|(number, referred)| {
                let names = (referred.names)(owner.object).into_iter();
                names.filter_map(move |(namespace, name)| {
                    let namespace = namespace.as_deref();
                    let placed = self.placed(owner, &referred.kind, namespace, &name);
                    placed.map(|(namespace, name)| (number, namespace, name))
                })
            })
            .collect()
    }

    /// Returns a hash of the referred objects that are part of the revision of an object.
    pub(crate) fn referred_revision(&self, owner: Owner<'_>) -> revision::Referred {
        if !self.watches.referred.iter().any(|it| it.in_revision) {
            return revision::Referred::None;
        }
        let keys = self.references_of(owner, |it| it.in_revision);
        let index = self.index();
        // What cannot be seen has not changed.
        if keys
            .iter()
            .any(|key| index.unseen_referred.contains_key(&key.0))
        {
            return revision::Referred::Unknown;
        }
        let contents = keys.iter().map(|key| {
            let kind = &self.watches.referred[key.0].kind.api;
            let content = index.referred.get(key).map(|kept| kept.content_hash());
            (&kind.group, &kind.kind, &key.1, &key.2, content)
        });
        revision::Referred::Hash(digest::revision(&contents.collect::<Vec<_>>()))
    }

    /// Notes the references of an object.
    pub fn note_references(&self, owner: Owner<'_>) {
        if self.watches.referred.is_empty() {
            return;
        }
        let keys = self.references_of(owner, |_| true);
        let who = owner.name();
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

    /// Forgets the references and records of a deleted object, so that nothing enqueues it any more.
    pub(crate) fn forget(&self, object: &Name, uid: &str) {
        let index = &mut *self.index();
        index.forget_references(object);
        index.forget_owner(uid);
    }

    /// Puts an object from a response into the cache, before the watch delivers it.
    pub(crate) fn take_in(&self, number: usize, kept: Kept) {
        let kept = if self.is_bare(number) {
            kept.bare()
        } else {
            kept
        };
        let index = &mut *self.index();
        index.taken.insert(key_of(number, &kept));
        // The reconciliation that wrote it continues with it anyway.
        let _ = index.put_owned(number, kept);
    }

    /// Clears the caches after the API server's history went back; all kinds count as unlisted until the next list.
    pub(crate) fn rewind(&self) {
        self.index().clear();
        let kinds = self.watches.owned.len() + self.watches.referred.len();
        self.listed.send_replace(vec![Ranges::NONE; kinds]);
    }

    /// Watches all kinds and calls `wake` for each object to enqueue; never returns.
    ///
    /// Boxed, so that everything in it is compiled here, and not once more for each application.
    pub fn watch<'a>(
        &'a self,
        connection: &'a Connection,
        gate: &'a Gate,
        wake: &'a Wake<'a>,
    ) -> BoxFuture<'a, ()> {
        self.watch_all(connection, gate, wake).boxed()
    }

    async fn watch_all(&self, connection: &Connection, gate: &Gate, wake: &Wake<'_>) {
        let owned_kinds = self.watches.owned.iter().enumerate();
        let owned = owned_kinds.map(|(number, kind)| (Side::Owned(number), kind));
        let referred_kinds = self.watches.referred.iter().enumerate();
        let referred = referred_kinds.map(|(number, it)| (Side::Referred(number), &it.kind));
        let all = owned
            .chain(referred)
            .map(|side| self.watch_kind(connection, gate, side, wake));
        let all = futures::future::join_all(all.collect::<Vec<_>>());
        let mapped = self
            .watches
            .mapped
            .iter()
            .map(|it| self.watch_mapped(connection, it, wake));
        let mapped = futures::future::join_all(mapped.collect::<Vec<_>>());
        futures::future::join(all, mapped).await;
    }

    /// Returns the events of a kind; with `is_bare` it watches the metadata alone.
    fn events(
        &self,
        connection: &Connection,
        kind: &ResourceKind,
        config: watcher::Config,
        is_bare: bool,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<Kept>>> {
        requests::events(connection, self.namespace.as_deref(), kind, config, is_bare)
    }

    /// Watches a mapped kind and enqueues the objects that each change concerns.
    async fn watch_mapped(&self, connection: &Connection, mapped: &Mapped, wake: &Wake<'_>) {
        let mut events = self.events(connection, &mapped.kind, mapped.config.clone(), false);
        // All objects are reconciled at the start anyway.
        let mut was_listed = false;
        let mut last_error = LastError::default();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(kept) | watcher::Event::Delete(kept)) => {
                    mapped.concerned(&kept).into_iter().for_each(wake);
                }
                Ok(watcher::Event::InitApply(kept)) if was_listed => {
                    mapped.concerned(&kept).into_iter().for_each(wake);
                }
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(watcher::Event::InitDone) => {
                    last_error.end();
                    was_listed = true;
                }
                Err(error) => last_error.warn("cannot watch", &mapped.kind, &error),
            }
        }
    }

    /// Returns the events of one side, of the objects whose owners are in these ranges.
    fn events_of(
        &self,
        connection: &Connection,
        side: Side,
        kind: &ResourceKind,
        ranges: Ranges,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<Kept>>> {
        match side {
            Side::Owned(_) if ranges.is_empty() => stream::pending().boxed(),
            Side::Owned(number) => {
                let config = watcher::Config::default()
                    .page_size(PAGE)
                    .labels(&self.identity.selector(ranges));
                self.events(connection, kind, config, self.is_bare(number))
            }
            // Any object may refer to any of them.
            Side::Referred(number) => {
                let config = self.watches.referred[number].config.clone();
                self.events(connection, kind, config, false)
            }
        }
    }

    /// Watches a kind: of an owned one only the objects whose owners this replica acts on.
    async fn watch_kind(
        &self,
        connection: &Connection,
        gate: &Gate,
        (side, kind): (Side, &ResourceKind),
        wake: &Wake<'_>,
    ) {
        let mut wanted = match side {
            Side::Owned(_) => gate.wanted(),
            Side::Referred(_) => Gate::Always.wanted(),
        };
        let mut ranges = wanted.now();
        self.note_listed(side, Ranges::NONE);
        let mut events = self.events_of(connection, side, kind, ranges);
        let mut narrows = None;
        let mut fresh = Vec::new();
        let mut last_error = LastError::default();
        let mut was_ever_listed = false;
        let mut failing_since = None;
        loop {
            let event = tokio::select! {
                Some(event) = events.next() => event,
                () = wanted.changed() => {
                    let now = wanted.now();
                    if now.is_in(ranges) {
                        // More arrives than is wanted: that is no hurry.
                        narrows = (now != ranges).then(|| after(REST));
                    } else {
                        ranges = now;
                        events = self.events_of(connection, side, kind, ranges);
                        narrows = None;
                    }
                    continue;
                }
                () = until(narrows) => {
                    ranges = wanted.now();
                    events = self.events_of(connection, side, kind, ranges);
                    narrows = None;
                    continue;
                }
            };
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
                    last_error.end();
                    was_ever_listed = true;
                    if let Side::Owned(number) = side {
                        self.learn_status(connection, number, kind).await;
                    }
                    let woken = self.index().replace(side, std::mem::take(&mut fresh));
                    self.note_listed(side, ranges);
                    woken
                }
                Ok(watcher::Event::Apply(kept)) => self.index().put(side, kept),
                Ok(watcher::Event::Delete(kept)) => self.index().remove(side, &kept),
                Err(error) => {
                    last_error.warn("cannot watch", kind, &error);
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    let is_lasting = !was_ever_listed && since.elapsed() >= LIST_PATIENCE;
                    if is_refusal(&error) || is_lasting {
                        self.note_unlisted(side, ranges, &error);
                    }
                    continue;
                }
            };
            if matches!(side, Side::Owned(_)) {
                self.heard.send_replace(());
            }
            woken.into_iter().for_each(wake);
        }
    }

    /// Notes that a kind cannot be listed, so that it does not block the others: the conditions of the objects that need
    /// it say so.
    fn note_unlisted(&self, side: Side, ranges: Ranges, error: &watcher::Error) {
        let was_listed = ranges.is_in(self.listed.borrow()[self.place(side)]);
        let is_known = match side {
            Side::Owned(number) => self.index().unlisted.contains_key(&number),
            Side::Referred(number) => self.index().unseen_referred.contains_key(&number),
        };
        if was_listed && !is_known {
            return;
        }
        let unlisted = Unlisted {
            why: watch_message(error),
            may_have_objects: may_have_objects(error),
            is_refused: is_refusal(error),
        };
        let mut index = self.index();
        match side {
            Side::Owned(number) => index.unlisted.insert(number, unlisted),
            Side::Referred(number) => index.unseen_referred.insert(number, unlisted),
        };
        drop(index);
        self.note_listed(side, ranges);
    }

    /// Notes the ranges in which a kind was listed.
    fn note_listed(&self, side: Side, ranges: Ranges) {
        let place = self.place(side);
        self.listed.send_if_modified(|listed| {
            let before = std::mem::replace(&mut listed[place], ranges);
            before != ranges
        });
    }

    /// Returns the place of a kind among all.
    fn place(&self, side: Side) -> usize {
        match side {
            Side::Owned(number) => number,
            Side::Referred(number) => self.watches.owned.len().saturating_add(number),
        }
    }
}

/// Returns whether the list of a kind was refused.
fn is_refusal(error: &watcher::Error) -> bool {
    matches!(refusal(error), Some(403 | 404))
}

/// Returns whether objects may exist although they cannot be listed: a kind that is not served has none.
fn may_have_objects(error: &watcher::Error) -> bool {
    refusal(error) != Some(404)
}

fn refusal(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// Returns the ranges in which all kinds were listed.
fn known(listed: &[Ranges]) -> Ranges {
    listed.iter().fold(Ranges::ALL, |all, ranges| all & *ranges)
}

/// Returns the namespace and name of an object.
pub(crate) fn name_of<K: Resource>(object: &K) -> Name {
    let meta = object.meta();
    (
        meta.namespace.clone(),
        meta.name.clone().unwrap_or_default(),
    )
}
