//! This file tests what is made of CRDs.

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, CustomResource, CustomResourceExt, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchParams},
    runtime::{conditions, wait::await_condition},
};
use okt_testing::ApiServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{
    apply_crd, create, create_crd, refusal, server, widget, widget_crd, widget_resource, widgets,
};

/// A kind of the cluster, as kube derives it.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Planet",
    status = "PlanetStatus"
)]
pub(crate) struct PlanetSpec {
    /// How many moons there are.
    moons: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct PlanetStatus {
    phase: Option<String>,
}

#[tokio::test]
async fn a_derived_kind_of_the_cluster_works() {
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

#[tokio::test]
async fn an_unknown_kind_is_404() {
    let client = ApiServer::new().client();
    let status = refusal(widgets(&client).get("a").await);
    assert_eq!(status.code, 404);
    assert_eq!(
        status.message,
        "the server could not find the requested resource"
    );
}

#[tokio::test]
async fn a_kind_goes_with_its_crd() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    let api = widgets(&client);
    let from = made.resource_version().unwrap();
    let watch = api.watch(&WatchParams::default(), &from).await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.delete("widgets.demo.okt.dev", &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(refusal(widgets(&client).get("a").await).code, 404);
    assert!(
        crds.get_opt("widgets.demo.okt.dev")
            .await
            .unwrap()
            .is_none()
    );
    let events: Vec<_> = watch.collect().await;
    assert_eq!(events.len(), 1, "DELETED, and the end");
}

#[tokio::test]
async fn a_crd_waits_for_the_finalizers_of_its_objects() {
    let (_server, client) = server().await;
    let mut object = widget("a", json!({}));
    object.metadata.finalizers = Some(vec!["okt.dev/a".to_owned()]);
    widgets(&client)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.delete("widgets.demo.okt.dev", &DeleteParams::default())
        .await
        .unwrap();
    let crd = crds.get("widgets.demo.okt.dev").await.unwrap();
    assert!(crd.metadata.deletion_timestamp.is_some());
    let outcome = widgets(&client)
        .create(&PostParams::default(), &widget("b", json!({})))
        .await;
    assert_eq!(refusal(outcome).code, 405);
    crate::support::merge(&client, "a", json!({ "metadata": { "finalizers": null } }))
        .await
        .unwrap();
    assert!(
        crds.get_opt("widgets.demo.okt.dev")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn an_identical_apply_of_a_crd_changes_nothing() {
    let server = ApiServer::new();
    let client = server.client();
    let first = apply_crd(&client, widget_crd()).await.unwrap();
    let second = apply_crd(&client, widget_crd()).await.unwrap();
    assert_eq!(first.resource_version(), second.resource_version());
}

#[tokio::test]
async fn a_schema_that_is_not_structural_is_422() {
    let client = ApiServer::new().client();
    let refused = async |path: &str, value: serde_json::Value| {
        let mut crd = widget_crd();
        *crd.pointer_mut(path).unwrap() = value;
        let status = refusal(create_crd(&client, crd).await);
        assert_eq!(status.code, 422, "{}", status.message);
        status.message
    };
    let color = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color";
    let message = refused(color, json!({})).await;
    assert!(
        message.contains("spec.validation.openAPIV3Schema.properties[spec].properties[color].type: Required value"),
        "{message}"
    );
    let message = refused(color, json!({ "type": "string", "default": 5 })).await;
    assert!(message.contains("must be of type string"), "{message}");
    let message = refused(color, json!({ "type": "string", "pattern": "(" })).await;
    assert!(
        message.contains("must be a valid regular expression"),
        "{message}"
    );
    let message = refused(color, json!({ "type": "text" })).await;
    assert!(message.contains("Unsupported value: \"text\""), "{message}");
    let keys = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/x-kubernetes-list-map-keys";
    let message = refused(keys, json!(["reason"])).await;
    assert!(
        message.contains("must have a default or be a required property"),
        "{message}"
    );
    let message = refused("/metadata/name", json!("others.demo.okt.dev")).await;
    assert!(message.contains("must be spec.names.plural"), "{message}");
}

#[tokio::test]
async fn what_is_not_served_says_so() {
    let client = ApiServer::new().client();
    let mut crd = widget_crd();
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    let status = refusal(create_crd(&client, crd).await);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (501, "NotImplemented")
    );
    assert!(
        status.message.contains("more than one served version"),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn a_rule_that_the_library_cannot_evaluate_is_501() {
    let client = ApiServer::new().client();
    let mut crd = widget_crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{ "rule": "type(self.replicas) == int" }]);
    let status = refusal(create_crd(&client, crd).await);
    assert_eq!(status.code, 501);
    assert!(status.message.contains("uses 'type'"), "{}", status.message);
}

#[tokio::test]
async fn the_scope_of_a_kind_cannot_change() {
    let (_server, client) = server().await;
    let mut crd = widget_crd();
    crd["spec"]["scope"] = "Cluster".into();
    assert_eq!(refusal(apply_crd(&client, crd).await).code, 422);
}

#[tokio::test]
async fn a_kind_of_the_cluster_has_no_namespace() {
    let server = ApiServer::new();
    let client = server.client();
    let mut crd = widget_crd();
    crd["spec"]["scope"] = "Cluster".into();
    create_crd(&client, crd).await.unwrap();
    assert_eq!(refusal(widgets(&client).get("a").await).code, 404);
    let api: Api<DynamicObject> = Api::all_with(client, &widget_resource());
    let made = api
        .create(&PostParams::default(), &widget("a", json!({})))
        .await
        .unwrap();
    assert_eq!(made.namespace(), None);
}
