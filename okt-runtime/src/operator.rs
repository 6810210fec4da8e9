//! The operator: a watch, a queue, and one turn after the other for every object.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::controller::{Action as Again, Config, applier};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use okt_core::backoff::Backoff;
use okt_core::decide::{By, Go};
use okt_core::{Kind, Lifecycle};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::application::{Application, StateOf};
use crate::clock::Clock;
use crate::crd::CrdError;
use crate::guarded::{Guarded, api};
use crate::memory::Memory;
use crate::object::LifecycleObject;
use crate::patience::answer;
use crate::readiness::{Readiness, watch_crd};
use crate::turn::turn;
use crate::work::{Tasks, panic_text};

/// How many objects have their turn at the same time, by default.
const CONCURRENCY: u16 = 16;

/// How long after a turn that panicked the object has another.
const AFTER_PANIC: Duration = Duration::from_secs(30);

/// How many objects are read at once from a list.
const PAGE: u32 = 500;

/// Why an operator does not run.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server did not answer at the start; trying again may help.
    #[error("reach the Kubernetes API")]
    NoContact(#[source] Box<kube::Error>),
    /// The declared types cannot work; only a change of the code helps.
    #[error("make the CRD")]
    Crd(#[from] CrdError),
    /// Namespaces were named for a kind that lives in none; leave them out.
    #[error("look at {0} in some namespaces only: it is cluster-scoped")]
    ClusterScoped(String),
    /// A pass graph has no life to keep; only a change of the code helps.
    #[error("`{0}` is a pass graph; an operator needs a lifecycle")]
    Pass(&'static str),
}

/// What outside the cluster names objects that should be looked at.
type Pokes<K> = BoxStream<'static, ObjectRef<K>>;

/// An operator for one kind of resource, for those who have a `main` of their own.
///
/// # Guarantees
///
/// - A position is persisted before the work of a state starts, and work never runs in a reconciler.
/// - At most one piece of work of an object runs at a time in this process.
/// - A settled object causes no request.
///
/// # Assumptions
///
/// Without a [`gate`](Self::gate) one replica runs: a second one would repeat work, under the same ids.
///
/// ```no_run
/// # use okt_runtime::{Application, Operator};
/// # async fn run<A: Application>(application: A) -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube::Client::try_default().await?;
/// Operator::new(client, application)
///     .namespaces(["team-a", "team-b"])
///     .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Operator<A: Application> {
    client: Client,
    application: A,
    namespaces: Vec<String>,
    gate: Option<watch::Receiver<bool>>,
    pokes: Pokes<A::Resource>,
    concurrency: u16,
    backoff: Backoff,
    streaming: bool,
    clock: Clock,
}

impl<A: Application> Operator<A> {
    /// An operator for all objects of the application's kind.
    pub fn new(client: Client, application: A) -> Self {
        Self {
            client,
            application,
            namespaces: Vec::new(),
            gate: None,
            pokes: stream::pending().boxed(),
            concurrency: CONCURRENCY,
            backoff: Backoff::default(),
            streaming: false,
            clock: Clock::Wall,
        }
    }

    /// Looks at these namespaces only; none means all.
    ///
    /// For a cluster-scoped kind leave this empty: [`run`](Self::run) refuses it.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        for namespace in namespaces.into_iter().map(Into::into) {
            // Looked at twice, its objects would be acted upon twice.
            if !self.namespaces.contains(&namespace) {
                self.namespaces.push(namespace);
            }
        }
        self
    }

    /// Acts only while this is true (a lease is held); what runs when it turns false is left to end.
    #[must_use]
    pub fn gate(mut self, leading: watch::Receiver<bool>) -> Self {
        self.gate = Some(leading);
        self
    }

    /// Looks at an object whenever this stream names it.
    #[must_use]
    pub fn pokes(
        mut self,
        pokes: impl Stream<Item = ObjectRef<A::Resource>> + Send + 'static,
    ) -> Self {
        self.pokes = pokes.boxed();
        self
    }

    /// How many objects have their turn at the same time; 16 by default. Work is not counted: it runs beside.
    #[must_use]
    pub fn concurrency(mut self, turns: u16) -> Self {
        self.concurrency = turns.max(1);
        self
    }

    /// How the waits between failed attempts grow; from a second to five minutes by default.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Reads its objects as a stream instead of page by page: less memory, on Kubernetes 1.33 or later.
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.streaming = true;
        self
    }

    /// Takes the time from tokio's clock, so that tests which pause or advance it decide what time it is.
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.clock = Clock::tokio();
        self
    }

    /// Runs until `stop` ends, then lets the turns under way finish.
    ///
    /// Work that is running then is dropped, and resumed by the next operator under the same ids; the same
    /// happens where this future is dropped.
    ///
    /// # Errors
    ///
    /// [`OperatorError`] where it cannot begin. Once it runs, what goes wrong concerns single objects and
    /// is said in their conditions, or is logged and tried again.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), OperatorError> {
        let graph = StateOf::<A>::GRAPH;
        if graph.kind == Kind::Pass {
            return Err(OperatorError::Pass(graph.name));
        }
        let crd = crate::crd::crd::<A::Resource>()?;
        if crd.spec.scope == "Cluster" && !self.namespaces.is_empty() {
            return Err(OperatorError::ClusterScoped(crd.spec.names.kind));
        }
        answer(self.client.apiserver_version())
            .await
            .map_err(|error| OperatorError::NoContact(Box::new(error)))?;
        let (readiness_in, readiness) = watch::channel(Readiness::Unknown);
        let crd = watch_crd::<A::Resource>(self.client.clone(), readiness_in);
        let stopping = CancellationToken::new();
        let all = [None];
        let some: Vec<Option<String>> = self.namespaces.iter().cloned().map(Some).collect();
        let namespaces = if some.is_empty() { &all[..] } else { &some[..] };
        let application = Arc::new(self.application);
        let tasks = Tasks::default();
        let _tasks_end_here = tasks.end_with_this();
        let mut queues = Vec::new();
        let drives = namespaces.iter().map(|namespace| {
            let (queue, queued) = mpsc::unbounded_channel();
            queues.push((namespace.clone(), queue.clone()));
            let shared = Arc::new(Shared {
                application: Arc::clone(&application),
                client: self.client.clone(),
                memory: Memory::default(),
                tasks: tasks.clone(),
                clock: self.clock,
                backoff: self.backoff,
                readiness: readiness.clone(),
                gate: self.gate.clone(),
                queue,
                recorder: Recorder::new(self.client.clone(), reporter(graph.name)),
            });
            let settings = Settings {
                namespace: namespace.clone(),
                concurrency: self.concurrency,
                streaming: self.streaming,
                stopping: stopping.clone(),
            };
            drive(shared, queued, settings)
        });
        let drives = futures::future::join_all(drives.collect::<Vec<_>>());
        let pokes = self.pokes.for_each(|poke| {
            for (namespace, queue) in &queues {
                if namespace.is_none() || *namespace == poke.namespace {
                    // A closed queue belongs to an operator that is stopping.
                    let _ = queue.send(Request::Poke(guarded(&poke)));
                }
            }
            std::future::ready(())
        });
        let mut drives = std::pin::pin!(drives);
        tokio::select! {
            () = stop => {}
            () = async { crd.await; std::future::pending().await } => {}
            () = async { pokes.await; std::future::pending().await } => {}
            _ = &mut drives => {}
        }
        stopping.cancel();
        drives.await;
        Ok(())
    }
}

fn guarded<K: LifecycleObject>(reference: &ObjectRef<K>) -> ObjectRef<Guarded<K>> {
    let mut guarded = ObjectRef::new(&reference.name);
    guarded.namespace.clone_from(&reference.namespace);
    guarded
}

fn reporter(graph: &str) -> Reporter {
    Reporter {
        controller: format!("okt-{}", graph.to_lowercase()),
        instance: None,
    }
}

/// What all turns of one operator share.
pub(crate) struct Shared<A: Application> {
    pub(crate) application: Arc<A>,
    pub(crate) client: Client,
    pub(crate) memory: Memory,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
    pub(crate) backoff: Backoff,
    pub(crate) readiness: watch::Receiver<Readiness>,
    gate: Option<watch::Receiver<bool>>,
    queue: mpsc::UnboundedSender<Request<A::Resource>>,
    recorder: Recorder,
}

/// What the queue is asked beside what the watch brings.
enum Request<K: LifecycleObject> {
    /// Work has ended or says something: look at the object.
    Look(ObjectRef<Guarded<K>>),
    /// Somebody outside named it.
    Poke(ObjectRef<Guarded<K>>),
}

impl<A: Application> Shared<A> {
    /// Whether this operator leads, and the CRD is one it may act upon.
    pub(crate) fn may_act(&self) -> bool {
        self.readiness.borrow().is_fit() && self.gate.as_ref().is_none_or(|gate| *gate.borrow())
    }

    pub(crate) fn look_at(&self, object: ObjectRef<Guarded<A::Resource>>) {
        // A closed queue belongs to an operator that is stopping.
        let _ = self.queue.send(Request::Look(object));
    }

    /// A jump means that the application moved on its own, or that a status was lost: somebody may want to know.
    pub(crate) fn warn_of_jump(&self, object: &ObjectMeta, go: Go, from: &str) {
        if go.by == By::Jump {
            let to = StateOf::<A>::GRAPH.name_of(go.to);
            let note = if from.is_empty() {
                format!("found in {to}, with nothing recorded")
            } else {
                format!("was in {from} by the record, is in {to}; no edge leads there")
            };
            // The note is not part of what makes two events one, so the state stands in the reason.
            self.warn(object, format!("JumpedTo{to}"), "Transition", note);
        }
    }

    pub(crate) fn warn_of_abandoning(&self, object: &ObjectMeta, state: &str) {
        let state = if state.is_empty() {
            "an unknown state"
        } else {
            state
        };
        let note = format!("given up in {state}; what is left of the application is nobody's");
        self.warn(object, "Abandoned".to_owned(), "Release", note);
    }

    fn warn(&self, object: &ObjectMeta, reason: String, action: &str, note: String) {
        let event = Event {
            type_: EventType::Warning,
            reason,
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        };
        let about = ObjectReference {
            api_version: Some(A::Resource::api_version(&()).into_owned()),
            kind: Some(A::Resource::kind(&()).into_owned()),
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            uid: object.uid.clone(),
            ..ObjectReference::default()
        };
        let recorder = self.recorder.clone();
        tokio::spawn(async move {
            if let Err(error) = recorder.publish(&event, &about).await {
                tracing::warn!(reason = event.reason, "cannot publish an event: {error}");
            }
        });
    }
}

struct Settings {
    namespace: Option<String>,
    concurrency: u16,
    streaming: bool,
    stopping: CancellationToken,
}

/// Watches, queues and takes turns until it is told to stop.
async fn drive<A: Application>(
    shared: Arc<Shared<A>>,
    queued: mpsc::UnboundedReceiver<Request<A::Resource>>,
    settings: Settings,
) {
    let (store, writer) = reflector::store::<Guarded<A::Resource>>();
    let api = api::<A::Resource>(&shared.client, settings.namespace.as_deref());
    let config = if settings.streaming {
        watcher::Config::default().streaming_lists()
    } else {
        watcher::Config::default().page_size(PAGE)
    };
    let watched = {
        let (shared, store) = (Arc::clone(&shared), store.clone());
        watcher(api, config)
            .default_backoff()
            // Seventy per cent of what a cached object costs, and nothing here reads it.
            .modify(|object| object.meta_mut().managed_fields = None)
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
    let opened = openings(&shared, store.clone()).map(Ok);
    let queue = stream::select(stream::select(watched, asked), opened)
        .take_until(settings.stopping.cancelled_owned());
    let turns = applier(
        |object, shared| Box::pin(contained(shared, object)),
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
                error => tracing::warn!("{error}"),
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
    }
}

/// A turn that panics (a user's `revision` or `look_again` may) costs that turn only.
async fn contained<A: Application>(
    shared: Arc<Shared<A>>,
    object: Arc<Guarded<A::Resource>>,
) -> Result<Again, Infallible> {
    let name = object.meta().name.clone().unwrap_or_default();
    match AssertUnwindSafe(turn(shared, object)).catch_unwind().await {
        Ok(again) => Ok(again),
        Err(panic) => {
            tracing::error!(object = name, "a turn failed: {}", panic_text(&*panic));
            Ok(Again::requeue(AFTER_PANIC))
        }
    }
}

type Queued<K> = Result<ObjectRef<Guarded<K>>, watcher::Error>;

/// Which objects an event of the watch concerns; what is gone is forgotten.
fn heed<A: Application>(
    shared: &Shared<A>,
    store: &Store<Guarded<A::Resource>>,
    event: Result<watcher::Event<Guarded<A::Resource>>, watcher::Error>,
) -> Vec<Queued<A::Resource>> {
    match event {
        Ok(watcher::Event::Apply(object)) => vec![Ok(ObjectRef::from_obj(&object))],
        // A list is in the store only when it is complete, and a turn for what is not there is lost.
        Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => Vec::new(),
        Ok(watcher::Event::Delete(object)) => {
            shared
                .memory
                .forget(object.meta().uid.as_deref().unwrap_or_default());
            Vec::new()
        }
        Ok(watcher::Event::InitDone) => {
            let all = store.state();
            let alive: HashSet<&str> = (all.iter())
                .filter_map(|object| object.meta().uid.as_deref())
                .collect();
            shared.memory.keep_only(|uid| alive.contains(uid));
            let reference = |object: &Arc<Guarded<_>>| Ok(ObjectRef::from_obj(&**object));
            all.iter().map(reference).collect()
        }
        Err(error) => vec![Err(error)],
    }
}

fn requested<A: Application>(
    shared: &Shared<A>,
    store: &Store<Guarded<A::Resource>>,
    request: Request<A::Resource>,
) -> Option<ObjectRef<Guarded<A::Resource>>> {
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
    store: Store<Guarded<A::Resource>>,
) -> impl Stream<Item = ObjectRef<Guarded<A::Resource>>> + use<A> {
    let readiness = changed(shared.readiness.clone());
    let gate = match shared.gate.clone() {
        Some(gate) => changed(gate).boxed(),
        None => stream::pending().boxed(),
    };
    let (shared, opened) = (Arc::clone(shared), Arc::clone(shared));
    stream::select(readiness, gate)
        .filter(move |()| std::future::ready(shared.may_act()))
        .flat_map(move |()| {
            opened.memory.reopen();
            let all: Vec<_> = (store.state().iter())
                .map(|object| ObjectRef::from_obj(&**object))
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
