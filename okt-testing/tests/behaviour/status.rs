//! This file tests the status endpoint.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{
    apply_status, create, get, merge, merge_status, refusal, server, version, widgets,
};

#[tokio::test]
async fn a_status_is_applied_and_accounted_for() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let applied = apply_status(&client, "boss", "a", json!({ "phase": "Up" }))
        .await
        .unwrap();
    assert_eq!(applied.data["status"]["phase"], "Up");
    let entries = applied.metadata.managed_fields.unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry.manager.as_deref() == Some("boss"))
        .unwrap();
    assert_eq!(entry.operation.as_deref(), Some("Apply"));
    assert_eq!(entry.subresource.as_deref(), Some("status"));
    assert_eq!(entry.api_version.as_deref(), Some("demo.okt.dev/v1"));
    let fields = &entry.fields_v1.as_ref().unwrap().0;
    assert_eq!(fields, &json!({ "f:status": { "f:phase": {} } }));
}

#[tokio::test]
async fn status_is_ignored_on_the_main_endpoint() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    apply_status(&client, "m", "a", json!({ "phase": "Up" }))
        .await
        .unwrap();
    let patch = json!({ "spec": { "color": "red" }, "status": { "phase": "Down" } });
    let patched = merge(&client, "a", patch).await.unwrap();
    assert_eq!(patched.data["status"]["phase"], "Up");
    assert_eq!(patched.data["spec"]["color"], "red");
}

#[tokio::test]
async fn spec_is_ignored_on_the_status_endpoint() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red" })).await;
    let patch = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "color": "blue" },
        "status": { "phase": "Up" },
    });
    let patched = merge_status(&client, "a", patch).await.unwrap();
    assert_eq!(patched.data["spec"]["color"], "red");
    assert_eq!(patched.data["status"]["phase"], "Up");
    assert_eq!(patched.metadata.labels, None);
    assert_eq!(patched.metadata.generation, Some(1));
}

#[tokio::test]
async fn a_status_of_nothing_is_404() {
    let (_server, client) = server().await;
    let status = refusal(apply_status(&client, "m", "a", json!({ "phase": "Up" })).await);
    assert_eq!(status.code, 404);
    assert_eq!(
        refusal(merge_status(&client, "a", json!({})).await).code,
        404
    );
}

#[tokio::test]
async fn a_stale_merge_patch_of_status_is_409() {
    let (_server, client) = server().await;
    let old = create(&client, "a", json!({})).await;
    merge_status(&client, "a", json!({ "status": { "phase": "One" } }))
        .await
        .unwrap();
    let patch = json!({
        "metadata": { "resourceVersion": version(&old) },
        "status": { "phase": "Two" },
    });
    assert_eq!(refusal(merge_status(&client, "a", patch).await).code, 409);
}

#[tokio::test]
async fn a_stale_put_of_status_is_409() {
    let (_server, client) = server().await;
    let mut old = create(&client, "a", json!({})).await;
    merge_status(&client, "a", json!({ "status": { "phase": "One" } }))
        .await
        .unwrap();
    old.data["status"] = json!({ "phase": "Two" });
    let api = widgets(&client);
    let outcome = api.replace_status("a", &PostParams::default(), &old).await;
    assert_eq!(refusal(outcome).code, 409);
}

#[tokio::test]
async fn a_status_is_dropped_at_creation_and_the_schema_gives_one() {
    let (_server, client) = server().await;
    let mut object = crate::support::widget("a", json!({}));
    object.data["status"] = json!({ "phase": "Forged" });
    let made = widgets(&client)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    assert_eq!(made.data["status"], json!({ "observedGeneration": -1 }));
    assert_eq!(
        get(&client, "a").await.data["status"]["observedGeneration"],
        -1
    );
}

#[tokio::test]
async fn a_violation_of_the_schema_in_status_is_422() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let status =
        refusal(merge_status(&client, "a", json!({ "status": { "replicas": "many" } })).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let cause = "status.replicas: Invalid value: \"string\": replicas in body must be of type integer: \"string\"";
    assert!(status.message.contains(cause), "{}", status.message);
    let causes = status.details.unwrap().causes;
    assert_eq!(causes[0].field, "status.replicas");
    assert_eq!(causes[0].reason, "FieldValueTypeInvalid");
}

#[tokio::test]
async fn a_status_with_a_stale_version_is_409_even_with_force() {
    let (_server, client) = server().await;
    let old = create(&client, "a", json!({})).await;
    apply_status(&client, "m", "a", json!({ "phase": "One" }))
        .await
        .unwrap();
    let body = |version: String| {
        Patch::Apply(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Widget",
            "metadata": { "resourceVersion": version },
            "status": { "phase": "Two" },
        }))
    };
    let force = PatchParams::apply("m").force();
    let api = widgets(&client);
    let outcome = api.patch_status("a", &force, &body(version(&old))).await;
    assert_eq!(refusal(outcome).code, 409);
    let current = get(&client, "a").await;
    let applied = api
        .patch_status("a", &force, &body(version(&current)))
        .await
        .unwrap();
    assert_eq!(applied.data["status"]["phase"], "Two");
}
