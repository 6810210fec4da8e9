//! The operator: its settings, and how it runs and stops.

mod drive;
mod error;
mod into;
mod news;
mod part;
mod requeues;
mod settings;
mod wakes;
mod watching;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Predicate, watcher};
use kube::{Client, Resource};
use okt_core::backoff::Backoff;
use okt_core::conditions::DECLARED_LIMIT;
use okt_core::{Graph, Kind, Lifecycle};
use okt_sharding::gate::Gate;
use okt_sharding::membership::Membership;
use okt_telemetry::Telemetry;
use okt_telemetry::delivery::{AnyDelivery, Delivery};
use okt_telemetry::kube_events::{EventPolicy, KubeEvents};
use okt_telemetry::monitoring::{Measured, Monitoring};
use okt_telemetry::operators::controller;
use okt_telemetry::outbox::Outbox;
use okt_telemetry::sinks::{AnySink, Deliveries, Sink, Sinks};
use okt_wire::api_timeout::contact;
use okt_wire::clock::Clock;
use okt_wire::object::LifecycleObject;
use okt_wire::read;
use okt_wire::texts::seconds;
use okt_wire::watch::Connection;
use okt_wire::watch::PAGE;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::author::admission::Admission;
use crate::author::application::{Application, PassGraph, StateOf};
use crate::author::asked::{CallPermits, QUESTIONS};
use crate::cache::cached::reference;
use crate::cache::history::History;
use crate::cache::store::{Store, StorePart, StoredObjects};
use crate::crd::readiness::{ExpectedCrd, Readiness, watch_crd};
use crate::limits::Limits;
use crate::operator::drive::drive;
use crate::operator::news::Property;
use crate::operator::settings::OperatorSettings;
use crate::reconcile::memory::ObjectMemory;
use crate::reconcile::permits::{ACTIONS, Permits};
use crate::requests::{RequestQueue, Requests};
use crate::test_hooks::TestHooks;

use crate::reconcile::shared::{QueueRequest, Shared};
use crate::reconcile::tasks::Tasks;
use crate::resources::{Cluster, Watches, listed};

pub use crate::operator::error::OperatorError;
pub use crate::operator::into::IntoOperator;

/// The default number of concurrent reconciliations.
const CONCURRENCY: u16 = 16;

/// The default time limit of a graceful shutdown. Kubernetes gives a pod 30 s.
pub const SHUTDOWN_LIMIT: Duration = Duration::from_secs(20);

/// How long aborted tasks may take to end.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// How often a stopping operator checks whether its work is done.
const DRAIN_POLL: Duration = Duration::from_millis(50);

/// Reconcile requests from sources other than watches.
type ReconcileRequests<K> = BoxStream<'static, ObjectRef<K>>;

/// An operator for one kind of resource. Use it if you have a `main` of your own.
///
/// # Guarantees
///
/// - OKT stores a position before the work of its state starts. Work never runs in a reconciler.
/// - At most one piece of work of an object runs at a time in this process.
/// - An object at rest causes no request.
///
/// # Assumptions
///
/// Without [`replicas`](Self::replicas), run one replica only: a second one would repeat work under the same ids.
///
/// ```no_run
/// # use okt::{Application, Operator};
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
    gate: Gate,
    requests: ReconcileRequests<A::Resource>,
    concurrency: u16,
    questions: usize,
    actions: usize,
    backoff: Backoff,
    shutdown_limit: Duration,
    watch: watcher::Config,
    property: Option<Property<A::Resource>>,
    stored: StoredObjects<A::Resource>,
    sinks: Vec<Box<dyn AnySink>>,
    delivery: Option<Box<dyn AnyDelivery>>,
    events: EventPolicy,
    monitoring: Option<Monitoring>,
    clock: Clock,
    test_hooks: TestHooks,
}

impl<A: Application> Operator<A> {
    /// Creates an operator for all objects of the application's kind.
    pub fn new(client: Client, application: A) -> Self {
        Self {
            client,
            application,
            namespaces: Vec::new(),
            gate: Gate::Always,
            requests: stream::pending().boxed(),
            concurrency: CONCURRENCY,
            questions: QUESTIONS,
            actions: ACTIONS,
            backoff: Backoff::default(),
            shutdown_limit: SHUTDOWN_LIMIT,
            watch: watcher::Config::default().page_size(PAGE),
            property: None,
            stored: StoredObjects::default(),
            sinks: Vec::new(),
            delivery: None,
            events: EventPolicy::default(),
            monitoring: None,
            clock: Clock::wall(),
            test_hooks: TestHooks::default(),
        }
    }

    /// Limits the operator to these namespaces; none means all.
    ///
    /// Do not call it for a cluster-scoped kind: [`run`](Self::run) returns an error then.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        for namespace in namespaces.into_iter().map(Into::into) {
            // A namespace that is watched twice would have its objects reconciled twice.
            if !self.namespaces.contains(&namespace) {
                self.namespaces.push(namespace);
            }
        }
        self
    }

    /// Limits the operator to the objects whose labels match this selector, as in
    /// [`Config::labels`](watcher::Config::labels). The last call counts.
    ///
    /// The API server filters: the operator receives no other objects, with [`replicas`](Self::replicas) too.
    ///
    /// ```
    /// # use okt::{Application, Operator};
    /// # fn example<A: Application>(client: kube::Client, application: A) -> Operator<A> {
    /// Operator::new(client, application).labels("demo.okt.dev/channel=beta,!demo.okt.dev/by-hand")
    /// # }
    /// ```
    ///
    /// # Objects that leave the selection
    ///
    /// The operator forgets an object whose labels no longer match.
    /// It drops the object's running work at its next `await`, as a crash would, and does not cancel it: an agent goes on.
    /// The object keeps its finalizer, status and owned resources. Once it matches again, here or in another operator,
    /// the work on record is resumed under its id.
    ///
    /// - **An object that no operator selects keeps its finalizer: if it is deleted, it stays until one selects it.**
    /// - The watch cannot tell whether an object has left or is gone. If somebody removes the finalizer by hand, running
    ///   work is therefore dropped, and not cancelled.
    /// - While an object moves from one operator to another, both may work on it for a moment, under the same id. Move
    ///   objects at rest, or let [`replicas`](Self::replicas) share the objects.
    ///
    /// # Errors
    ///
    /// [`run`](Self::run) returns [`OperatorError::Selector`] if the API server refuses the selector.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.watch = self.watch.labels(selector);
        self
    }

    /// Limits the operator to the objects whose fields match this selector, as in
    /// [`Config::fields`](watcher::Config::fields). The last call counts.
    ///
    /// An API server selects by `metadata.name`, `metadata.namespace`, and the fields that the CRD declares:
    /// `#[kube(selectable = ".spec.tier")]` above the spec. For the rest see [`labels`](Self::labels).
    ///
    /// ```
    /// # use okt::{Application, Operator};
    /// # fn example<A: Application>(client: kube::Client, application: A) -> Operator<A> {
    /// Operator::new(client, application).fields("spec.tier=production")
    /// # }
    /// ```
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.watch = self.watch.fields(selector);
        self
    }

    /// Ignores changes of an object's metadata that this predicate does not name. The last call counts.
    ///
    /// Without it every change reconciles the object, and so observes its application. Use it if somebody often changes
    /// labels or annotations that your code does not read:
    ///
    /// ```
    /// # use kube::runtime::{Predicate, predicates};
    /// # use okt::{Application, Operator};
    /// # fn example<A: Application>(operator: Operator<A>) -> Operator<A> {
    /// // Annotations and owner references do not count.
    /// operator.predicate(predicates::labels)
    /// # }
    /// ```
    ///
    /// A predicate of kube hides whatever it does not name. Here it adds to what OKT needs, so these changes reconcile an
    /// object in any case:
    ///
    /// | change | because |
    /// |---|---|
    /// | generation, deletion, finalizers, another uid | OKT decides by them |
    /// | status, also by another writer | the operator waits for its own writes, and repairs what others damage |
    /// | `okt.dev/paused`, `okt.dev/abandon`, [`revision`](Application::revision) | OKT decides by them |
    /// | a property that the predicate names; a predicate without a value, or that panics | you asked for it |
    ///
    /// Times to requeue, events of other kinds and [`reconcile_on`](Self::reconcile_on) do not pass the predicate, nor
    /// does a list, at the start or after a broken watch. Your code reads the newest object in any case.
    #[must_use]
    pub fn predicate(
        mut self,
        predicate: impl Predicate<A::Resource> + Send + Sync + 'static,
    ) -> Self {
        self.property = Some(Arc::new(move |object| predicate.hash_property(object)));
        self
    }

    /// Acts only on the objects that this replica holds, as a member of a group of replicas.
    #[must_use]
    pub fn replicas(mut self, membership: &Membership) -> Self {
        self.gate = membership.gate();
        self
    }

    /// Acts only on the objects that this gate opens; an operator that has a gate already keeps it.
    #[doc(hidden)]
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        if matches!(self.gate, Gate::Always) {
            self.gate = gate;
        }
        self
    }

    /// Acts only while `is_leader` is true: for a leader election of your own. Running work is left to end when it
    /// becomes false.
    ///
    /// A closed channel counts as false, because it cannot report that the lease is lost.
    /// Prefer [`replicas`](Self::replicas).
    #[must_use]
    pub fn leader_election(mut self, is_leader: watch::Receiver<bool>) -> Self {
        self.gate = Gate::Leader(is_leader);
        self
    }

    /// Returns a handle of the cache of the operator's objects, for other tasks of the process.
    ///
    /// ```
    /// # use kube::Client;
    /// # use kube::runtime::reflector::ObjectRef;
    /// # use okt::{Application, Operator, OperatorError};
    /// # async fn example<A: Application>(client: Client, application: A) -> Result<(), OperatorError> {
    /// let operator = Operator::new(client, application);
    /// let databases = operator.store();
    /// tokio::spawn(async move {
    ///     databases.wait_until_ready().await?;
    ///     let orders = databases.get(&ObjectRef::new("orders").within("shop"))?;
    ///     println!("{} databases; is orders one of them: {}", databases.len(), orders.is_some());
    ///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// });
    /// operator.run(std::future::pending()).await
    /// # }
    /// ```
    pub fn store(&self) -> Store<A::Resource> {
        self.stored.handle()
    }

    /// Reconciles an object whenever this stream names it. Call it again to add another stream.
    ///
    /// Use it for events that no kind of [`watches`](Application::watches) reports: a queue, a socket, another cluster:
    ///
    /// ```no_run
    /// # use futures::StreamExt;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::runtime::reflector::ObjectRef;
    /// # use kube::runtime::{WatchStreamExt, watcher};
    /// # use kube::{Api, Client, ResourceExt};
    /// # use okt::{Application, Operator};
    /// # fn example<A: Application>(operator: Operator<A>, elsewhere: Client) -> Operator<A> {
    /// let maps = Api::<ConfigMap>::namespaced(elsewhere, "databases");
    /// let touched = watcher(maps, watcher::Config::default())
    ///     .default_backoff()
    ///     .touched_objects();
    /// let named = touched.filter_map(async |map| {
    ///     let map = map.inspect_err(|error| tracing::warn!("cannot watch: {error}")).ok()?;
    ///     Some(ObjectRef::new(&map.name_any()).within("databases"))
    /// });
    /// operator.reconcile_on(named)
    /// # }
    /// ```
    #[must_use]
    pub fn reconcile_on(
        mut self,
        requests: impl Stream<Item = ObjectRef<A::Resource>> + Send + 'static,
    ) -> Self {
        self.requests = stream::select(self.requests, requests).boxed();
        self
    }

    /// Adds a sink, which receives what happens to the objects: transitions, attempts, troubles. Call it again to add
    /// another one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use okt::{Application, LifecycleEvent, Operator, Sink};
    /// # struct AuditLog;
    /// # impl Sink for AuditLog {
    /// #     async fn record(&self, event: Arc<LifecycleEvent>) {}
    /// # }
    /// # fn example<A: Application>(operator: Operator<A>) -> Operator<A> {
    /// operator.sink(AuditLog)
    /// # }
    /// ```
    #[must_use]
    pub fn sink(mut self, sink: impl Sink) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Delivers each transition of the objects to another system, at least once. An operator has one delivery: the last
    /// call counts.
    ///
    /// The status then records up to where the transitions are delivered. Those that an object made before the operator
    /// had a delivery are not delivered.
    #[must_use]
    pub fn deliver(mut self, delivery: impl Delivery) -> Self {
        self.delivery = Some(Box::new(delivery));
        self
    }

    /// Delivers transitions, unless the operator does so already.
    #[doc(hidden)]
    #[must_use]
    pub fn delivering(mut self, delivery: impl Delivery) -> Self {
        self.delivery.get_or_insert_with(|| Box::new(delivery));
        self
    }

    /// Monitors the operator: its health, its reconciliations, its queue, and the lifecycles of its objects.
    #[must_use]
    pub fn monitoring(mut self, monitoring: &Monitoring) -> Self {
        self.monitoring = Some(monitoring.clone());
        self
    }

    /// Monitors the operator, unless it has a monitoring already.
    #[doc(hidden)]
    #[must_use]
    pub fn monitored(mut self, monitoring: &Monitoring) -> Self {
        self.monitoring.get_or_insert_with(|| monitoring.clone());
        self
    }

    /// Sets which transitions the operator publishes as Kubernetes Events; jumps and trigger edges by default.
    #[must_use]
    pub fn events(mut self, policy: EventPolicy) -> Self {
        self.events = policy;
        self
    }

    /// Sets how many objects are reconciled at the same time; 16 by default.
    ///
    /// A reconciliation that waits for your code is not counted: see [`questions`](Self::questions) and
    /// [`actions`](Self::actions).
    #[must_use]
    pub fn concurrency(mut self, turns: u16) -> Self {
        self.concurrency = turns.max(1);
        self
    }

    /// Sets how many calls of your code (`observe`, `resources`, `extra`, steps of a pass) may be pending at the same
    /// time; 4,096 by default.
    ///
    /// Each pending call holds its future and what your code holds, a connection for example.
    /// Applications that did not answer the last call share a quarter of the permits, so that the others find one.
    #[must_use]
    pub fn questions(mut self, permits: usize) -> Self {
        self.questions = permits;
        self
    }

    /// Sets how many attempts of actions run at the same time; 4,096 by default.
    ///
    /// Further attempts wait in order, deletions first. An eighth of the permits is reserved for deletions.
    /// After a restart the operator resumes the work that was in flight one attempt after the other: as many in 40 s as
    /// there are permits.
    /// Work that answered `Wait` holds no permit while it waits.
    ///
    /// A running attempt costs the operator 8 KB (`docs/benchmarks.md`), plus what your handler holds: choose fewer
    /// permits if that is much.
    #[must_use]
    pub fn actions(mut self, permits: usize) -> Self {
        self.actions = permits;
        self
    }

    /// Sets the backoff between failed attempts; from one second to five minutes by default.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how long running work and pending calls of your code may continue during a graceful shutdown; 20 s by
    /// default.
    ///
    /// Kubernetes kills a pod 30 s after SIGTERM (`terminationGracePeriodSeconds`): stay below that.
    #[must_use]
    pub fn shutdown_limit(mut self, limit: Duration) -> Self {
        self.shutdown_limit = limit;
        self
    }

    /// Reads the objects with a streaming list instead of pages of 500: one request, on a server that streams lists
    /// (Kubernetes 1.34 or later; on another one the operator finds no objects).
    ///
    /// Off by default: kube requests such a list at any version. An API server that lags behind the others may show a
    /// position that the object has left since. The operator would then begin that work again, under its old id.
    /// A paged list is always the newest.
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.watch = self.watch.streaming_lists();
        self
    }

    /// Takes the time from tokio's clock, so that tests can pause and advance it.
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.clock = Clock::tokio();
        self
    }

    /// Sets the hooks of a test kit.
    #[doc(hidden)]
    #[must_use]
    pub fn __test_hooks(mut self, test_hooks: TestHooks) -> Self {
        self.test_hooks = test_hooks;
        self
    }

    /// Runs the operator until `stop` completes. Then it starts no more work and waits for the work that runs.
    ///
    /// The results of that work are still recorded.
    /// Work that is not done within the [`shutdown_limit`](Self::shutdown_limit) is aborted, and the next operator
    /// resumes it under the same ids. If you drop this future, all work is aborted.
    ///
    /// If the API server does not answer yet, the operator waits for it and logs each attempt.
    ///
    /// # Errors
    ///
    /// [`OperatorError`] if the operator cannot start. Once it runs, failures concern single objects: it reports them
    /// in their conditions, or logs them and retries.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Result<(), OperatorError> {
        let is_namespaced = check::<A>(&self.namespaces)?;
        let mut stop = pin!(stop);
        if !reaches_api(&self.client, &mut stop).await? {
            return Ok(());
        }
        let (readiness_in, readiness) = watch::channel(Readiness::Unknown);
        let connection = Connection::new(&self.client);
        let is_limited = !self.namespaces.is_empty();
        let expected = ExpectedCrd::of::<A::Resource>();
        let crd = watch_crd(expected, connection.clone(), is_limited, readiness_in);
        let stopping = CancellationToken::new();
        let namespaces = watched(&self.namespaces);
        let metrics = self.measured(namespaces.len());
        let (telemetry, deliveries) = self.telemetry(metrics.as_ref());
        let application = Arc::new(self.application);
        let tasks = Tasks::default();
        let questions = Arc::new(CallPermits::new(self.questions));
        let permits = Permits::new(self.actions);
        let _tasks_end_here = tasks.end_with_this();
        let draining = CancellationToken::new();
        let graph = read::graph_hash(StateOf::<A>::GRAPH);
        let limits = Limits::of(
            &application,
            &connection.client,
            &self.gate,
            self.stored.handle(),
            self.clock.clone(),
        );
        let mut queues: Queues<A::Resource> = Vec::new();
        let (mut waits, mut parts) = (Vec::new(), Vec::new());
        let drives = namespaces.iter().map(|namespace| {
            let (queue, queued) = mpsc::unbounded_channel();
            queues.push((namespace.clone(), queue.clone()));
            let shared = Arc::new(Shared {
                application: Arc::clone(&application),
                connection: connection.clone(),
                cluster: cluster::<A>(is_namespaced, namespace.clone()),
                limits: limits.clone(),
                admission: A::admission(Admission::default()),
                requests: RequestQueue::of(A::requests(Requests::default()).kinds),
                pass: A::pass(),
                memory: ObjectMemory::default(),
                history: History::default(),
                tasks: tasks.clone(),
                questions: Arc::clone(&questions),
                permits: Arc::clone(&permits),
                clock: self.clock.clone(),
                test_hooks: self.test_hooks.clone(),
                backoff: self.backoff,
                graph: graph.clone(),
                readiness: readiness.clone(),
                listed: CancellationToken::new(),
                gate: self.gate.clone(),
                is_selective: is_selective(&self.watch),
                draining: draining.clone(),
                queue,
                telemetry: telemetry.clone(),
            });
            self.gate.join(&shared);
            waits.push(drained(Arc::clone(&shared), self.shutdown_limit));
            let settings = OperatorSettings {
                namespace: namespace.clone(),
                concurrency: self.concurrency,
                watch: self.watch.clone(),
                property: self.property.clone(),
                metrics: metrics.clone(),
                stopping: stopping.clone(),
            };
            let objects = self.stored.objects();
            parts.push(StorePart {
                objects: Arc::clone(&objects),
                listed: shared.listed.clone(),
            });
            drive(shared, objects, queued, settings)
        });
        let drives = try_join_all(drives.collect::<Vec<_>>());
        self.stored.show(parts);
        let requests = self.requests.for_each(|request| {
            enqueue(&queues, &request);
            std::future::ready(())
        });
        let drained = futures::future::join_all(waits);
        let tended = Box::pin(async {
            if let Some(limits) = &limits {
                limits
                    .tend(&connection, |object| enqueue(&queues, &object))
                    .await;
            }
        });
        let beside = futures::future::join3(crd, requests, tended);
        let limit = self.shutdown_limit;
        let left = until_stopped(drives, beside, stop, drained, (&draining, &stopping), limit);
        end(&tasks, deliveries, left.await?).await;
        Ok(())
    }
}

impl<A: Application> Operator<A> {
    /// Returns what a preview needs: the client, the application, and the selection of the objects.
    #[doc(hidden)]
    #[must_use]
    pub fn parts(self) -> (Client, A, watcher::Config) {
        (self.client, self.application, self.watch)
    }

    /// Returns the metrics of this operator, which has so many queues.
    fn measured(&self, queues: usize) -> Option<Measured> {
        let workers = usize::from(self.concurrency).saturating_mul(queues);
        let controller = controller(&A::Resource::kind(&()));
        self.monitoring
            .as_ref()
            .map(|monitoring| monitoring.of(&controller, workers))
    }

    /// Starts to deliver to the sinks.
    fn telemetry(&mut self, metrics: Option<&Measured>) -> (Telemetry, Deliveries) {
        let mut sinks = std::mem::take(&mut self.sinks);
        if self.events != EventPolicy::None {
            let controller = format!("okt-{}", controller(&A::Resource::kind(&())));
            sinks.push(KubeEvents::sink(
                self.client.clone(),
                controller,
                self.events,
            ));
        }
        let (sinks, mut deliveries) = Sinks::start(sinks);
        let states = StateOf::<A>::GRAPH.states.iter().map(|it| it.name);
        let metrics = metrics.map(|metrics| Arc::new(metrics.lifecycle(states.collect())));
        let delivery = self.delivery.take();
        let outbox = delivery.map(|it| Arc::new(Outbox::new(it, metrics.clone())));
        if let Some(outbox) = &outbox {
            deliveries.deliver(Arc::clone(outbox));
            if let Some(metrics) = &metrics {
                metrics.delivers();
            }
        }
        let telemetry = Telemetry::new(sinks, metrics, outbox, self.clock.clone());
        (telemetry, deliveries)
    }
}

/// Returns the caches of other kinds that an application uses.
fn cluster<A: Application>(is_namespaced: bool, namespace: Option<String>) -> Arc<Cluster> {
    let watches = A::watches(Watches::default());
    Arc::new(Cluster::new(watches, is_namespaced, namespace))
}

/// The queue of each watched namespace; of all namespaces if there is none.
type Queues<K> = Vec<(Option<String>, mpsc::UnboundedSender<QueueRequest<K>>)>;

/// Enqueues an object that a reconcile request names.
fn enqueue<K: LifecycleObject>(queues: &Queues<K>, request: &ObjectRef<K>) {
    for (namespace, queue) in queues {
        if namespace.is_none() || *namespace == request.namespace {
            let object = reference(&request.name, request.namespace.as_deref());
            // A closed queue belongs to an operator that is stopping.
            let _ = queue.send(QueueRequest::External(object));
        }
    }
}

/// Returns the namespaces to watch; none means all.
pub fn watched(namespaces: &[String]) -> Vec<Option<String>> {
    if namespaces.is_empty() {
        return vec![None];
    }
    namespaces.iter().cloned().map(Some).collect()
}

/// Checks what is declared; returns whether the kind is namespaced.
fn check<A: Application>(namespaces: &[String]) -> Result<bool, OperatorError> {
    let pass = A::pass();
    check_graphs(StateOf::<A>::GRAPH, pass.as_ref().map(PassGraph::graph))?;
    let requests = A::requests(Requests::default());
    if let Some(state) = requests.unserved(StateOf::<A>::GRAPH) {
        return Err(OperatorError::Unserved(state));
    }
    let crd = crate::crd::definition::crd::<A::Resource>()?;
    if crd.spec.scope == "Cluster" && !namespaces.is_empty() {
        return Err(OperatorError::ClusterScoped(crd.spec.names.kind));
    }
    Ok(crd.spec.scope != "Cluster")
}

/// Checks that the declared lifecycle and pass can run together.
fn check_graphs(
    lifecycle: &'static Graph<'static>,
    pass: Option<&'static Graph<'static>>,
) -> Result<(), OperatorError> {
    if lifecycle.kind == Kind::Pass && !lifecycle.states.is_empty() {
        return Err(OperatorError::Pass(lifecycle.name));
    }
    if lifecycle.states.is_empty() && pass.is_none() {
        return Err(OperatorError::Nothing);
    }
    let conditions = |graph: &'static Graph<'static>| -> BTreeSet<&'static str> {
        let states = graph.states.iter();
        let all = states.flat_map(|state| state.conditions);
        all.map(|it| it.name).collect()
    };
    let own = conditions(lifecycle);
    let of_pass = pass.map(conditions).unwrap_or_default();
    if let Some(name) = own.intersection(&of_pass).next() {
        return Err(OperatorError::SameCondition(name));
    }
    let all = own.len() + of_pass.len();
    if all > DECLARED_LIMIT {
        return Err(OperatorError::ManyConditions(all));
    }
    Ok(())
}

/// Waits until the API server answers; returns false if the operator is stopped before.
async fn reaches_api(
    client: &Client,
    stop: impl Future<Output = ()>,
) -> Result<bool, OperatorError> {
    tokio::select! {
        reached = contact(client) => match reached {
            Ok(()) => Ok(true),
            Err(error) => Err(OperatorError::NoContact(Box::new(error))),
        },
        () = stop => Ok(false),
    }
}

/// Completes when no work runs and its results are recorded, or when the operator may not record them.
async fn drained<A: Application>(shared: Arc<Shared<A>>, limit: Duration) {
    let mut is_logged = false;
    loop {
        let working = shared.memory.under_way();
        if working == 0 || !shared.gate.is_open() {
            return;
        }
        if !is_logged {
            tracing::info!(
                working,
                "stopping: waiting at most {} for the work of {}",
                seconds(limit),
                listed(&shared.tasks.unfinished())
            );
            is_logged = true;
        }
        tokio::time::sleep(DRAIN_POLL).await;
    }
}

/// Drives an operator until `stop` completes, and until its work has `drained` and its reconciliations have ended.
/// Returns what is left of the time limit.
async fn until_stopped(
    drives: impl Future<Output = Result<Vec<()>, OperatorError>>,
    beside: impl Future,
    stop: impl Future<Output = ()>,
    drained: impl Future,
    (draining, stopping): (&CancellationToken, &CancellationToken),
    limit: Duration,
) -> Result<Duration, OperatorError> {
    let mut drives = pin!(drives);
    let mut began = None;
    let stop = async {
        stop.await;
        began = Some(Instant::now());
        draining.cancel();
        // The next operator resumes work that is not done by then.
        let _ = tokio::time::timeout(limit, drained).await;
    };
    tokio::select! {
        () = stop => {}
        () = async { beside.await; std::future::pending().await } => {}
        ended = &mut drives => {
            ended?;
        }
    }
    stopping.cancel();
    let left = || limit.saturating_sub(began.map_or(Duration::ZERO, |began| began.elapsed()));
    // A reconciliation that waits for an answer may be dropped, as if the operator were killed.
    let _ = tokio::time::timeout(left(), drives).await;
    Ok(left())
}

/// Ends the tasks and the sinks of an operator that stops; the sinks may take this long, and at least a second.
async fn end(tasks: &Tasks, mut deliveries: Deliveries, left: Duration) {
    log_unfinished(tasks);
    // A task that blocks its thread does not end when it is aborted.
    let _ = tokio::time::timeout(ABORT_GRACE, tasks.end()).await;
    let delivered = tokio::time::timeout(left.max(ABORT_GRACE), deliveries.end());
    if delivered.await.is_err() {
        tracing::warn!("stopping: a sink or a delivery has not taken everything");
    }
}

fn log_unfinished(tasks: &Tasks) {
    let unfinished = tasks.unfinished();
    if !unfinished.is_empty() {
        tracing::warn!(
            "stopping: aborting the work of {}; the next operator resumes it",
            listed(&unfinished)
        );
    }
}

/// Returns whether the operator acts on a selection of the objects only.
fn is_selective(watch: &watcher::Config) -> bool {
    watch.label_selector.is_some() || watch.field_selector.is_some()
}

#[cfg(test)]
mod tests {
    use okt_macros::lifecycle_graph;

    use super::*;

    #[lifecycle_graph(crate(crate))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Life {
        #[entry]
        #[condition(A1)]
        #[condition(A2)]
        #[condition(A3)]
        #[condition(A4)]
        #[condition(A5)]
        #[condition(A6)]
        #[condition(A7)]
        #[condition(A8)]
        #[condition(A9)]
        #[condition(A10)]
        #[condition(A11)]
        #[condition(A12)]
        #[condition(A13)]
        #[child(Gone)]
        Here,
        #[leaf(idle)]
        Gone,
    }

    #[lifecycle_graph(pass, crate(crate))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Beside {
        #[entry]
        #[condition(B1)]
        #[condition(B2)]
        #[condition(B3)]
        #[condition(B4)]
        #[condition(B5)]
        #[condition(B6)]
        #[condition(B7)]
        #[condition(B8)]
        #[condition(B9)]
        #[condition(B10)]
        #[condition(B11)]
        #[condition(B12)]
        #[child(End)]
        Begin,
        #[leaf(idle)]
        End,
    }

    #[lifecycle_graph(pass, crate(crate))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Same {
        #[entry]
        #[condition(A1)]
        #[child(End)]
        Begin,
        #[leaf(idle)]
        End,
    }

    #[test]
    fn graphs_with_too_many_or_duplicate_conditions_are_refused() {
        let checked = |pass| check_graphs(Life::GRAPH, pass).map_err(|error| error.to_string());
        assert_eq!(checked(None), Ok(()));
        assert_eq!(
            checked(Some(Beside::GRAPH)).expect_err("25 conditions"),
            "cannot hold 25 conditions: the lifecycle and the pass may declare 24 together"
        );
        assert_eq!(
            checked(Some(Same::GRAPH)).expect_err("A1 twice"),
            "cannot tell two conditions apart: `A1` is declared by the lifecycle and by the pass; rename one"
        );
    }
}
