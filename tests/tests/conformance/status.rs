//! Behaviors of the status subresource.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::world::{World, owned, version};

async fn a_status_is_applied_and_accounted_for(world: &World) {
    world.create("a", json!({})).await.ok();
    let status = json!({ "phase": "Up" });
    let applied = world.apply_status("boss", "a", status).await.ok();
    assert_eq!(applied["status"]["phase"], "Up");
    let entries = applied["metadata"]["managedFields"].as_array();
    let mut entries = entries.expect("a list").iter();
    let entry = entries.find(|entry| entry["manager"] == "boss");
    let entry = entry.expect("an entry");
    assert_eq!(entry["operation"], "Apply");
    assert_eq!(entry["subresource"], "status");
    assert_eq!(entry["apiVersion"], world.api_version());
    assert_eq!(owned(&applied, "boss"), ["f:status/f:phase"]);
}

async fn status_is_ignored_on_the_main_endpoint(world: &World) {
    world.create("a", json!({})).await.ok();
    world.set_status("a", json!({ "phase": "Up" })).await.ok();
    let patch = json!({ "spec": { "color": "red" }, "status": { "phase": "Down" } });
    let patched = world.merge("a", patch).await.ok();
    assert_eq!(patched["status"]["phase"], "Up");
    assert_eq!(patched["spec"]["color"], "red");
}

async fn spec_is_ignored_on_the_status_endpoint(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let patch = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "color": "blue" },
        "status": { "phase": "Up" },
    });
    let patched = world.merge_at(&world.at("a/status"), &patch).await.ok();
    assert_eq!(patched["spec"]["color"], "red");
    assert_eq!(patched["status"]["phase"], "Up");
    assert_eq!(patched["metadata"].get("labels"), None);
    assert_eq!(patched["metadata"]["generation"], 1);
}

async fn a_status_of_nothing_is_404(world: &World) {
    let status = json!({ "phase": "Up" });
    let applied = world.apply_status("m", "a", status).await;
    applied.refused(404, "…");
    world.set_status("a", json!({})).await.refused(404, "…");
}

async fn a_stale_write_of_status_is_409(world: &World) {
    let mut old = world.create("a", json!({})).await.ok();
    world.set_status("a", json!({ "phase": "One" })).await.ok();
    old["status"] = json!({ "phase": "Two" });
    let path = world.at("a/status");
    world.put(&path, &old).await.refused(409, "…");
    let resource_version = &old["metadata"]["resourceVersion"];
    let patch = json!({
        "metadata": { "resourceVersion": resource_version },
        "status": { "phase": "Two" },
    });
    world.merge_at(&path, &patch).await.refused(409, "…");
}

async fn a_status_is_dropped_at_creation_and_the_schema_gives_one(world: &World) {
    let mut object = world.widget("a", json!({}));
    object["status"] = json!({ "phase": "Forged" });
    let made = world.post(&world.path(), &object).await.ok();
    let default = json!({ "observedGeneration": -1 });
    assert_eq!(made["status"], default);
    assert_eq!(world.read("a").await["status"], default);
}

async fn a_violation_of_the_schema_in_status_is_422(world: &World) {
    world.create("a", json!({})).await.ok();
    let refused = world.set_status("a", json!({ "replicas": "many" })).await;
    let cause = r#"…status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"…"#;
    let status = refused.refused(422, cause);
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["field"], "status.replicas");
    assert_eq!(cause["reason"], "FieldValueTypeInvalid");
}

/// Applies a phase by force, on the version of an object.
async fn apply_upon(world: &World, object: &Value, phase: &str) -> Reply {
    let config = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "resourceVersion": version(object).to_string() },
        "status": { "phase": phase },
    });
    world
        .apply_at(&world.at("a/status"), "m&force=true", &config)
        .await
}

async fn an_apply_upon_an_old_version_is_409_even_with_force(world: &World) {
    let old = world.create("a", json!({})).await.ok();
    let current = apply_upon(world, &old, "One").await.ok();
    assert_eq!(current["status"]["phase"], "One");
    apply_upon(world, &old, "Two").await.refused(409, "…");
    assert_eq!(world.read("a").await["status"]["phase"], "One");
}

behaviours! { "status":
    a_status_is_applied_and_accounted_for,
    status_is_ignored_on_the_main_endpoint,
    spec_is_ignored_on_the_status_endpoint,
    a_status_of_nothing_is_404,
    a_stale_write_of_status_is_409,
    a_status_is_dropped_at_creation_and_the_schema_gives_one,
    a_violation_of_the_schema_in_status_is_422,
    an_apply_upon_an_old_version_is_409_even_with_force,
}
