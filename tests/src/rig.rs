//! A cluster in the process, with an operator.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, CustomResourceExt};
use okt::{Operator, crd};
use okt_testing::rehearsal::Rules;
use okt_testing::{ApiServer, Fault, Injected};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Served};
use crate::database::{DatabaseState, Databases, Reply, Sight};
use crate::definition;
use crate::rollout::{Place, Working};
use crate::wire::{OPERATOR, Wire};

/// The maximum wait for a condition, in tokio time.
const PATIENCE: Duration = Duration::from_hours(1);

/// The options of the operator.
#[derive(Clone, Default)]
pub struct Options {
    /// The watched namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// Whether the operator is the leader; `None` disables leader election.
    pub is_leader: Option<watch::Receiver<bool>>,
}

/// A cluster, a scripted application, and an operator that can be killed and restarted.
///
/// Use it with paused tokio time.
pub struct Rig<A: Served = Databases> {
    /// The API server.
    pub server: ApiServer,
    /// The view of the users.
    pub cluster: Cluster<A>,
    /// The requests of the operator.
    pub wire: Wire,
    /// The application.
    pub app: A,
    /// The options of the operator's next start.
    pub options: Options,
    slot: Arc<Mutex<Slot<A>>>,
}

struct Slot<A: Served> {
    operator: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
    requests: Option<mpsc::UnboundedSender<ObjectRef<A::Resource>>>,
}

impl<A: Served> Rig<A> {
    /// Creates a cluster with the CRD and a running operator.
    pub async fn of() -> Self {
        let rig = Self::without_operator_of().await;
        rig.start();
        rig
    }

    /// Creates a cluster with the CRD and no running operator.
    pub async fn without_operator_of() -> Self {
        let rig = Self::bare();
        rig.define(crd::<A::Resource>().expect("a CRD")).await;
        rig
    }

    /// Adds another application to the same cluster, with its CRD and no running operator.
    pub async fn beside<B: Served>(other: &Rig<B>) -> Self {
        let mut rig = Self::bare();
        rig.server = other.server.clone();
        rig.cluster.client = other.client.clone();
        rig.wire = Wire::to(&other.server);
        rig.define(crd::<A::Resource>().expect("a CRD")).await;
        rig
    }

    /// Creates a cluster without the CRD.
    pub fn bare() -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let server = ApiServer::new();
        Self {
            cluster: Cluster::new(server.client(), PATIENCE),
            wire: Wire::to(&server),
            server,
            app: A::default(),
            options: Options::default(),
            slot: Arc::new(Mutex::new(Slot {
                operator: None,
                stop: None,
                requests: None,
            })),
        }
    }

    /// Starts the operator.
    pub fn start(&self) {
        self.start_with(|operator| operator);
    }

    /// Starts the operator with more settings.
    pub fn start_with(&self, settings: impl FnOnce(Operator<A>) -> Operator<A>) {
        let (request, requests) = mpsc::unbounded();
        let client = self.wire.client();
        let mut operator = Operator::new(client, self.app.clone())
            .virtual_time()
            .namespaces(self.options.namespaces.clone())
            .reconcile_on(requests);
        if let Some(is_leader) = self.options.is_leader.clone() {
            operator = operator.leader_election(is_leader);
        }
        let operator = settings(operator);
        let (stop, stopped) = oneshot::channel::<()>();
        let operator = tokio::spawn(async move {
            // When the rig is dropped, the operator stops too.
            let stopped = async { stopped.await.unwrap_or_default() };
            operator.run(stopped).await.expect("the operator runs");
        });
        *self.slot.lock() = Slot {
            operator: Some(operator),
            stop: Some(stop),
            requests: Some(request),
        };
    }

    /// Kills the operator and all its work, as SIGKILL does.
    pub async fn kill(&self) {
        let operator = self.slot.lock().operator.take();
        if let Some(operator) = operator {
            operator.abort();
            let _ = operator.await;
        }
    }

    /// Stops the operator, as SIGTERM does, and waits until it has ended.
    pub async fn stop(&self) {
        let (operator, stop) = {
            let mut slot = self.slot.lock();
            (slot.operator.take(), slot.stop.take())
        };
        if let Some(stop) = stop {
            // An operator that has ended does not receive this.
            let _ = stop.send(());
        }
        if let Some(operator) = operator {
            operator.await.expect("the operator ends well");
        }
    }

    /// Kills the operator and starts it again.
    pub async fn restart(&self) {
        self.kill().await;
        self.start();
    }

    /// Sends a reconcile request for an object.
    pub fn request(&self, name: &str) {
        let slot = self.slot.lock();
        let mut object = ObjectRef::new(name);
        object.namespace = A::api(self.client.clone()).namespace().map(str::to_owned);
        let requests = slot.requests.as_ref().expect("the operator was started");
        requests.unbounded_send(object).expect("the operator runs");
    }
}

impl<A: Served> Rig<A> {
    /// Creates the cluster and the CRD, starts the operator of an application prepared by the test, and creates an
    /// object of this name.
    pub async fn prepared(name: &str, prepare: impl FnOnce(&A)) -> Self {
        let rig = Self::without_operator_of().await;
        prepare(&rig.app);
        rig.start();
        rig.create_with(name, serde_json::json!({})).await;
        rig
    }

    /// Creates the cluster with a CRD that accepts any spec, without an operator.
    pub async fn lenient() -> Self {
        let rig = Self::bare();
        let definition = definition::with_schema::<A::Resource>(definition::any_spec);
        rig.define(definition).await;
        rig
    }

    /// Starts another operator of the same application, with a client of its own.
    pub fn operate(&self, client: Client) -> Working {
        let place = Place {
            client,
            patience: PATIENCE,
            virtual_time: true,
        };
        place.operate(self.app.clone())
    }

    /// Injects a fault into the requests of the operator.
    pub fn inject(&self, fault: Fault) -> Injected {
        self.server.inject(fault.client(OPERATOR))
    }

    /// Lets this time pass, and checks that the operator writes nothing.
    pub async fn writes_nothing_for(&self, time: Duration) {
        self.wire.clear();
        self.pass(time).await;
        assert_eq!(self.wire.writes(), [""; 0]);
    }
}

impl<A: Served> Deref for Rig<A> {
    type Target = Cluster<A>;

    fn deref(&self) -> &Cluster<A> {
        &self.cluster
    }
}

impl<A: Served> Drop for Rig<A> {
    /// Checks that no status broke a rule, in every test.
    fn drop(&mut self) {
        let rules = Rules::of_application::<A>();
        let broken = self.wire.broken_rules(A::Resource::crd_name(), &rules);
        if !std::thread::panicking() {
            assert!(broken.is_empty(), "broken rules: {}", broken.join("\n"));
        }
    }
}

impl Rig<Databases> {
    /// Creates the database `db`, which has begun this work in a state a second ago.
    pub async fn begin_work(&self, state: DatabaseState, work: Reply) {
        self.app.next_time(state, work);
        self.create_in("db", state).await;
        self.pass(Duration::from_secs(1)).await;
    }

    /// Creates the database `db`, whose work in `Running` is cancelled, because it is observed as failed.
    pub async fn cancel_work(&self, work: Reply) {
        self.begin_work(DatabaseState::Running, work).await;
        let failed = Sight::Event(DatabaseState::Running, DatabaseState::Failed);
        self.app.sees("db", failed);
        self.request("db");
        self.until_in("db", DatabaseState::Failed).await;
    }

    /// Creates a cluster whose database `db` is ready.
    pub async fn running() -> Self {
        let rig = Self::of().await;
        rig.create_ready("db", DatabaseState::Running).await;
        rig
    }

    /// Creates a cluster with databases and a running operator.
    pub async fn new() -> Self {
        Self::of().await
    }

    /// Creates a cluster with databases and no running operator.
    pub async fn without_operator() -> Self {
        Self::without_operator_of().await
    }
}
