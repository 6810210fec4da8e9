//! A cluster on any server, with helpers that read, change and await objects.
#![expect(
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, NamespaceResourceScope};
use kube::{Api, Client, CustomResourceExt, Resource};
use okt::{
    ABANDON_ANNOTATION, Application, Lifecycle, LifecycleObject, PAUSED_ANNOTATION, Position,
    StateOf, VisitOutcome,
};
use serde_json::{Value, json};

use crate::objects::{Objects, Scoped};

/// An application that a test can serve.
pub trait Served: Application<Resource: Resource<Scope: Scoped>> + Clone + Default {
    /// The API of its kind.
    fn api(client: Client) -> Api<Self::Resource> {
        Scoped::api(client)
    }

    /// Returns an object with this lifecycle field.
    fn object(name: &str, lifecycle: Value) -> Value {
        json!({
            "apiVersion": Self::Resource::api_version(&()),
            "kind": Self::Resource::kind(&()),
            "metadata": { "name": name },
            "spec": { "lifecycle": lifecycle },
        })
    }
}

/// A cluster, as the users of an application see it.
pub struct Cluster<A: Served> {
    /// A client that is not the operator's.
    pub client: Client,
    /// The maximum wait for a condition, in tokio time.
    pub patience: Duration,
    of: PhantomData<fn() -> A>,
}

impl<A: Served> Cluster<A> {
    /// Creates a cluster from a client.
    pub fn new(client: Client, patience: Duration) -> Self {
        Self {
            client,
            patience,
            of: PhantomData,
        }
    }

    /// Applies a CRD as `kubectl replace` does.
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
        let deadline = tokio::time::Instant::now() + self.patience;
        loop {
            let crd = crds.get(name).await.expect("it is there");
            let status = serde_json::to_value(crd.status).expect("JSON");
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let is = |c: &Value| c["type"] == "Established" && c["status"] == "True";
            if conditions.into_iter().any(is) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{name} is not served"
            );
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Returns the API of the objects.
    pub fn api(&self) -> Api<A::Resource> {
        A::api(self.client.clone())
    }

    /// Returns the API of the objects as JSON, for objects that do not decode.
    pub fn raw(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<A::Resource>(&());
        match self.api().namespace() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Returns the API of another kind: in the default namespace, or of all objects if the kind has no namespaces.
    pub fn of<K: Resource<DynamicType = (), Scope: Scoped>>(&self) -> Api<K> {
        Scoped::api(self.client.clone())
    }

    /// Returns the API of another kind in a namespace.
    pub fn within<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates a namespace.
    pub async fn create_namespace(&self, name: &str) {
        let namespace = json!({ "metadata": { "name": name } });
        self.of::<Namespace>().make(namespace).await;
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

    /// Creates an object with these fields of the spec.
    pub async fn create_with(&self, name: &str, spec: Value) {
        let mut object = A::object(name, json!({}));
        let spec = spec.as_object().cloned().expect("a spec");
        object["spec"].as_object_mut().expect("a spec").extend(spec);
        self.create_raw(object).await;
    }

    /// Creates an object without a desired state, and waits until it is in a state.
    pub async fn create_in(&self, name: &str, state: StateOf<A>) -> A::Resource {
        self.create(name, json!({})).await;
        self.until_in(name, state).await
    }

    /// Creates an object without a desired state, and waits until it is ready in a state.
    pub async fn create_ready(&self, name: &str, state: StateOf<A>) -> A::Resource {
        self.create(name, json!({})).await;
        self.until_ready(name, state).await
    }

    /// Creates objects at once, and waits until all of them are ready in a state.
    pub async fn create_all_ready(&self, names: &[impl AsRef<str>], state: StateOf<A>) {
        for name in names {
            self.create(name.as_ref(), json!({})).await;
        }
        for name in names {
            self.until_ready(name.as_ref(), state).await;
        }
    }

    /// Patches an object as `kubectl patch` does.
    pub async fn patch(&self, name: &str, patch: Value) -> DynamicObject {
        self.raw().edit(name, patch).await
    }

    /// Patches the status as another client does.
    pub async fn patch_status(&self, name: &str, status: Value) -> Result<(), kube::Error> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.raw()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
    }

    /// Changes the lifecycle field of the spec.
    pub async fn ask_for(&self, name: &str, lifecycle: Value) {
        self.patch(name, json!({ "spec": { "lifecycle": lifecycle } }))
            .await;
    }

    /// Asks for a visit, with or without a request.
    pub async fn visit<'a>(&self, name: &str, state: &str, request: impl Into<Option<&'a str>>) {
        let mut visit = json!({ "state": state });
        if let Some(request) = request.into() {
            visit["request"] = json!(request);
        }
        self.ask_for(name, json!({ "visit": visit })).await;
    }

    /// Pauses an object.
    pub async fn pause(&self, name: &str) {
        self.annotate(name, PAUSED_ANNOTATION, Some("true")).await;
    }

    /// Ends the pause of an object.
    pub async fn unpause(&self, name: &str) {
        self.annotate(name, PAUSED_ANNOTATION, None).await;
    }

    /// Abandons an object.
    pub async fn abandon(&self, name: &str) {
        let uid = self.raw().read(name).await.metadata.uid;
        self.annotate(name, ABANDON_ANNOTATION, uid.as_deref())
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

    /// Deletes an object.
    pub async fn delete(&self, name: &str) {
        self.raw().remove(name).await;
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn delete_until_gone(&self, name: &str) {
        self.delete(name).await;
        self.until_gone(name).await;
    }

    /// Returns the object; `None` if it is gone.
    pub async fn get(&self, name: &str) -> Option<A::Resource> {
        self.api().get_opt(name).await.expect("a read")
    }

    /// Returns the object.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub async fn object(&self, name: &str) -> A::Resource {
        self.get(name).await.expect("the object is there")
    }

    /// Returns the object as JSON.
    pub async fn json(&self, name: &str) -> Value {
        json!(self.raw().read(name).await)
    }

    /// Returns the key `text` of a `ConfigMap`; `None` if it does not exist.
    pub async fn text(&self, map: &str) -> Option<String> {
        let map = self.of::<ConfigMap>().get_opt(map).await;
        map.expect("a read")?.data?.remove("text")
    }

    /// Returns the position of the object.
    ///
    /// # Panics
    ///
    /// If the object has no position.
    pub async fn position(&self, name: &str) -> Position<StateOf<A>> {
        let object = self.object(name).await;
        position_of(&object).expect("a position").clone()
    }

    /// Returns a condition of the object.
    pub async fn condition(&self, name: &str, condition: &str) -> Option<Condition> {
        find(&self.get(name).await?, condition).cloned()
    }

    /// Returns a condition of the object as `Status Reason`; empty if there is none.
    pub async fn shows(&self, name: &str, condition: &str) -> String {
        self.condition(name, condition)
            .await
            .map_or_else(String::new, |c| format!("{} {}", c.status, c.reason))
    }

    /// Waits until the object meets a condition, in tokio time.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        so: impl Fn(&A::Resource) -> bool,
    ) -> A::Resource {
        let mut wait = Duration::from_millis(20);
        let deadline = tokio::time::Instant::now() + self.patience;
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

    /// Waits until the object is in this state and ready for its current spec.
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

    /// Waits until the object has this reason in a condition whose message contains a text.
    pub async fn until_message(&self, name: &str, condition: &str, reason: &str, part: &str) {
        let condition = self.until_reason(name, condition, reason).await;
        assert_contains(&condition.message, part);
    }

    /// Waits until the position of the object meets a condition.
    pub async fn until_position(
        &self,
        name: &str,
        what: &str,
        is_so: impl Fn(&Position<StateOf<A>>) -> bool,
    ) {
        let is_so = |object: &A::Resource| position_of(object).is_some_and(&is_so);
        self.until(name, what, is_so).await;
    }

    /// Waits until the visit that the object asks for was made.
    pub async fn until_visited(&self, name: &str) {
        self.until_position(name, "has made its visit", |position| {
            let visit = position.visit.as_ref();
            visit.is_some_and(|visit| visit.outcome == VisitOutcome::Reached)
        })
        .await;
    }

    /// Waits until the object is gone.
    pub async fn until_gone(&self, name: &str) {
        let deadline = tokio::time::Instant::now() + self.patience;
        while let Some(object) = self.get(name).await {
            assert!(
                tokio::time::Instant::now() <= deadline,
                "waited in vain until {name} is gone: {}",
                pretty(&Some(object))
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for this time.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Returns the reasons of all events, oldest first.
    pub async fn events(&self) -> Vec<String> {
        let events = self.events_in_order().await.into_iter();
        events
            .filter_map(|event| Some(format!("{} {}", event.type_?, event.reason?)))
            .collect()
    }

    /// Returns the notes of all events, in order.
    pub async fn notes(&self) -> Vec<String> {
        let events = self.events_in_order().await.into_iter();
        events.filter_map(|event| event.note).collect()
    }

    async fn events_in_order(&self) -> Vec<Event> {
        let api: Api<Event> = Api::all(self.client.clone());
        let list = api.list(&kube::api::ListParams::default()).await;
        let mut events = list.expect("events").items;
        events.sort_by(|a, b| a.event_time.cmp(&b.event_time));
        events
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

/// Checks that a text contains another one.
#[track_caller]
pub fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in {text}");
}

/// Checks that less than this time has passed.
#[track_caller]
pub fn assert_within(begun: tokio::time::Instant, limit: Duration) {
    let took = begun.elapsed();
    assert!(took < limit, "{took:?}");
}

/// Returns the names `prefix-0`, `prefix-1` and so on.
pub fn numbered(prefix: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{prefix}-{number}")).collect()
}
