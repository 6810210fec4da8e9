//! A cluster in the process with an operator in it, and words to say what a test expects.
#![expect(
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, CustomResourceExt, Resource};
use okt_runtime::{Application, Lifecycle, LifecycleObject, Operator, Position, StateOf, crd};
use okt_testing::ApiServer;
use okt_testing::rehearsal::Rules;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::database::Databases;
use crate::wire::Wire;

/// The longest wait for something to become so, in tokio time.
const PATIENCE: Duration = Duration::from_hours(1);

/// An application that the rig can serve.
pub trait Served: Application + Clone + Default {
    /// The API of its kind.
    fn api(client: Client) -> Api<Self::Resource>;

    /// An object with this lifecycle field.
    fn object(name: &str, lifecycle: Value) -> Value;
}

/// How the operator is built.
#[derive(Clone, Default)]
pub struct Options {
    /// The namespaces it looks at; none means all.
    pub namespaces: Vec<String>,
    /// Whether it leads; none means that it need not.
    pub gate: Option<watch::Receiver<bool>>,
}

/// A cluster, an application's script, and an operator that can be killed and started again.
///
/// Use it under paused tokio time.
pub struct Rig<A: Served = Databases> {
    /// The API server.
    pub server: ApiServer,
    /// A client of it, not the operator's.
    pub client: Client,
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
    pokes: Option<mpsc::UnboundedSender<ObjectRef<A::Resource>>>,
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
        rig.client = other.client.clone();
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
            client: server.client(),
            wire: Wire::to(&server),
            server,
            app: A::default(),
            options: Options::default(),
            slot: Arc::new(Mutex::new(Slot {
                operator: None,
                stop: None,
                pokes: None,
            })),
        }
    }

    /// Applies a definition as `kubectl replace` would.
    pub async fn define(&self, mut definition: CustomResourceDefinition) {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = A::Resource::crd_name();
        match crds.get_opt(name).await.expect("a read") {
            None => crds.create(&PostParams::default(), &definition).await,
            Some(old) => {
                definition.metadata.resource_version = old.metadata.resource_version;
                crds.replace(name, &PostParams::default(), &definition)
                    .await
            }
        }
        .expect("the CRD is accepted");
    }

    /// Starts the operator.
    pub fn start(&self) {
        let (poke, pokes) = mpsc::unbounded();
        let client = self.wire.client();
        let mut operator = Operator::new(client, self.app.clone())
            .virtual_time()
            .namespaces(self.options.namespaces.clone())
            .pokes(pokes);
        if let Some(gate) = self.options.gate.clone() {
            operator = operator.gate(gate);
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
            pokes: Some(poke),
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
    pub fn poke(&self, name: &str) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut object = ObjectRef::new(name);
        object.namespace = A::api(self.client.clone()).namespace().map(str::to_owned);
        let pokes = slot.pokes.as_ref().expect("the operator was started");
        pokes.unbounded_send(object).expect("the operator runs");
    }

    /// The objects of the cluster.
    pub fn api(&self) -> Api<A::Resource> {
        A::api(self.client.clone())
    }

    /// The same as JSON, for what does not decode.
    pub fn raw(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<A::Resource>(&());
        match self.api().namespace() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Creates an object with this lifecycle field.
    pub async fn create(&self, name: &str, lifecycle: Value) -> A::Resource {
        let created = self.create_raw(A::object(name, lifecycle)).await;
        serde_json::from_value(serde_json::to_value(created).expect("JSON")).expect("decodes")
    }

    /// Creates an object from JSON.
    pub async fn create_raw(&self, object: Value) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        self.raw()
            .create(&PostParams::default(), &object)
            .await
            .expect("the object is accepted")
    }

    /// Changes the object as `kubectl patch` would.
    pub async fn patch(&self, name: &str, patch: Value) -> DynamicObject {
        self.raw()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("the patch is accepted")
    }

    /// Changes the status as somebody else would.
    pub async fn patch_status(&self, name: &str, status: Value) -> Result<(), kube::Error> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.raw()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
    }

    /// Changes the lifecycle field of the spec.
    pub async fn wish(&self, name: &str, lifecycle: Value) {
        self.patch(name, json!({ "spec": { "lifecycle": lifecycle } }))
            .await;
    }

    /// Sets an annotation.
    pub async fn annotate(&self, name: &str, annotation: &str, value: Option<&str>) {
        self.patch(
            name,
            json!({ "metadata": { "annotations": { annotation: value } } }),
        )
        .await;
    }

    /// Asks for the deletion.
    pub async fn delete(&self, name: &str) {
        self.raw()
            .delete(name, &DeleteParams::default())
            .await
            .expect("the deletion is accepted");
    }

    /// The object; none when it is gone.
    pub async fn get(&self, name: &str) -> Option<A::Resource> {
        self.api().get_opt(name).await.expect("a read")
    }

    /// The position of the object.
    ///
    /// # Panics
    ///
    /// Where it has none.
    pub async fn position(&self, name: &str) -> Position<StateOf<A>> {
        let object = self.get(name).await.expect("the object is there");
        position_of(&object).expect("a position").clone()
    }

    /// A condition of the object.
    pub async fn condition(&self, name: &str, condition: &str) -> Option<Condition> {
        find(&self.get(name).await?, condition).cloned()
    }

    /// A condition of the object as `Status Reason`; empty where there is none.
    pub async fn says(&self, name: &str, condition: &str) -> String {
        self.condition(name, condition)
            .await
            .map_or_else(String::new, |c| format!("{} {}", c.status, c.reason))
    }

    /// Waits until something is so of the object, in tokio time.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        so: impl Fn(&A::Resource) -> bool,
    ) -> A::Resource {
        let mut wait = Duration::from_millis(20);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let object = self.get(name).await;
            if let Some(object) = &object
                && so(object)
            {
                return object.clone();
            }
            assert!(
                tokio::time::Instant::now() <= deadline,
                "waited in vain until {name} {what}: {}",
                pretty(&object)
            );
            tokio::time::sleep(wait).await;
            wait = (wait * 11 / 10).min(Duration::from_secs(1));
        }
    }

    /// Waits until the object is in this state.
    pub async fn until_in(&self, name: &str, state: StateOf<A>) -> A::Resource {
        self.until(name, &format!("is in {}", state.name()), |object| {
            at(object) == Some(state)
        })
        .await
    }

    /// Waits until the object is in this state and ready, for the spec as it is now.
    pub async fn until_ready(&self, name: &str, state: StateOf<A>) -> A::Resource {
        self.until(name, &format!("is ready in {}", state.name()), |object| {
            at(object) == Some(state)
                && find(object, "Ready").is_some_and(|ready| {
                    ready.status == "True" && ready.observed_generation == object.meta().generation
                })
        })
        .await
    }

    /// Waits until the object has this reason in a condition.
    pub async fn until_reason(&self, name: &str, condition: &str, reason: &str) -> Condition {
        let object = self
            .until(name, &format!("says {condition} {reason}"), |object| {
                find(object, condition).is_some_and(|c| c.reason == reason)
            })
            .await;
        find(&object, condition).expect("just seen").clone()
    }

    /// Waits until the object is gone.
    pub async fn until_gone(&self, name: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Some(object) = self.get(name).await {
            assert!(
                tokio::time::Instant::now() <= deadline,
                "waited in vain until {name} is gone: {}",
                pretty(&Some(object))
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The reasons of the events that were published about objects, oldest first.
    pub async fn events(&self) -> Vec<String> {
        use k8s_openapi::api::events::v1::Event;
        let events: Api<Event> = Api::all(self.client.clone());
        let events = events.list(&kube::api::ListParams::default()).await;
        let mut events = events.expect("events").items;
        events.sort_by(|a, b| a.event_time.cmp(&b.event_time));
        (events.into_iter())
            .filter_map(|event| Some(format!("{} {}", event.type_?, event.reason?)))
            .collect()
    }
}

impl<A: Served> Drop for Rig<A> {
    /// Whatever a test is about, no status may break a rule.
    fn drop(&mut self) {
        let rules = Rules::of::<StateOf<A>>();
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

fn position_of<K: LifecycleObject>(object: &K) -> Option<&Position<K::State>> {
    object.status_of()?.lifecycle.as_ref()
}

fn at<K: LifecycleObject>(object: &K) -> Option<K::State> {
    position_of(object)?.state.known()
}

fn find<'a, K: LifecycleObject>(object: &'a K, condition: &str) -> Option<&'a Condition> {
    let conditions = &object.status_of()?.conditions;
    conditions.iter().find(|c| c.type_ == condition)
}

fn pretty(value: &(impl serde::Serialize + Debug)) -> String {
    let mut json = serde_json::to_value(value).unwrap_or_default();
    if let Some(metadata) = json.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_json::to_string_pretty(&json).unwrap_or_else(|_| format!("{value:?}"))
}
