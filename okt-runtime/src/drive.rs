//! The queue: a watch, what is asked for beside it, and one turn after the other for every object.

use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, stream};
use kube::Resource;
use kube::runtime::controller::{Action, Config, applier};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::again::Again;
use crate::application::Application;
use crate::cached::{Cached, reference};
use crate::failure::chain;
use crate::guarded::api;
use crate::looks::Looks;
use crate::resources::{PAGE, name_of};
use crate::shared::{Request, Shared};
use crate::turn::turn;
use crate::work::panic_text;

/// How long after a turn that panicked the object has another.
const AFTER_PANIC: Duration = Duration::from_secs(30);

/// What is one drive's own: a namespace, and how it is watched.
pub(crate) struct Settings {
    pub(crate) namespace: Option<String>,
    pub(crate) concurrency: u16,
    pub(crate) streaming: bool,
    pub(crate) stopping: CancellationToken,
}

/// Watches, queues and takes turns until it is told to stop.
pub(crate) async fn drive<A: Application>(
    shared: Arc<Shared<A>>,
    queued: mpsc::UnboundedReceiver<Request<A::Resource>>,
    settings: Settings,
) {
    let (store, writer) = reflector::store::<Cached<A::Resource>>();
    let api = api::<Cached<A::Resource>>(&shared.client, settings.namespace.as_deref());
    let config = if settings.streaming {
        watcher::Config::default().streaming_lists()
    } else {
        watcher::Config::default().page_size(PAGE)
    };
    let watched = {
        let (shared, store) = (Arc::clone(&shared), store.clone());
        watcher(api, config)
            .default_backoff()
            .reflect(writer)
            .flat_map(move |event| stream::iter(heed(&shared, &store, event)))
    };
    let asked = {
        let shared = Arc::clone(&shared);
        let store = store.clone();
        stream::unfold(queued, |mut queued| async move {
            queued.recv().await.map(|request| (request, queued))
        })
        .filter_map(move |request| std::future::ready(requested(&shared, &store, request)))
        .map(Ok)
    };
    let stopped = settings.stopping.clone();
    let waiting = store.clone();
    let looks = Arc::new(Looks::default());
    let due = Arc::clone(&looks).stream();
    let beside = stream::select(openings(&shared, store.clone()), due).map(Ok);
    let queue = stream::select(stream::select(watched, asked), beside)
        .take_until(settings.stopping.cancelled_owned());
    let watching = {
        let shared = Arc::clone(&shared);
        async move {
            let wake = |(namespace, name): (Option<String>, String)| {
                let object = reference(&name, namespace.as_deref());
                // A closed queue belongs to an operator that is stopping.
                let _ = shared.queue.send(Request::Poke(object));
            };
            shared.cluster.watch(&shared.client, wake).await;
            // There is nothing to watch.
            std::future::pending::<()>().await;
        }
    };
    let turns = applier(
        move |object, shared| Box::pin(contained(shared, object, Arc::clone(&looks))),
        |_, error: &Infallible, _| match *error {},
        shared,
        store,
        Box::pin(queue),
        Config::default().concurrency(settings.concurrency),
    );
    let turns = turns.for_each(|turn| {
        if let Err(error) = turn {
            match error {
                // It went while it was queued.
                kube::runtime::controller::Error::ObjectNotFound(_) => {}
                error => tracing::warn!("{}", chain(&error)),
            }
        }
        std::future::ready(())
    });
    // Without a list (there is no CRD) kube would wait for one, told to stop or not.
    let without_list = async {
        stopped.cancelled().await;
        if waiting.wait_until_ready().now_or_never().is_some() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = turns => {}
        () = without_list => {}
        () = watching => {}
    }
}

/// A turn that panics (a user's `revision` or `look_again` may) costs that turn only.
async fn contained<A: Application>(
    shared: Arc<Shared<A>>,
    object: Arc<Cached<A::Resource>>,
    looks: Arc<Looks<A::Resource>>,
) -> Result<Action, Infallible> {
    let taken = AssertUnwindSafe(turn(shared, &object)).catch_unwind().await;
    let again = taken.unwrap_or_else(|panic| {
        let name = object.meta().name.as_deref().unwrap_or_default();
        tracing::error!(object = name, "a turn failed: {}", panic_text(&*panic));
        Again::after(AFTER_PANIC)
    });
    looks.plan(&object, again);
    Ok(Action::await_change())
}

type Queued<K> = Result<ObjectRef<Cached<K>>, watcher::Error>;

/// Which objects an event of the watch concerns; what is gone is forgotten.
fn heed<A: Application>(
    shared: &Shared<A>,
    store: &Store<Cached<A::Resource>>,
    event: Result<watcher::Event<Cached<A::Resource>>, watcher::Error>,
) -> Vec<Queued<A::Resource>> {
    match event {
        Ok(watcher::Event::Apply(object)) => vec![Ok(object.reference())],
        // A list is in the store only when it is complete, and a turn for what is not there is lost.
        Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => Vec::new(),
        Ok(watcher::Event::Delete(object)) => {
            shared
                .memory
                .forget(object.meta().uid.as_deref().unwrap_or_default());
            shared.cluster.forget(&name_of(&object));
            Vec::new()
        }
        Ok(watcher::Event::InitDone) => {
            let all = store.state();
            let alive: HashSet<&str> = (all.iter())
                .filter_map(|object| object.meta().uid.as_deref())
                .collect();
            shared.memory.keep_only(|uid| alive.contains(uid));
            let names: HashSet<_> = all.iter().map(|object| name_of(&**object)).collect();
            shared.cluster.keep_only(|name| names.contains(name));
            all.iter().map(|object| Ok(object.reference())).collect()
        }
        Err(error) => vec![Err(error)],
    }
}

fn requested<A: Application>(
    shared: &Shared<A>,
    store: &Store<Cached<A::Resource>>,
    request: Request<A::Resource>,
) -> Option<ObjectRef<Cached<A::Resource>>> {
    match request {
        Request::Look(object) => Some(object),
        Request::Poke(object) => {
            let uid = store.get(&object)?.meta().uid.clone()?;
            shared.memory.of(&uid).poked.store(true, Ordering::Release);
            Some(object)
        }
    }
}

/// Every object, each time that the operator may act again.
fn openings<A: Application>(
    shared: &Arc<Shared<A>>,
    store: Store<Cached<A::Resource>>,
) -> impl Stream<Item = ObjectRef<Cached<A::Resource>>> + use<A> {
    let readiness = changed(shared.readiness.clone());
    let gate = match shared.gate.clone() {
        Some(gate) => changed(gate).boxed(),
        None => stream::pending().boxed(),
    };
    let listed = changed(shared.cluster.listed());
    let (shared, opened) = (Arc::clone(shared), Arc::clone(shared));
    stream::select(stream::select(readiness, gate), listed)
        .filter(move |()| std::future::ready(shared.may_act()))
        .flat_map(move |()| {
            opened.memory.reopen();
            let all: Vec<_> = (store.state().iter())
                .map(|object| object.reference())
                .collect();
            stream::iter(all)
        })
}

/// Each change of a value, from now on.
fn changed<T: Send + Sync + 'static>(receiver: watch::Receiver<T>) -> impl Stream<Item = ()> {
    stream::unfold(receiver, |mut receiver| async move {
        match receiver.changed().await {
            Ok(()) => Some(((), receiver)),
            // Nobody changes it any more.
            Err(_) => std::future::pending().await,
        }
    })
}
