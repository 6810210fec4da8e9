//! Behaviors of the types of built-in kinds, as far as operators need them: defaults, field ownership, status writes,
//! generations.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::world::{JSON_PATCH, World, released, version};

fn service() -> Value {
    json!({
        "metadata": { "name": "a" },
        "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] },
    })
}

/// Creates a service, and returns its path with it.
async fn create_service(world: &World) -> (String, Value) {
    let path = world.path_of("v1", "services");
    let made = world.post(&path, &service()).await.ok();
    (format!("{path}/a"), made)
}

/// Creates a deployment, and returns its path with it.
async fn create_deployment(world: &World) -> (String, Value) {
    let object = json!({
        "metadata": { "name": "a", "labels": { "l": "v" } },
        "spec": {
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "one", "image": "x", "args": [] }] },
            },
        },
    });
    let path = world.path_of("apps/v1", "deployments");
    let made = world.post(&path, &object).await.ok();
    (format!("{path}/a"), made)
}

async fn a_service_gets_what_its_type_gives(world: &World) {
    let (_, made) = create_service(world).await;
    let spec = &made["spec"];
    assert_eq!(spec["type"], "ClusterIP");
    assert_eq!(spec["sessionAffinity"], "None");
    assert_eq!(spec["internalTrafficPolicy"], "Cluster");
    assert_eq!(spec["ports"][0]["targetPort"], 80);
    assert_eq!(made["status"], json!({ "loadBalancer": {} }));
}

async fn an_update_of_a_service_need_not_repeat_its_address(world: &World) {
    let (path, mut object) = create_service(world).await;
    object["spec"]["clusterIP"] = Value::Null;
    let replaced = world.put(&path, &object).await.ok();
    assert_eq!(replaced["spec"]["clusterIP"], "None");
}

async fn a_put_creates_a_service(world: &World) {
    let path = format!("{}/a", world.path_of("v1", "services"));
    world.put(&path, &service()).await.ok();
    world.get(&path).await.ok();
}

async fn the_parts_of_a_deployment_are_owned_by_what_is_in_them(world: &World) {
    let (_, made) = create_deployment(world).await;
    let fields = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    let (strategy, template) = (&fields["f:strategy"], &fields["f:template"]);
    let surge = strategy["f:rollingUpdate"].get("f:maxSurge");
    assert!(surge.is_some(), "{strategy}");
    for part in [strategy, template, &template["f:metadata"]] {
        assert!(part.is_object() && part.get(".").is_none(), "{part}");
    }
    let containers = &made["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0].get("args"), None);
}

async fn the_generation_of_a_deployment_counts_its_annotations(world: &World) {
    let (path, _) = create_deployment(world).await;
    let note = |text: &str| json!({ "metadata": { "annotations": { "okt.dev/note": text } } });
    let patched = world.merge_at(&path, &note("one")).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
    let status = format!("{path}/status");
    let patched = world.merge_at(&status, &note("two")).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
    let notes = &patched["metadata"]["annotations"];
    assert_eq!(notes["okt.dev/note"], "two");
}

async fn the_status_of_a_built_in_kind_writes_metadata_too(world: &World) {
    let patch = json!({
        "metadata": { "labels": { "l": "w" }, "finalizers": ["okt.dev/one"] },
    });
    for ((path, _), label) in [
        (create_service(world).await, "w"),
        // The labels of a deployment are not written.
        (create_deployment(world).await, "v"),
    ] {
        let status = format!("{path}/status");
        let patched = world.merge_at(&status, &patch).await.ok();
        let metadata = &patched["metadata"];
        assert_eq!(metadata["labels"]["l"], label);
        assert_eq!(metadata["finalizers"], json!(["okt.dev/one"]));
        world.merge_at(&path, &released()).await.ok();
    }
}

async fn a_second_deletion_may_change_the_propagation(world: &World) {
    world.create_held("a").await;
    world.remove("a").await.ok();
    // A dry run, because a garbage collector could interfere.
    let path = world.at("a?propagationPolicy=Foreground&dryRun=All");
    let marked = world.delete(&path).await.ok();
    let finalizers = json!(["okt.dev/a", "foregroundDeletion"]);
    assert_eq!(marked["metadata"]["finalizers"], finalizers);
}

async fn a_number_with_a_point_is_another_one_each_time(world: &World) {
    let spec = json!({ "free": { "n": 1 } });
    world.create("a", spec.clone()).await.ok();
    for generation in [2, 3] {
        let patch = r#"[{ "op": "add", "path": "/spec/free/n", "value": 1.0 }]"#;
        let patched = world.patch(&world.at("a"), JSON_PATCH, patch).await.ok();
        assert_eq!(patched["metadata"]["generation"], generation);
    }
    assert_eq!(world.read("a").await["spec"]["free"], spec["free"]);
}

async fn a_lease_that_a_dry_run_would_create_keeps_the_version_it_came_with(world: &World) {
    let path = world.path_of("coordination.k8s.io/v1", "leases");
    let lease = json!({ "metadata": { "name": "a", "resourceVersion": "1" }, "spec": {} });
    let made = world.put(&format!("{path}/a?dryRun=All"), &lease).await;
    assert_eq!(made.code, 201);
    assert_eq!(version(&made.ok()), 1);
}

async fn an_apply_that_leaves_no_metadata_must_name_the_object(world: &World) {
    let config = |metadata: Value| {
        let mut config = world.widget("a", json!({}));
        config["metadata"] = metadata;
        config
    };
    let named = config(json!({ "name": "a", "labels": {} }));
    world.apply_at(&world.at("a"), "m", &named).await.ok();
    let unnamed = config(json!({ "finalizers": [] }));
    let refused = world.apply_at(&world.at("a"), "m", &unnamed).await;
    refused.refused(400, "…name must be provided");
}

behaviours! { "types":
    a_service_gets_what_its_type_gives,
    an_update_of_a_service_need_not_repeat_its_address,
    a_put_creates_a_service,
    the_parts_of_a_deployment_are_owned_by_what_is_in_them,
    the_generation_of_a_deployment_counts_its_annotations,
    the_status_of_a_built_in_kind_writes_metadata_too,
    a_second_deletion_may_change_the_propagation,
    a_number_with_a_point_is_another_one_each_time,
    a_lease_that_a_dry_run_would_create_keeps_the_version_it_came_with,
    an_apply_that_leaves_no_metadata_must_name_the_object,
}
