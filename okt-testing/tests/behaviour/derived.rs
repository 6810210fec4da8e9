//! Tests a kind that kube derives.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, CustomResource, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{conditions, wait::await_condition},
};
use okt_testing::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A cluster-scoped kind that kube derives.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Planet",
    status = "PlanetStatus"
)]
pub(crate) struct PlanetSpec {
    /// The number of moons.
    moons: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct PlanetStatus {
    phase: Option<String>,
}

#[tokio::test]
async fn a_derived_cluster_scoped_kind_works() {
    let server = ApiServer::new();
    let client = server.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.patch(
        Planet::crd_name(),
        &PatchParams::apply("test"),
        &Patch::Apply(Planet::crd()),
    )
    .await
    .unwrap();
    let established = await_condition(crds, Planet::crd_name(), conditions::is_crd_established());
    established.await.unwrap();
    let planets: Api<Planet> = Api::all(client);
    let mars = Planet::new("mars", PlanetSpec { moons: Some(2) });
    planets.create(&PostParams::default(), &mars).await.unwrap();
    assert_eq!(planets.get("mars").await.unwrap().spec.moons, Some(2));
    let patch = Patch::Merge(json!({ "status": { "phase": "Full" } }));
    let mars = planets
        .patch_status("mars", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(mars.status.unwrap().phase.as_deref(), Some("Full"));
    assert_eq!(mars.metadata.namespace, None);
}
