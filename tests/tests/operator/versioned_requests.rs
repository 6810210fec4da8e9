//! Requests of a kind that gets another version: they have the versions of their kind.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, CustomResource};
use okt::{
    Action, Application, Desired, Failure, LifecycleSpec, Request, Requests, Status,
    lifecycle_graph,
};
use okt_tests::{Objects, Rig, Served, until};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The life of an oven.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OvenState {
    #[entry]
    #[rest(idle)]
    #[child(Baking)]
    #[child(Gone)]
    Hot,
    #[visit(args = BakeArgs)]
    #[child(Hot)]
    Baking,
    #[leaf(idle)]
    Gone,
}

/// What is baked.
#[derive(Request, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[request(kind = "Bake", of = Oven)]
pub(crate) struct BakeArgs {
    cake: String,
}

mod v1alpha1 {
    use super::*;

    /// An oven as it was.
    #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "demo.okt.dev",
        version = "v1alpha1",
        kind = "Oven",
        namespaced,
        status = "Status<OvenState>"
    )]
    pub(crate) struct OvenSpec {
        #[serde(default)]
        pub(crate) lifecycle: Desired<OvenState>,
    }
}

/// An oven.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Oven",
    namespaced,
    status = "Status<OvenState>"
)]
#[lifecycle(previous(v1alpha1::Oven))]
pub(crate) struct OvenSpec {
    #[serde(default)]
    lifecycle: Desired<OvenState>,
}

/// Bakes; `baked` has the cakes.
#[derive(Clone, Default)]
struct Ovens {
    baked: Arc<Mutex<Vec<String>>>,
}

impl OvenStateHandler for Ovens {
    type Context = Action<Oven>;
    type Error = Failure;

    async fn baking(
        &self,
        _: &Action<Oven>,
        args: &BakeArgs,
    ) -> Result<oven_state::AfterBaking, Failure> {
        self.baked.lock().push(args.cake.clone());
        Ok(oven_state::AfterBaking::Hot)
    }
}

impl Application for Ovens {
    type Resource = Oven;

    fn requests(requests: Requests<Oven>) -> Requests<Oven> {
        requests.serves::<Bake>()
    }
}

impl Served for Ovens {}

fn bakes(client: Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("demo.okt.dev", version, "Bake");
    Api::default_namespaced_with(client, &ApiResource::from_gvk(&kind))
}

async fn ask(bakes: &Api<DynamicObject>, version: &str, cake: &str) {
    let request = json!({
        "apiVersion": format!("demo.okt.dev/{version}"), "kind": "Bake",
        "metadata": { "name": cake }, "spec": { "target": { "name": "a" }, "args": { "cake": cake } },
    });
    let request = serde_json::from_value(request).expect("a request");
    let made = bakes.create(&PostParams::default(), &request).await;
    made.expect("it is created");
}

#[tokio::test(start_paused = true)]
async fn requests_have_the_versions_of_their_kind_and_are_served_in_each() {
    let rig = Rig::<Ovens>::without_operator_of().await;
    let client = rig.server.client();
    let kinds = Ovens::requests(Requests::default()).kinds;
    let present = kinds[0].crds().expect("CRDs").remove(0);
    let versions = present.spec.versions.iter();
    let versions: Vec<_> = versions
        .map(|it| (&*it.name, it.served, it.storage))
        .collect();
    assert_eq!(versions, [("v1", true, true), ("v1alpha1", true, false)]);
    // They differ in nothing, so nobody has to convert.
    assert_eq!(present.spec.conversion, None);

    // As the release before has left it: there was one version, in which a request is stored.
    let mut before = present.clone();
    before.spec.versions.remove(0);
    before.spec.versions[0].storage = true;
    rig.of::<CustomResourceDefinition>()
        .make(json!(before))
        .await;
    let old = bakes(client.clone(), "v1alpha1");
    ask(&old, "v1alpha1", "plum").await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let versions = Patch::Merge(json!({ "spec": { "versions": present.spec.versions } }));
    let params = PatchParams::default();
    let changed = definitions.patch("bakes.demo.okt.dev", &params, &versions);
    changed.await.expect("the API server takes it");

    rig.create("a", json!({})).await;
    rig.start();
    ask(&old, "v1alpha1", "apple").await;
    ask(&bakes(client, "v1"), "v1", "pear").await;
    until("all is baked", async || rig.app.baked.lock().len() == 2).await;
    // It was there before its oven.
    let plum = old.get("plum").await.expect("it is there");
    let reason = &plum.data["status"]["conditions"][0]["reason"];
    assert_eq!(*reason, "NotReplayed");
    let seen = old.get("pear").await.expect("it is there");
    let version = seen.types.expect("a type").api_version;
    assert_eq!(version, "demo.okt.dev/v1alpha1");
}
