//! Helpers for these tests: a kind with all features, and short calls.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Status};
use kube::{Api, Client};
use okt_apiserver::ApiServer;
use serde_json::{Value, json};

/// Returns the CRD of the widgets, which the conformance suite uses too: with a status, a scale, selectable fields, defaults and rules.
pub(crate) fn widget_crd() -> Value {
    let crd = include_str!("widget.crd.json");
    serde_json::from_str(crd).expect("a CRD")
}

/// Creates a server with the CRD of the widgets, and a client.
pub(crate) async fn server() -> (ApiServer, Client) {
    let server = ApiServer::new();
    let client = server.client();
    create_crd(&client, widget_crd())
        .await
        .expect("the CRD is right");
    (server, client)
}

pub(crate) async fn create_crd(
    client: &Client,
    crd: Value,
) -> kube::Result<CustomResourceDefinition> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = serde_json::from_value(crd).expect("a CRD");
    crds.create(&PostParams::default(), &crd).await
}

pub(crate) fn widget_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("demo.okt.dev", "v1", "Widget"),
        "widgets",
    )
}

pub(crate) fn widgets(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &widget_resource())
}

/// Returns a widget with this spec.
pub(crate) fn widget(name: &str, spec: impl Into<Value>) -> DynamicObject {
    let spec = spec.into();
    DynamicObject::new(name, &widget_resource()).data(json!({ "spec": spec }))
}

pub(crate) async fn create(client: &Client, name: &str, spec: Value) -> DynamicObject {
    try_create(client, name, spec)
        .await
        .expect("the widget is right")
}

pub(crate) async fn try_create(
    client: &Client,
    name: &str,
    spec: Value,
) -> kube::Result<DynamicObject> {
    widgets(client)
        .create(&PostParams::default(), &widget(name, spec))
        .await
}

pub(crate) async fn get(client: &Client, name: &str) -> DynamicObject {
    widgets(client)
        .get(name)
        .await
        .expect("the widget is there")
}

/// Sends a JSON merge patch for a widget.
pub(crate) async fn merge(
    client: &Client,
    name: &str,
    patch: Value,
) -> kube::Result<DynamicObject> {
    widgets(client)
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

/// Sends a JSON patch (RFC 6902) for a widget.
pub(crate) async fn json_patch(
    client: &Client,
    name: &str,
    patch: Value,
) -> kube::Result<DynamicObject> {
    let patch = serde_json::from_value(patch).expect("a JSON patch");
    widgets(client)
        .patch(name, &PatchParams::default(), &Patch::Json::<()>(patch))
        .await
}

/// Applies a status as one manager.
pub(crate) async fn apply_status(
    client: &Client,
    manager: &str,
    name: &str,
    status: Value,
) -> kube::Result<DynamicObject> {
    let patch = json!({ "apiVersion": "demo.okt.dev/v1", "kind": "Widget", "status": status });
    widgets(client)
        .patch_status(name, &PatchParams::apply(manager), &Patch::Apply(patch))
        .await
}

pub(crate) fn version(object: &DynamicObject) -> String {
    object.metadata.resource_version.clone().expect("a version")
}

/// Returns the `Status` of a refused request.
pub(crate) fn refusal<T: std::fmt::Debug>(outcome: kube::Result<T>) -> Status {
    match outcome {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
