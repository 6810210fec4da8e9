//! Behaviours of the status subresource.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;

use super::{
    claim::{Given, Outcome, refusal},
    world::{World, version},
};

async fn a_status_is_applied_and_accounted_for(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let applied = world
        .apply_status("boss", "a", json!({ "phase": "Up" }))
        .await?;
    ensure_eq!(applied.data["status"]["phase"], "Up");
    let entries = applied.metadata.managed_fields.given()?;
    let entry = entries
        .iter()
        .find(|entry| entry.manager.as_deref() == Some("boss"))
        .given()?;
    ensure_eq!(entry.operation.as_deref(), Some("Apply"));
    ensure_eq!(entry.subresource.as_deref(), Some("status"));
    ensure_eq!(
        entry.api_version.as_deref(),
        Some(world.api_version().as_str())
    );
    let fields = &entry.fields_v1.as_ref().given()?.0;
    ensure_eq!(fields, &json!({ "f:status": { "f:phase": {} } }));
    Ok(())
}

async fn status_is_ignored_on_the_main_endpoint(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    world
        .apply_status("m", "a", json!({ "phase": "Up" }))
        .await?;
    let patch = json!({ "spec": { "color": "red" }, "status": { "phase": "Down" } });
    let patched = world.merge("a", patch).await?;
    ensure_eq!(patched.data["status"]["phase"], "Up");
    ensure_eq!(patched.data["spec"]["color"], "red");
    Ok(())
}

async fn spec_is_ignored_on_the_status_endpoint(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let patch = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "color": "blue" },
        "status": { "phase": "Up" },
    });
    let patched = world.merge_status("a", patch).await?;
    ensure_eq!(patched.data["spec"]["color"], "red");
    ensure_eq!(patched.data["status"]["phase"], "Up");
    ensure_eq!(patched.metadata.labels, None);
    ensure_eq!(patched.metadata.generation, Some(1));
    Ok(())
}

async fn a_status_of_nothing_is_404(world: &World) -> Outcome {
    let status = refusal(world.apply_status("m", "a", json!({ "phase": "Up" })).await)?;
    ensure_eq!(status.code, 404);
    ensure_eq!(refusal(world.merge_status("a", json!({})).await)?.code, 404);
    Ok(())
}

async fn a_stale_merge_patch_of_status_is_409(world: &World) -> Outcome {
    let old = world.create("a", json!({})).await?;
    world
        .merge_status("a", json!({ "status": { "phase": "One" } }))
        .await?;
    let patch = json!({
        "metadata": { "resourceVersion": version(&old)? },
        "status": { "phase": "Two" },
    });
    ensure_eq!(refusal(world.merge_status("a", patch).await)?.code, 409);
    Ok(())
}

async fn a_stale_put_of_status_is_409(world: &World) -> Outcome {
    let mut old = world.create("a", json!({})).await?;
    world
        .merge_status("a", json!({ "status": { "phase": "One" } }))
        .await?;
    old.data["status"] = json!({ "phase": "Two" });
    let api = world.widgets();
    let outcome = api.replace_status("a", &PostParams::default(), &old).await;
    ensure_eq!(refusal(outcome)?.code, 409);
    Ok(())
}

async fn a_status_is_dropped_at_creation_and_the_schema_gives_one(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({}));
    object.data["status"] = json!({ "phase": "Forged" });
    let made = world
        .widgets()
        .create(&PostParams::default(), &object)
        .await?;
    ensure_eq!(made.data["status"], json!({ "observedGeneration": -1 }));
    ensure_eq!(
        world.get("a").await?.data["status"]["observedGeneration"],
        -1
    );
    Ok(())
}

async fn a_violation_of_the_schema_in_status_is_422(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let status = refusal(
        world
            .merge_status("a", json!({ "status": { "replicas": "many" } }))
            .await,
    )?;
    ensure_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let cause = "status.replicas: Invalid value: \"string\": replicas in body must be of type integer: \"string\"";
    ensure!(status.message.contains(cause), "{}", status.message);
    let causes = status.details.given()?.causes;
    ensure_eq!(causes[0].field, "status.replicas");
    ensure_eq!(causes[0].reason, "FieldValueTypeInvalid");
    Ok(())
}

/// Applies a phase by force, on a version.
async fn apply_upon(world: &World, version: &str, phase: &str) -> kube::Result<DynamicObject> {
    let patch = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "resourceVersion": version },
        "status": { "phase": phase },
    });
    let force = PatchParams::apply("m").force();
    world
        .widgets()
        .patch_status("a", &force, &Patch::Apply(patch))
        .await
}

async fn an_apply_upon_an_old_version_is_409_even_with_force(world: &World) -> Outcome {
    let old = world.create("a", json!({})).await?;
    world
        .apply_status("m", "a", json!({ "phase": "One" }))
        .await?;
    let status = refusal(apply_upon(world, &version(&old)?, "Two").await)?;
    ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    ensure_eq!(world.get("a").await?.data["status"]["phase"], "One");
    Ok(())
}

async fn an_apply_upon_the_current_version_is_written(world: &World) -> Outcome {
    let current = world.create("a", json!({})).await?;
    let applied = apply_upon(world, &version(&current)?, "Up").await?;
    ensure_eq!(applied.data["status"]["phase"], "Up");
    Ok(())
}

behaviours! { "status":
    8 a_status_is_applied_and_accounted_for,
    20 status_is_ignored_on_the_main_endpoint,
    21 spec_is_ignored_on_the_status_endpoint,
    22 a_status_of_nothing_is_404,
    14 a_stale_merge_patch_of_status_is_409,
    15 a_stale_put_of_status_is_409,
    further a_status_is_dropped_at_creation_and_the_schema_gives_one,
    23 a_violation_of_the_schema_in_status_is_422,
    12 an_apply_upon_an_old_version_is_409_even_with_force,
    13 an_apply_upon_the_current_version_is_written,
}
