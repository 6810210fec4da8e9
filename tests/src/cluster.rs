//! This file provides a cluster on any server, with helpers that read, change and await objects.
#![expect(
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, CustomResourceExt, Resource};
use okt::{Application, Lifecycle, LifecycleObject, Position, StateOf};
use serde_json::{Value, json};

/// An application that a test can serve.
pub trait Served: Application + Clone + Default {
    /// The API of its kind.
    fn api(client: Client) -> Api<Self::Resource>;

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

    /// Patches an object as `kubectl patch` does.
    pub async fn patch(&self, name: &str, patch: Value) -> DynamicObject {
        self.raw()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("the patch is accepted")
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
        self.raw()
            .delete(name, &DeleteParams::default())
            .await
            .expect("the deletion is accepted");
    }

    /// Returns the object; `None` if it is gone.
    pub async fn get(&self, name: &str) -> Option<A::Resource> {
        self.api().get_opt(name).await.expect("a read")
    }

    /// Returns the position of the object.
    ///
    /// # Panics
    ///
    /// If the object has no position.
    pub async fn position(&self, name: &str) -> Position<StateOf<A>> {
        let object = self.get(name).await.expect("the object is there");
        position_of(&object).expect("a position").clone()
    }

    /// Returns a condition of the object.
    pub async fn condition(&self, name: &str, condition: &str) -> Option<Condition> {
        find(&self.get(name).await?, condition).cloned()
    }

    /// Returns a condition of the object as `Status Reason`; empty if there is none.
    pub async fn says(&self, name: &str, condition: &str) -> String {
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
        let events: Api<Event> = Api::all(self.client.clone());
        let events = events.list(&kube::api::ListParams::default()).await;
        let mut events = events.expect("events").items;
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
