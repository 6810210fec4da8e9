//! A cluster in the process with an operator in it, and words to say what a test expects.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use kube::CustomResourceExt;
use kube::runtime::reflector::ObjectRef;
use okt_runtime::{Operator, crd};
use okt_testing::ApiServer;
use okt_testing::rehearsal::Rules;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Served};
use crate::database::Databases;
use crate::wire::Wire;

/// The longest wait for something to become so, in tokio time.
const PATIENCE: Duration = Duration::from_hours(1);

/// How the operator is built.
#[derive(Clone, Default)]
pub struct Options {
    /// The namespaces it looks at; none means all.
    pub namespaces: Vec<String>,
    /// Whether it leads; none means that it need not.
    pub is_leader: Option<watch::Receiver<bool>>,
}

/// A cluster, an application's script, and an operator that can be killed and started again.
///
/// Use it under paused tokio time.
pub struct Rig<A: Served = Databases> {
    /// The API server.
    pub server: ApiServer,
    /// What its users see.
    pub cluster: Cluster<A>,
    /// What the operator's requests go over.
    pub wire: Wire,
    /// The application.
    pub app: A,
    /// How the operator is built at its next start.
    pub options: Options,
    slot: Arc<Mutex<Slot<A>>>,
}

struct Slot<A: Served> {
    operator: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
    requests: Option<mpsc::UnboundedSender<ObjectRef<A::Resource>>>,
}

impl<A: Served> Rig<A> {
    /// A cluster with the CRD and a running operator.
    pub async fn of() -> Self {
        let rig = Self::without_operator_of().await;
        rig.start();
        rig
    }

    /// A cluster with the CRD and no operator yet.
    pub async fn without_operator_of() -> Self {
        let rig = Self::bare();
        rig.define(crd::<A::Resource>().expect("a CRD")).await;
        rig
    }

    /// The same cluster for another application, with its CRD and no operator.
    pub async fn beside<B: Served>(other: &Rig<B>) -> Self {
        let mut rig = Self::bare();
        rig.server = other.server.clone();
        rig.cluster.client = other.client.clone();
        rig.wire = Wire::to(&other.server);
        rig.define(crd::<A::Resource>().expect("a CRD")).await;
        rig
    }

    /// A cluster without the CRD.
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
        let (request, requests) = mpsc::unbounded();
        let client = self.wire.client();
        let mut operator = Operator::new(client, self.app.clone())
            .virtual_time()
            .namespaces(self.options.namespaces.clone())
            .requests(requests);
        if let Some(is_leader) = self.options.is_leader.clone() {
            operator = operator.leader_election(is_leader);
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let operator = tokio::spawn(async move {
            // Without a rig there is nobody left to stop it.
            let stopped = async { stopped.await.unwrap_or_default() };
            operator.run(stopped).await.expect("the operator runs");
        });
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Slot {
            operator: Some(operator),
            stop: Some(stop),
            requests: Some(request),
        };
    }

    /// Kills the operator and all its work, as SIGKILL would.
    pub async fn kill(&self) {
        let operator = self
            .slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .operator
            .take();
        if let Some(operator) = operator {
            operator.abort();
            let _ = operator.await;
        }
    }

    /// Tells the operator to stop, as SIGTERM would, and waits until it has.
    pub async fn stop(&self) {
        let (operator, stop) = {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            (slot.operator.take(), slot.stop.take())
        };
        if let Some(stop) = stop {
            // One that has ended needs no telling.
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

    /// Names an object to the operator from outside.
    pub fn request(&self, name: &str) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut object = ObjectRef::new(name);
        object.namespace = A::api(self.client.clone()).namespace().map(str::to_owned);
        let requests = slot.requests.as_ref().expect("the operator was started");
        requests.unbounded_send(object).expect("the operator runs");
    }
}

impl<A: Served> Deref for Rig<A> {
    type Target = Cluster<A>;

    fn deref(&self) -> &Cluster<A> {
        &self.cluster
    }
}

impl<A: Served> Drop for Rig<A> {
    /// Whatever a test is about, no status may break a rule.
    fn drop(&mut self) {
        let rules = Rules::of_application::<A>();
        let broken = self.wire.broken_rules(A::Resource::crd_name(), &rules);
        if !std::thread::panicking() {
            assert!(broken.is_empty(), "broken rules: {}", broken.join("\n"));
        }
    }
}

impl Rig<Databases> {
    /// A cluster with databases and a running operator.
    pub async fn new() -> Self {
        Self::of().await
    }

    /// A cluster with databases and no operator yet.
    pub async fn without_operator() -> Self {
        Self::without_operator_of().await
    }
}
