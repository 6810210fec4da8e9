//! These tests run operators against one real API server, one test at a time.

mod cel;
mod manifests;
mod memory;
mod nested;
mod passes;
mod policy;
mod preview;
mod refused;
mod requests;
mod resources;
mod sharing;
mod silence;
mod transitions;
mod upgrades;

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use okt::crd;
use okt_testing::Kubernetes;
use okt_tests::rollout::{Place, Working};
use okt_tests::{Cluster, Objects, Served, until};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

/// The maximum wait for a condition.
const PATIENCE: Duration = Duration::from_mins(10);

/// The server; it outlives every test, but not the process.
static SERVER: OnceCell<Option<Kubernetes>> = OnceCell::const_new();

/// Serializes the tests, because they define the same kinds.
static TURN: Mutex<()> = Mutex::const_new(());

/// Runs a test on the server, and deletes its CRDs, even if it panics.
async fn on_kubernetes(what: &str, test: impl AsyncFnOnce(Place)) {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_test_writer()
        .try_init();
    let _turn = TURN.lock().await;
    let start = async || Kubernetes::start_or_skip(what).await.expect("a server");
    let Some(server) = SERVER.get_or_init(start).await else {
        return;
    };
    let place = Place {
        client: server.client(),
        patience: PATIENCE,
        virtual_time: false,
    };
    clean(&place.client).await;
    let ended = AssertUnwindSafe(test(place.clone())).catch_unwind().await;
    clean(&place.client).await;
    if let Err(panic) = ended {
        resume_unwind(panic);
    }
}

/// An application whose operator runs against the server; it is killed when this value is dropped.
struct Scene<A: Served> {
    place: Place,
    cluster: Cluster<A>,
    app: A,
    working: Working,
}

impl<A: Served> Deref for Scene<A> {
    type Target = Cluster<A>;

    fn deref(&self) -> &Cluster<A> {
        &self.cluster
    }
}

impl<A: Served> Scene<A> {
    /// Defines the kind, and starts the operator of an application that is prepared like this.
    async fn set(place: &Place, prepare: impl FnOnce(&A)) -> Self {
        let cluster: Cluster<A> = place.cluster();
        cluster.define(crd::<A::Resource>().expect("a CRD")).await;
        let app = A::default();
        prepare(&app);
        Self {
            working: place.operate(app.clone()),
            place: place.clone(),
            cluster,
            app,
        }
    }

    /// Kills the operator, and starts it again.
    async fn restart(&mut self) {
        let operator = self.place.operate(self.app.clone());
        std::mem::replace(&mut self.working, operator).kill().await;
    }
}

/// Deletes the CRDs of these tests with all their objects, whose operators have ended.
async fn clean(client: &Client) {
    let (listing, now) = (ListParams::default(), DeleteParams::default());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let gone = bindings.delete_collection(&now, &listing).await;
    gone.expect("no binding of a policy is left");
    let gone = policies.delete_collection(&now, &listing).await;
    gone.expect("no policy is left");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let all = crds.list(&ListParams::default()).await.expect("a list");
    for crd in all
        .items
        .into_iter()
        .filter(|crd| crd.spec.group == "demo.okt.dev")
    {
        let kind = GroupVersionKind::gvk("demo.okt.dev", "v1", &crd.spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
        let name = crd.metadata.name.expect("a name");
        crds.remove(&name).await;
        until(&format!("{name} is gone"), async || {
            let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            // The kind may be gone already.
            let objects = everywhere.list(&ListParams::default()).await;
            for object in objects.into_iter().flat_map(|list| list.items) {
                let namespace = object.metadata.namespace.unwrap_or_default();
                let api: Api<DynamicObject> =
                    Api::namespaced_with(client.clone(), &namespace, &resource);
                let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
                let name = object.metadata.name.expect("a name");
                let _ = api.patch(&name, &PatchParams::default(), &release).await;
            }
            !crds.has(&name).await
        })
        .await;
    }
}
