//! Watches the objects that this replica acts on: all, or those of the ranges that it holds.
//!
//! Ranges that it gets later have a watch of their own, so that only their objects are listed. When nothing has changed
//! for a while, one watch replaces them all.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, Resource};
use okt_sharding::gate::GateMember;
use okt_sharding::ranges::{Range, Ranges};
use okt_sharding::selector::only;
use okt_wire::clock::{after, until};
use okt_wire::scope::api;
use okt_wire::texts::LastError;
use okt_wire::watch::{change_objects, retried};
use tokio::time::Instant;

use crate::author::application::Application;
use crate::cache::arrived::{Arrived, decode_only};
use crate::cache::cached::Cached;
use crate::cache::objects::{Objects, range_of};
use crate::cache::queue::{Queue, Urgency};
use crate::operator::error::OperatorError;
use crate::operator::news::{Property, is_news};
use crate::operator::requeues::Requeues;
use crate::operator::settings::OperatorSettings;
use crate::reconcile::memory::Disappeared;
use crate::reconcile::shared::Shared;
use crate::resources::name_of;

/// How long the ranges must stay the same before one watch replaces several.
const REST: Duration = Duration::from_mins(1);

/// How many objects must have arrived before it is judged whether the API server filters them.
const SAMPLE: usize = 200;

/// The objects of an application that are due.
pub(super) type QueueOf<A> = Queue<ObjectRef<Cached<<A as Application>::Resource>>>;

type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<Cached<K>>>>;

/// The watches of one operator, in one namespace or in all.
pub(super) struct Watching<A: Application> {
    shared: Arc<Shared<A>>,
    objects: Arc<Objects<A::Resource>>,
    queue: Arc<QueueOf<A>>,
    requeues: Arc<Requeues<A::Resource>>,
    namespace: Option<String>,
    config: watcher::Config,
    property: Option<Property<A::Resource>>,
    /// Whether the API server has accepted the selectors.
    was_listed: bool,
    /// The selectors that it refused.
    refused: Option<OperatorError>,
    parts: Vec<WatchedPart<A::Resource>>,
    /// When one watch replaces several.
    merges: Option<Instant>,
    last_error: LastError,
    filtering: Filtering,
}

/// A watch of some ranges.
struct WatchedPart<K> {
    /// The ranges whose events count.
    ranges: Ranges,
    /// The ranges that were requested.
    requested: Ranges,
    /// Whether the API server is to send only these.
    has_selector: bool,
    events: Events<K>,
    /// The objects of a list that is not complete.
    list: Vec<Cached<K>>,
    is_listed: bool,
}

/// Whether the API server sends only the objects that are requested.
#[derive(Default)]
struct Filtering {
    arrived: usize,
    foreign: usize,
    is_logged: bool,
    /// The server does not understand the selector.
    is_refused: bool,
}

impl<A: Application> Watching<A> {
    pub(super) fn new(
        shared: &Arc<Shared<A>>,
        objects: &Arc<Objects<A::Resource>>,
        queue: &Arc<QueueOf<A>>,
        requeues: &Arc<Requeues<A::Resource>>,
        settings: &OperatorSettings<A::Resource>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            objects: Arc::clone(objects),
            queue: Arc::clone(queue),
            requeues: Arc::clone(requeues),
            namespace: settings.namespace.clone(),
            config: settings.watch.clone(),
            property: settings.property.clone(),
            was_listed: false,
            refused: None,
            parts: Vec::new(),
            merges: None,
            last_error: LastError::default(),
            filtering: Filtering::default(),
        }
    }

    /// Watches; returns only if the API server refuses the selectors.
    pub(super) async fn run(&mut self) -> OperatorError {
        let mut wanted = self.shared.gate.wanted();
        loop {
            if let Some(refused) = self.refused.take() {
                return refused;
            }
            self.follow(wanted.now());
            tokio::select! {
                () = wanted.changed() => {}
                (index, event) = next(&mut self.parts) => self.heed(index, event),
                () = until(self.merges) => self.merge(),
            }
        }
    }

    /// Begins to watch the ranges that are wanted and not watched, and ends to watch the others.
    fn follow(&mut self, wanted: Ranges) {
        if wanted.is_empty() {
            // There is nothing to list.
            self.shared.listed.cancel();
        }
        let watched = self.watched();
        if watched == wanted {
            return;
        }
        let left = watched.without(wanted);
        for part in &mut self.parts {
            part.ranges = part.ranges & wanted;
        }
        self.parts.retain(|part| !part.ranges.is_empty());
        self.forget(left);
        let gained = wanted.without(watched);
        if !gained.is_empty() {
            let part = self.part(gained);
            self.parts.push(part);
        }
        let is_exact = |part: &WatchedPart<A::Resource>| part.ranges == part.requested;
        let is_one = self.parts.len() <= 1 && self.parts.iter().all(is_exact);
        self.merges = (!is_one).then(|| after(REST));
    }

    fn watched(&self) -> Ranges {
        let parts = self.parts.iter();
        parts.fold(Ranges::NONE, |all, part| all | part.ranges)
    }

    /// Replaces all watches by one. The objects stay as they are until its list is complete.
    fn merge(&mut self) {
        let watched = self.watched();
        if self.parts.iter().all(|part| part.is_listed) {
            self.parts.clear();
            let part = self.part(watched);
            self.parts.push(part);
            self.merges = None;
        } else {
            self.merges = Some(after(REST));
        }
    }

    /// Begins to watch ranges.
    fn part(&self, ranges: Ranges) -> WatchedPart<A::Resource> {
        let has_selector = ranges != Ranges::ALL && !self.filtering.is_refused;
        let kind = A::Resource::kind(&());
        let client = self.shared.connection.for_watch(&kind);
        let client = if has_selector {
            only(&client, ranges)
        } else {
            client
        };
        let resource = ApiResource::erase::<A::Resource>(&());
        let events = arriving(
            &client,
            self.namespace.as_deref(),
            &resource,
            self.config.clone(),
        );
        let cached = events.map(|event| change_objects(event?, |it| Ok(Cached::from(it))));
        WatchedPart {
            ranges,
            requested: ranges,
            has_selector,
            events: cached.boxed(),
            list: Vec::new(),
            is_listed: false,
        }
    }

    /// Forgets the objects of ranges that belong to other replicas; their work is dropped, and not cancelled.
    fn forget(&self, ranges: Ranges) {
        if ranges.is_empty() {
            return;
        }
        let gone = self.objects.in_ranges(ranges);
        self.shared.abandon(ranges);
        self.objects.replace(ranges, Vec::new());
        for object in gone {
            self.left(&object);
        }
    }

    /// Enqueues the objects that an event concerns, and forgets objects that are gone.
    fn heed(&mut self, index: usize, event: watcher::Result<watcher::Event<Cached<A::Resource>>>) {
        let Some(part) = self.parts.get_mut(index) else {
            return;
        };
        let object = match &event {
            Ok(
                watcher::Event::Apply(object)
                | watcher::Event::InitApply(object)
                | watcher::Event::Delete(object),
            ) => Some(object),
            Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => None,
        };
        if let Some(object) = object {
            self.shared
                .history
                .saw(object.meta().resource_version.as_deref());
            let range = range_of(object);
            self.filtering.count(!part.requested.contains(range));
            if !part.ranges.contains(range) {
                return;
            }
        }
        match event {
            Ok(watcher::Event::Apply(object)) => {
                let name = object.reference();
                let before = self.objects.put(object.clone());
                match before {
                    // A reconciliation that runs requeues the newest version when it ends.
                    Some(before) if self.is_ignored(&before, &object) => {
                        self.requeues.hand_over(&before, &object);
                    }
                    Some(_) | None => {
                        let urgency = if self.shared.memory.is_own(object.meta()) {
                            Urgency::Continuation
                        } else {
                            Urgency::Event
                        };
                        self.queue.push(name, urgency);
                    }
                }
            }
            Ok(watcher::Event::Delete(object)) => {
                self.objects.remove(&object);
                self.gone(&object);
            }
            Ok(watcher::Event::Init) => part.list.clear(),
            Ok(watcher::Event::InitApply(object)) => part.list.push(object),
            Ok(watcher::Event::InitDone) => {
                part.is_listed = true;
                self.was_listed = true;
                let (ranges, list) = (part.ranges, std::mem::take(&mut part.list));
                self.last_error.end();
                self.listed(ranges, list);
                if self.parts.iter().all(|part| part.is_listed) {
                    self.shared.listed.cancel();
                }
            }
            Err(error) => {
                if is_selector_refused(&error) && part.has_selector {
                    self.filtering.is_refused = true;
                    let ranges = part.ranges;
                    self.parts[index] = self.part(ranges);
                }
                let kind = A::Resource::kind(&());
                self.last_error
                    .warn("cannot watch the objects", &kind, &error);
                if self.is_refused(&error) {
                    let selectors = [&self.config.label_selector, &self.config.field_selector];
                    let selectors: Vec<&str> =
                        selectors.into_iter().flatten().map(|it| &**it).collect();
                    let (kind, selectors) = (kind.into_owned(), selectors.join("` and `"));
                    self.refused = Some(OperatorError::Selector(kind, selectors, Box::new(error)));
                }
            }
        }
    }

    /// Returns whether the API server refuses the selectors, before it has listed anything.
    fn is_refused(&self, error: &watcher::Error) -> bool {
        let is_bad = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 400,
            _ => false,
        };
        is_bad && self.shared.is_selective && !self.was_listed
    }

    /// Returns whether a new version of an object has only changes that the predicate ignores.
    fn is_ignored(&self, before: &Cached<A::Resource>, object: &Cached<A::Resource>) -> bool {
        let property = self.property.as_deref();
        property.is_some_and(|property| !is_news::<A>(property, before, object))
    }

    /// Returns why an object that is not among the watched ones any more has disappeared.
    fn disappeared(&self) -> Disappeared {
        if self.shared.is_selective {
            Disappeared::Left
        } else {
            Disappeared::Gone
        }
    }

    fn gone(&self, object: &Cached<A::Resource>) {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        self.shared.memory.forget(uid, self.disappeared());
        self.left(object);
    }

    /// Forgets the references and the history of an object that is gone, or another replica's, and that its work waits
    /// for a permit: nothing else may be known of it.
    fn left(&self, object: &Cached<A::Resource>) {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        self.shared.permits.leave(uid);
        self.shared.cluster.forget(&name_of(object), uid);
        self.shared.telemetry.forget(uid);
    }

    /// Takes a complete list of the objects in these ranges.
    fn listed(&self, ranges: Ranges, list: Vec<Cached<A::Resource>>) {
        // The ranges may have become fewer since the list began.
        let list: Vec<_> = list
            .into_iter()
            .filter(|object| ranges.contains(range_of(object)))
            .collect();
        let shared = &self.shared;
        let known: Vec<Cached<A::Resource>> = self.objects.in_ranges(ranges);
        self.objects.replace(ranges, list.clone());
        let alive: HashSet<&str> = list
            .iter()
            .filter_map(|object| object.meta().uid.as_deref())
            .collect();
        let is_gone = |uid: &str| ranges.contains(Range::of(uid)) && !alive.contains(uid);
        for uid in shared
            .memory
            .keep_only(|uid| !is_gone(uid), self.disappeared())
        {
            shared.permits.leave(&uid);
        }
        for object in known {
            let uid = object.meta().uid.as_deref().unwrap_or_default();
            if is_gone(uid) {
                // Another object may have its name by now, and names its references itself.
                self.left(&object);
            }
        }
        for object in &list {
            self.queue.push(object.reference(), object.urgency());
        }
    }
}

/// Returns the events of a kind; what they consist of is compiled here, and not once more for each application.
fn arriving(
    client: &Client,
    namespace: Option<&str>,
    kind: &ApiResource,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<watcher::Event<Arrived>>> {
    let api = api::<Arrived>(client, namespace, kind);
    retried(watcher(api, config)).boxed()
}

/// Returns the next event of any watch.
async fn next<K>(
    parts: &mut [WatchedPart<K>],
) -> (usize, watcher::Result<watcher::Event<Cached<K>>>) {
    std::future::poll_fn(|cx| {
        for (index, part) in parts.iter_mut().enumerate() {
            if let Poll::Ready(Some(event)) = poll(part, cx) {
                return Poll::Ready((index, event));
            }
        }
        Poll::Pending
    })
    .await
}

fn poll<K>(
    part: &mut WatchedPart<K>,
    cx: &mut Context<'_>,
) -> Poll<Option<watcher::Result<watcher::Event<Cached<K>>>>> {
    // Objects of other ranges are not decoded.
    decode_only(part.ranges, || Pin::new(&mut part.events).poll_next(cx))
}

/// Returns whether the API server does not understand the selector of ranges.
fn is_selector_refused(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => {
            // With code 500 (kube-apiserver 1.36.1).
            status.message.contains("shard selector")
        }
        _ => false,
    }
}

impl Filtering {
    /// Counts an object that arrived; logs once that the server does not filter.
    fn count(&mut self, is_foreign: bool) {
        self.arrived = self.arrived.saturating_add(1);
        self.foreign = self.foreign.saturating_add(is_foreign.into());
        if !self.is_logged
            && self.arrived >= SAMPLE
            && self.foreign.saturating_mul(20) > self.arrived
        {
            self.is_logged = true;
            tracing::info!(
                "the API server sends objects of other replicas too: it does not filter by `shardSelector` \
                 (Kubernetes 1.36, feature gate ShardedListAndWatch). They are dropped here"
            );
        }
    }
}
