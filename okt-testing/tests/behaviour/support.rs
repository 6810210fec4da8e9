//! This file holds what the tests of this crate share: a kind with everything, and short words.

use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, Status},
};
use okt_testing::ApiServer;
use serde_json::{Value, json};

/// A CRD with a status, a scale, selectable fields, defaults and rules.
pub(crate) fn widget_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.demo.okt.dev" },
        "spec": {
            "group": "demo.okt.dev",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{ "jsonPath": ".spec.color" }],
                "additionalPrinterColumns": [
                    { "name": "Phase", "type": "string", "jsonPath": ".status.phase" },
                    { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                    { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1 },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "schema": { "openAPIV3Schema": widget_schema() },
            }],
        },
    })
}

fn widget_schema() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "color": { "type": "string", "enum": ["red", "green", "blue"] },
                    "replicas": { "type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 1 },
                    "minReplicas": { "type": "integer" },
                    "name": { "type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5 },
                    "started": { "type": "string", "format": "date-time" },
                    "port": { "x-kubernetes-int-or-string": true },
                    "maybe": { "type": "string", "nullable": true },
                    "tags": { "type": "array", "x-kubernetes-list-type": "set", "maxItems": 3, "items": { "type": "string" } },
                    "plain": { "type": "array", "items": { "type": "string" } },
                    "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                    "whole": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
                    },
                    "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "template": { "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
                    "either": {
                        "type": "object",
                        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
                        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
                    },
                    "fixed": { "type": "string", "maxLength": 20, "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "fixed is immutable" }] },
                },
                "x-kubernetes-validations": [
                    { "rule": "!has(self.minReplicas) || self.minReplicas <= self.replicas", "messageExpression": "self.minReplicas > 2 ? 'at least three' : 'at least that'" },
                ],
            },
            "status": {
                "type": "object",
                "default": { "observedGeneration": -1 },
                "properties": {
                    "observedGeneration": { "type": "integer" },
                    "phase": { "type": "string", "maxLength": 20 },
                    "replicas": { "type": "integer" },
                    "selector": { "type": "string" },
                    "conditions": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                        "items": {
                            "type": "object",
                            "required": ["type", "status"],
                            "properties": {
                                "type": { "type": "string" },
                                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                                "reason": { "type": "string" },
                                "message": { "type": "string" },
                            },
                        },
                    },
                    "lifecycle": {
                        "type": "object",
                        "required": ["state"],
                        "properties": {
                            "state": { "type": "string", "maxLength": 63 },
                            "transition": { "type": "integer" },
                            "jumps": { "type": "integer", "default": 0 },
                        },
                        "x-kubernetes-validations": [
                            {
                                "rule": "oldSelf.hasValue() || self.state == 'Start' || self.jumps > 0",
                                "optionalOldSelf": true,
                                "reason": "FieldValueForbidden",
                                "message": "the first state is the entry",
                            },
                            {
                                "rule": "self.state == oldSelf.state || self.jumps > oldSelf.jumps || (oldSelf.state in {'Start':['Running'],'Running':['End']} && self.state in {'Start':['Running'],'Running':['End']}[oldSelf.state])",
                                "reason": "FieldValueForbidden",
                                "messageExpression": "'no edge from ' + oldSelf.state + ' to ' + self.state",
                            },
                        ],
                    },
                },
                "x-kubernetes-validations": [
                    { "rule": "!has(oldSelf.lifecycle) || has(self.lifecycle)", "message": "lifecycle is kept" },
                ],
            },
        },
    })
}

/// A server that knows widgets, and a client of it.
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

/// Applies a CRD, by force.
pub(crate) async fn apply_crd(
    client: &Client,
    crd: Value,
) -> kube::Result<CustomResourceDefinition> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = crd["metadata"]["name"].as_str().expect("a name").to_owned();
    let params = PatchParams::apply("test").force();
    crds.patch(&name, &params, &Patch::Apply(crd)).await
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

/// A widget of this spec.
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

pub(crate) async fn replace(
    client: &Client,
    object: &DynamicObject,
) -> kube::Result<DynamicObject> {
    let name = object.metadata.name.as_deref().expect("a name");
    widgets(client)
        .replace(name, &PostParams::default(), object)
        .await
}

/// Lays a JSON merge patch over a widget.
pub(crate) async fn merge(
    client: &Client,
    name: &str,
    patch: Value,
) -> kube::Result<DynamicObject> {
    widgets(client)
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

/// Lays a JSON merge patch over the status of a widget.
pub(crate) async fn merge_status(
    client: &Client,
    name: &str,
    patch: Value,
) -> kube::Result<DynamicObject> {
    widgets(client)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

/// Patches a widget by RFC 6902.
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

/// Applies a spec as one manager.
pub(crate) async fn apply_spec(
    client: &Client,
    params: &PatchParams,
    name: &str,
    spec: Value,
) -> kube::Result<DynamicObject> {
    let patch = json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Widget",
        "metadata": { "name": name },
        "spec": spec,
    });
    widgets(client)
        .patch(name, params, &Patch::Apply(patch))
        .await
}

pub(crate) fn version(object: &DynamicObject) -> String {
    object.metadata.resource_version.clone().expect("a version")
}

/// What the API refused.
pub(crate) fn refusal<T: std::fmt::Debug>(outcome: kube::Result<T>) -> Status {
    match outcome {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) async fn create_namespace(client: &Client, name: &str) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .expect("the namespace is new");
}
