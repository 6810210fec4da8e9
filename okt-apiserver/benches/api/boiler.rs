//! The kind of the benchmark: typical of a plain operator, 1.5 KiB as JSON.

use std::time::Duration;

use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Api, Client, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const CRD: &str = "boilers.bench.okt.dev";

/// The spec; the schema is in [`crd`].
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bench.okt.dev",
    version = "v1",
    kind = "Boiler",
    namespaced,
    status = "BoilerStatus"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BoilerSpec {
    litres: u32,
    degrees: u32,
    site: String,
    contact: String,
}

/// The status that the operator applies.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BoilerStatus {
    observed_generation: i64,
    lifecycle: Lifecycle,
    conditions: Vec<Condition>,
}

/// The lifecycle state of the boiler.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Lifecycle {
    state: String,
    since: String,
    transition: u64,
}

/// A condition as Kubernetes writes it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    observed_generation: i64,
    last_transition_time: String,
}

/// Returns a CRD with limits, a list that is merged by key, and a transition rule.
fn crd() -> Value {
    let text = |limit: u32| json!({ "type": "string", "maxLength": limit });
    let condition = json!({
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": { "type": "string", "maxLength": 316, "pattern": "^[A-Za-z0-9./-]+$" },
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "reason": text(1024),
            "message": text(32768),
            "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
            "lastTransitionTime": { "type": "string", "format": "date-time" },
        },
    });
    let edges = "{'Heating': ['Hot'], 'Hot': ['Heating']}";
    let rule = format!(
        "self.state == oldSelf.state || (oldSelf.state in {edges} && self.state in {edges}[oldSelf.state])"
    );
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": CRD },
        "spec": {
            "group": "bench.okt.dev",
            "scope": "Namespaced",
            "names": { "plural": "boilers", "singular": "boiler", "kind": "Boiler" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["litres"],
                            "properties": {
                                "litres": { "type": "integer", "minimum": 1, "maximum": 10000 },
                                "degrees": { "type": "integer", "default": 60 },
                                "site": text(100),
                                "contact": text(100),
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": {
                                "observedGeneration": { "type": "integer", "format": "int64" },
                                "lifecycle": {
                                    "type": "object",
                                    "required": ["state"],
                                    "properties": {
                                        "state": text(63),
                                        "since": { "type": "string", "format": "date-time" },
                                        "transition": { "type": "integer" },
                                    },
                                    "x-kubernetes-validations": [{
                                        "rule": rule,
                                        "message": "no such edge",
                                    }],
                                },
                                "conditions": {
                                    "type": "array",
                                    "maxItems": 16,
                                    "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["type"],
                                    "items": condition,
                                },
                            },
                        },
                    },
                } },
            }],
        },
    })
}

/// Applies the CRD and waits until the kind can be listed.
pub(crate) async fn declare(client: &Client) -> kube::Result<()> {
    let owner = PatchParams::apply("bench").force();
    let patch = Patch::Apply(crd());
    crds(client).patch(CRD, &owner, &patch).await?;
    let boilers: Api<Boiler> = Api::default_namespaced(client.clone());
    let everything = ListParams::default();
    for _ in 0..1000 {
        if boilers.list(&everything).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    boilers.list(&everything).await.map(drop)
}

/// Deletes the CRD, and all its objects with it.
pub(crate) async fn forget(client: &Client) -> kube::Result<()> {
    let crds = crds(client);
    crds.delete(CRD, &DeleteParams::default()).await.map(drop)
}

fn crds(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// Creates a boiler as a user does.
pub(crate) async fn create(boilers: &Api<Boiler>, name: &str) -> kube::Result<Boiler> {
    let mut boiler = Boiler::new(
        name,
        BoilerSpec {
            litres: 200,
            degrees: 65,
            site: "Cellar of the old town hall".to_owned(),
            contact: "caretaker@town.example".to_owned(),
        },
    );
    let metadata = &mut boiler.metadata;
    metadata.labels = Some([("town".to_owned(), "springfield".to_owned())].into());
    metadata.annotations = Some([("bench.okt.dev/chimney".to_owned(), "north".to_owned())].into());
    boilers.create(&PostParams::default(), &boiler).await
}

/// Applies the status that follows the last one, on the version that was acted upon.
pub(crate) async fn step(boilers: &Api<Boiler>, last: &Boiler) -> kube::Result<Boiler> {
    let transition = match &last.status {
        Some(status) => status.lifecycle.transition + 1,
        None => 0,
    };
    let hot = transition % 2 == 1;
    let since = format!(
        "2026-11-21T10:{:02}:{:02}Z",
        transition / 60 % 60,
        transition % 60
    );
    let status = BoilerStatus {
        observed_generation: last.metadata.generation.unwrap_or_default(),
        lifecycle: Lifecycle {
            state: if hot { "Hot" } else { "Heating" }.to_owned(),
            since: since.clone(),
            transition,
        },
        conditions: vec![Condition {
            r#type: "Ready".to_owned(),
            status: if hot { "True" } else { "False" }.to_owned(),
            reason: if hot { "Hot" } else { "Heating" }.to_owned(),
            message: "the water is watched by the bench".to_owned(),
            observed_generation: last.metadata.generation.unwrap_or_default(),
            last_transition_time: since,
        }],
    };
    let applied = json!({
        "apiVersion": "bench.okt.dev/v1",
        "kind": "Boiler",
        "metadata": { "resourceVersion": last.metadata.resource_version },
        "status": status,
    });
    let operator = PatchParams::apply("boiler-operator").force();
    let name = last.metadata.name.as_deref().unwrap_or_default();
    boilers
        .patch_status(name, &operator, &Patch::Apply(&applied))
        .await
}
