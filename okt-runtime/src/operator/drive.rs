//! Fills the queue from a watch, reconcile requests and timers, and reconciles the objects in it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt, stream};
use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use okt_core::machine::Requeue;
use okt_sharding::gate::GateMember;
use okt_sharding::ranges::Ranges;
use okt_telemetry::metrics::controller::{Controller, Reconciled};
use okt_wire::texts::panic_text;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::author::application::Application;
use crate::cache::cached::{Cached, PlaceOf, reference};
use crate::cache::objects::Objects;
use crate::cache::queue::{Queue, Urgency};
use crate::crd::readiness::Readiness;
use crate::operator::error::OperatorError;
use crate::operator::part::OperatorPart;
use crate::operator::requeues::Requeues;
use crate::operator::settings::OperatorSettings;
use crate::operator::wakes::Wakes;
use crate::operator::watching::{QueueOf, Watching};
use crate::reconcile::reconcile;
use crate::reconcile::shared::{QueueRequest, Shared};
use crate::requests::{Targets, follow, look_after, watch as watch_requests};
use crate::resources::{Name, ResourceKind};

/// Watches, queues and reconciles objects, until `stopping` is cancelled and the running reconciliations have ended.
///
/// # Errors
///
/// If the API server refuses the selectors of the watch.
pub(crate) async fn drive<A: Application>(
    shared: Arc<Shared<A>>,
    objects: Arc<Objects<A::Resource>>,
    requests: mpsc::UnboundedReceiver<QueueRequest<A::Resource>>,
    settings: OperatorSettings<A::Resource>,
) -> Result<(), OperatorError> {
    let metrics = settings.metrics.as_ref();
    let controller = metrics.map(|metrics| Arc::clone(&metrics.controller));
    let queue = Queue::new(settings.concurrency, controller.clone());
    // Monitored until this function ends.
    let _part = metrics.map(|metrics| {
        let part = Arc::new(OperatorPart {
            controller: metrics.name.clone(),
            shared: Arc::clone(&shared),
            objects: Arc::clone(&objects),
            queue: Arc::clone(&queue),
        });
        metrics.inspect(&part);
        part
    });
    let requeues = Arc::new(Requeues::default());
    let watched = watched(&shared, &objects, &queue, &requeues, &settings);
    let requested = async {
        let mut requests = requests;
        while let Some(request) = requests.recv().await {
            take_request(&shared, &objects, &queue, request);
        }
    };
    let due = Arc::clone(&requeues).stream();
    let routine = due.for_each(|object| {
        queue.push(object, Urgency::Routine);
        std::future::ready(())
    });
    let opened = openings(&shared, Arc::clone(&objects)).for_each(|object| {
        queue.push(object.reference(), object.urgency());
        std::future::ready(())
    });
    // Neither ends before the operator does.
    let others = async {
        futures::join!(requested, routine, opened);
        std::future::pending::<()>().await;
    };
    let stopping = &settings.stopping;
    let empty = reconcile_all(
        &shared,
        &objects,
        &queue,
        &requeues,
        controller.as_deref(),
        stopping,
    );
    tokio::select! {
        () = empty => Ok(()),
        () = others => Ok(()),
        refused = watched => Err(refused),
    }
}

/// Watches the objects and the other kinds, again whenever the history of the API server went back; returns the error of
/// a watch that is refused.
async fn watched<A: Application>(
    shared: &Arc<Shared<A>>,
    objects: &Arc<Objects<A::Resource>>,
    queue: &Arc<QueueOf<A>>,
    requeues: &Arc<Requeues<A::Resource>>,
    settings: &OperatorSettings<A::Resource>,
) -> OperatorError {
    let requests = shared.queue.clone();
    let wakes = Wakes::new(move |(namespace, name): Name| {
        let object = reference(&name, namespace.as_deref());
        // A closed queue belongs to an operator that is stopping.
        let _ = requests.send(QueueRequest::External(object));
    });
    // Without its CRD there is nothing to watch, and each attempt would be an error. The sender is never gone.
    let _ = shared.readiness.clone().wait_for(Readiness::is_fit).await;
    loop {
        let mut watching = Watching::new(shared, objects, queue, requeues, settings);
        let others = async {
            let wake = |name| wakes.wake(name);
            shared
                .cluster
                .watch(&shared.connection, &shared.gate, &wake)
                .await;
            // It ends at once where there are no other kinds.
            std::future::pending::<()>().await;
        };
        let requests = requested(shared, objects, settings.namespace.as_deref());
        let namespace = settings.namespace.as_deref();
        let client = &shared.connection.client;
        let kind = ApiResource::erase::<A::Resource>(&());
        let went_back = shared.history.went_back(client, &kind, namespace);
        tokio::select! {
            () = went_back => {
                shared.memory.rewind();
                shared.cluster.rewind();
                let known = objects.in_ranges(Ranges::ALL).into_iter();
                shared.telemetry.rewind(known.filter_map(|it| it.meta().uid.clone()));
            }
            refused = watching.run() => return refused,
            () = others => {}
            () = requests => {}
        }
    }
}

/// Watches the requests that have not finished, and looks after those that no object looks after.
async fn requested<A: Application>(
    shared: &Arc<Shared<A>>,
    objects: &Objects<A::Resource>,
    namespace: Option<&str>,
) {
    let wake = |(namespace, name): Name| shared.requeue(reference(&name, namespace.as_deref()));
    let may_exist = |(namespace, name): &Name| {
        // A selection or another replica's share is not all there is.
        shared.is_selective
            || !shared.listed.is_cancelled()
            || objects
                .get(&reference(name, namespace.as_deref()))
                .is_some()
    };
    let targets = Targets {
        kind: ResourceKind::of::<A::Resource>(),
        may_exist: &may_exist,
        is_ours: &|uid| shared.may_act(uid),
    };
    let queue = &shared.requests;
    let watched = watch_requests(queue, &shared.connection, namespace, &wake);
    let alone = look_after(
        queue,
        &shared.connection,
        namespace,
        &targets,
        &shared.clock,
    );
    let scheduled = follow(
        queue,
        &shared.connection,
        namespace,
        targets.is_ours,
        &shared.clock,
    );
    tokio::select! {
        () = watched => {}
        () = alone => {}
        () = scheduled => {}
    }
}

/// Reconciles the objects that are due, until `stopping` is cancelled and the running reconciliations have ended.
async fn reconcile_all<A: Application>(
    shared: &Arc<Shared<A>>,
    objects: &Objects<A::Resource>,
    queue: &Arc<QueueOf<A>>,
    requeues: &Requeues<A::Resource>,
    metrics: Option<&Controller>,
    stopping: &CancellationToken,
) {
    let mut running = FuturesUnordered::new();
    let mut stopped = std::pin::pin!(stopping.cancelled().fuse());
    loop {
        tokio::select! {
            () = &mut stopped => queue.close(),
            Some(()) = running.next(), if !running.is_empty() => {}
            (object, place) = queue.next() => {
                running.push(contained(shared, objects, object, requeues, metrics, place));
            }
        }
        if stopping.is_cancelled() && running.is_empty() {
            return;
        }
    }
}

/// Reconciles an object. A panic (`revision` or `observe_every` of the application may panic) does not affect other
/// objects.
async fn contained<A: Application>(
    shared: &Arc<Shared<A>>,
    objects: &Objects<A::Resource>,
    object: ObjectRef<Cached<A::Resource>>,
    requeues: &Requeues<A::Resource>,
    metrics: Option<&Controller>,
    place: PlaceOf<A::Resource>,
) {
    // The object is looked up here, when the reconciliation begins, and not when it is taken from the queue: in between
    // the object may go, and with it the memory that its finalizer is dropped.
    let Some(object) = objects.get(&object) else {
        return;
    };
    let meta = object.meta();
    // At this level, so that errors have it whatever is logged.
    let span = tracing::error_span!(
        "reconcile",
        kind = %A::Resource::kind(&()),
        namespace = meta.namespace,
        name = meta.name,
        uid = meta.uid,
    );
    let reconciliation = reconcile(shared, &object, &place).instrument(span.clone());
    let began = Instant::now();
    let (requeue, reconciled) = match AssertUnwindSafe(reconciliation).catch_unwind().await {
        Ok(ended) => ended,
        Err(panic) => {
            let _entered = span.enter();
            tracing::error!("a reconciliation failed: {}", panic_text(&*panic));
            (Requeue::after_panic(), Reconciled::Panic)
        }
    };
    if let Some(metrics) = metrics {
        metrics.reconciled(reconciled, began.elapsed());
    }
    let cached = objects
        .get(&object.reference())
        .filter(|newest| newest.meta().uid == object.meta().uid);
    let newest = cached.as_ref().unwrap_or(&object);
    // A predicate may have ignored the newest version: no event reconciles it.
    requeues.plan(newest, requeue);
}

fn take_request<A: Application>(
    shared: &Shared<A>,
    objects: &Objects<A::Resource>,
    queue: &QueueOf<A>,
    request: QueueRequest<A::Resource>,
) {
    match request {
        QueueRequest::Reconcile(object) => queue.push(object, Urgency::Continuation),
        QueueRequest::External(object) => {
            let stored = objects.get(&object);
            if let Some(uid) = stored.as_ref().and_then(|it| it.meta().uid.as_deref()) {
                shared.memory.of(uid).named.store(true, Ordering::Release);
                queue.push(object, Urgency::Event);
            }
        }
    }
}

/// Returns a stream of the objects that the operator may act on again, each time.
fn openings<A: Application>(
    shared: &Arc<Shared<A>>,
    objects: Arc<Objects<A::Resource>>,
) -> impl Stream<Item = Cached<A::Resource>> + use<A> {
    let readiness = changed(shared.readiness.clone());
    let all = readiness.map(|()| Ranges::ALL);
    let all = stream::select(all, shared.cluster.becoming_known());
    let waits = Arc::clone(shared);
    let listed = stream::once(async move {
        waits.requests.listed().await;
        Ranges::ALL
    });
    let all = stream::select(all, listed);
    let left = Arc::clone(shared);
    let held = shared.gate.changes().map(move |change| {
        left.abandon(change.lost);
        change.opened
    });
    let (shared, opened) = (Arc::clone(shared), Arc::clone(shared));
    stream::select(all, held)
        .filter(move |_| {
            std::future::ready(shared.readiness.borrow().is_fit() && shared.gate.is_open())
        })
        .flat_map(move |ranges| {
            opened.memory.reopen(ranges);
            stream::iter(objects.in_ranges(ranges))
        })
}

/// Returns a stream of the changes of a value, from now on.
fn changed<T: Send + Sync + 'static>(receiver: watch::Receiver<T>) -> impl Stream<Item = ()> {
    stream::unfold(receiver, |mut receiver| async move {
        match receiver.changed().await {
            Ok(()) => Some(((), receiver)),
            // The sender is gone: the value changes no more.
            Err(_) => std::future::pending().await,
        }
    })
}
