//! A kind in two versions: each has a [`World`] of its own.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::world::{World, eventually, version};

pub(crate) const ALPHA: &str = "v1alpha1";
pub(crate) const BETA: &str = "v1beta1";

/// Returns a CRD of widgets in two versions, both served: only the first has the field `old`, only the second has `new`
/// and `size`.
pub(crate) fn crd(world: &World, stored: &str) -> Value {
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
pub(crate) fn duplicates(world: &World, stored: &str) -> Value {
    let mut crd = crd(world, stored);
    crd["spec"]["versions"][1]["schema"] = crd["spec"]["versions"][0]["schema"].clone();
    for version in [0, 1] {
        // A server accepts selectable fields of one version only if it has its own schema.
        crd["spec"]["versions"][version]["selectableFields"] = json!([]);
    }
    crd["spec"]["versions"][1]["additionalPrinterColumns"] = json!([]);
    crd
}

/// Returns a world for each of both versions.
pub(crate) async fn with(world: &World, crd: fn(&World, &str) -> Value) -> [World; 2] {
    let world = world.own_group();
    world.create_crd(&crd(&world, ALPHA)).await.ok();
    world.established().await;
    let both = [ALPHA, BETA].map(|version| world.in_version(version));
    for world in &both {
        world.served().await;
    }
    both
}

/// Changes the versions of a CRD.
pub(crate) async fn change_at_once(world: &World, crd: &Value) -> Reply {
    let patch = json!({ "spec": { "versions": crd["spec"]["versions"] } });
    world.merge_at(&world.crd_path(), &patch).await
}

/// Changes the versions of a CRD, and waits until the server uses it: then older versions are too old for watches of
/// this one, which stays. Returns the new CRD.
pub(crate) async fn change(world: &World, crd: &Value) -> Value {
    let before = version(&world.served().await);
    let changed = change_at_once(world, crd).await.ok();
    let path = format!(
        "/apis/{}/widgets?watch=true&timeoutSeconds=1&resourceVersion={before}",
        world.api_version()
    );
    eventually("the kind is served anew", async || {
        let reply = world.get(&path).await;
        let is_old = |line: Value| line["object"]["code"] == 410;
        let is_anew = reply.code == 410 || reply.lines().into_iter().any(is_old);
        is_anew.then_some(())
    })
    .await;
    changed
}
