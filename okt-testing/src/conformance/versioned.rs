//! A kind in two versions, and helpers for it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, eventually},
    world::{World, by, listed},
};

pub(super) const ALPHA: &str = "v1alpha1";
pub(super) const BETA: &str = "v1beta1";

/// Returns a CRD of widgets in two versions, both served: only the first has the field `old`, only
/// the second has `new` and `size`.
pub(super) fn crd(world: &World, stored: &str) -> Value {
    let spec = |properties: Value| {
        json!({ "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": properties },
            "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
        } } })
    };
    let text = json!({ "type": "string" });
    let mut crd = world.crd();
    crd["spec"]["versions"] = json!([
        {
            "name": ALPHA, "served": true, "storage": stored == ALPHA,
            "schema": spec(json!({ "color": text, "old": text })),
            "subresources": { "status": {} },
            "selectableFields": [{ "jsonPath": ".spec.old" }],
        },
        {
            "name": BETA, "served": true, "storage": stored == BETA,
            "schema": spec(json!({
                "color": { "type": "string", "maxLength": 5 },
                "new": text,
                "size": { "type": "string", "default": "big" },
            })),
            "subresources": { "status": {} },
            "additionalPrinterColumns": [
                { "name": "New", "type": "string", "jsonPath": ".spec.new" },
            ],
        },
    ]);
    crd
}

/// Returns the same CRD with the same schema in both versions, without defaults.
pub(super) fn duplicates(world: &World, stored: &str) -> Value {
    let mut crd = crd(world, stored);
    crd["spec"]["versions"][1]["schema"] = crd["spec"]["versions"][0]["schema"].clone();
    for version in [0, 1] {
        // A server accepts selectable fields of one version only if it has its own schema.
        crd["spec"]["versions"][version]["selectableFields"] = json!([]);
    }
    crd["spec"]["versions"][1]["additionalPrinterColumns"] = json!([]);
    crd
}

/// Returns a world with widgets in both versions.
pub(super) async fn with(world: &World, crd: fn(&World, &str) -> Value) -> Result<World, Failure> {
    let world = world.own_group();
    world.create_crd(crd(&world, ALPHA)).await?;
    world.established().await?;
    for version in [ALPHA, BETA] {
        served(&world, version).await?;
    }
    Ok(world)
}

pub(super) async fn served(world: &World, version: &str) -> Outcome {
    listed(&widgets(world, version)).await.map(drop)
}

/// Changes the CRD, and waits until the server uses it: then older versions are too old for watches.
pub(super) async fn change(
    world: &World,
    crd: &Value,
) -> Result<CustomResourceDefinition, Failure> {
    let mut crd = crd.clone();
    let now = world.crds().get(&world.crd_name()).await?;
    crd["metadata"]["resourceVersion"] = now.resource_version().into();
    let versions = crd["spec"]["versions"].as_array().given()?.clone();
    let served = versions.iter().find(|version| version["served"] == true);
    let served = served.given()?["name"].as_str().given()?.to_owned();
    let before = listed(&widgets(world, &served)).await?;
    let before = before.metadata.resource_version.given()?;
    let crd = serde_json::from_value(crd)?;
    let changed = world
        .crds()
        .replace(&world.crd_name(), &PostParams::default(), &crd)
        .await?;
    let path = format!(
        "/apis/{}/{served}/widgets?watch=true&timeoutSeconds=1&resourceVersion={before}",
        world.group
    );
    eventually("the kind is served anew", || async {
        let reply = world.send("GET", &path, &[], "").await?;
        let is_gone = reply.code == 410
            || reply
                .lines()?
                .iter()
                .any(|line| line["object"]["code"] == 410);
        Ok(is_gone.then_some(()))
    })
    .await?;
    Ok(changed)
}

pub(super) fn resource(world: &World, version: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(&world.group, version, "Widget");
    ApiResource::from_gvk_with_plural(&kind, "widgets")
}

pub(super) fn widgets(world: &World, version: &str) -> Api<DynamicObject> {
    Api::namespaced_with(world.client(), &world.namespace, &resource(world, version))
}

pub(super) fn widget(world: &World, version: &str, name: &str, spec: Value) -> DynamicObject {
    let mut object = DynamicObject::new(name, &resource(world, version));
    object.data = json!({ "spec": null });
    object.data["spec"] = spec;
    object
}

pub(super) async fn create(
    world: &World,
    version: &str,
    name: &str,
    spec: Value,
) -> kube::Result<DynamicObject> {
    let object = widget(world, version, name, spec);
    widgets(world, version)
        .create(&PostParams::default(), &object)
        .await
}

pub(super) async fn merge(
    world: &World,
    version: &str,
    name: &str,
    patch: Value,
) -> kube::Result<DynamicObject> {
    widgets(world, version)
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

pub(super) async fn apply(
    world: &World,
    version: &str,
    name: &str,
    manager: &str,
    spec: Value,
) -> kube::Result<DynamicObject> {
    let object = widget(world, version, name, spec);
    widgets(world, version)
        .patch(name, &by(manager), &Patch::Apply(&object))
        .await
}

pub(super) fn api_version(object: &DynamicObject) -> &str {
    let types = object.types.as_ref();
    types.map_or("", |types| types.api_version.as_str())
}

pub(super) async fn change_at_once(
    world: &World,
    crd: &Value,
) -> kube::Result<CustomResourceDefinition> {
    let patch = json!({ "spec": { "versions": crd["spec"]["versions"] } });
    let params = PatchParams::default();
    world
        .crds()
        .patch(&world.crd_name(), &params, &Patch::Merge(patch))
        .await
}
