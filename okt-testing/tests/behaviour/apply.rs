//! This file tests server-side apply.

use kube::{
    api::{DynamicObject, Patch, PatchParams},
    core::Status,
};
use serde_json::{Value, json};

use crate::support::{
    apply_spec, apply_status, create, get, merge, refusal, server, version, widgets,
};

fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

/// The fields of one manager.
fn fields(object: &DynamicObject, manager: &str) -> Option<Value> {
    let entries = object.metadata.managed_fields.as_ref()?;
    let entry = entries
        .iter()
        .find(|entry| entry.manager.as_deref() == Some(manager))?;
    Some(entry.fields_v1.as_ref()?.0.clone())
}

#[tokio::test]
async fn an_apply_creates_what_is_not_there() {
    let (_server, client) = server().await;
    let made = apply_spec(&client, &by("m"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.data["spec"], json!({ "color": "red", "replicas": 1 }));
    assert_eq!(
        fields(&made, "m"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
}

#[tokio::test]
async fn an_identical_apply_keeps_the_resource_version() {
    let (_server, client) = server().await;
    let made = apply_spec(&client, &by("m"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    // The status that the schema gives is written with the first write.
    let settled = apply_spec(&client, &by("m"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    assert_ne!(version(&made), version(&settled));
    let again = apply_spec(&client, &by("m"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    assert_eq!(version(&settled), version(&again));
    let status = json!({ "phase": "Up" });
    let first = apply_status(&client, "m", "a", status.clone())
        .await
        .unwrap();
    let second = apply_status(&client, "m", "a", status).await.unwrap();
    assert_eq!(version(&first), version(&second));
    assert_eq!(
        first.metadata.managed_fields,
        second.metadata.managed_fields
    );
}

#[tokio::test]
async fn a_field_of_another_applier_is_409_with_its_name() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    let status = refusal(apply_spec(&client, &by("two"), "a", json!({ "color": "blue" })).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.color"
    );
    let causes = status.details.unwrap().causes;
    assert_eq!(causes[0].reason, "FieldManagerConflict");
    assert_eq!(causes[0].field, ".spec.color");
}

#[tokio::test]
async fn several_conflicts_are_listed_by_manager() {
    let (_server, client) = server().await;
    apply_spec(
        &client,
        &by("one"),
        "a",
        json!({ "color": "red", "replicas": 2 }),
    )
    .await
    .unwrap();
    let spec = json!({ "color": "blue", "replicas": 3 });
    let status = refusal(apply_spec(&client, &by("two"), "a", spec).await);
    assert_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.replicas"
    );
}

#[tokio::test]
async fn a_field_written_by_an_update_is_409_too() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red" })).await;
    let status = refusal(apply_spec(&client, &by("two"), "a", json!({ "color": "blue" })).await);
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"unknown\" using demo.okt.dev/v1: .spec.color"
    );
}

#[tokio::test]
async fn agreeing_on_a_value_shares_it() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    let shared = apply_spec(&client, &by("two"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    let own = Some(json!({ "f:spec": { "f:color": {} } }));
    assert_eq!(
        (fields(&shared, "one"), fields(&shared, "two")),
        (own.clone(), own)
    );
}

#[tokio::test]
async fn force_takes_the_field_over() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    let taken = apply_spec(&client, &by("two").force(), "a", json!({ "color": "blue" }))
        .await
        .unwrap();
    assert_eq!(taken.data["spec"]["color"], "blue");
    assert_eq!(fields(&taken, "one"), None);
    assert_eq!(
        fields(&taken, "two"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
}

#[tokio::test]
async fn an_update_takes_the_field_over() {
    let (_server, client) = server().await;
    apply_spec(
        &client,
        &by("one"),
        "a",
        json!({ "color": "red", "name": "abc" }),
    )
    .await
    .unwrap();
    let updated = merge(&client, "a", json!({ "spec": { "color": "blue" } }))
        .await
        .unwrap();
    assert_eq!(
        fields(&updated, "one"),
        Some(json!({ "f:spec": { "f:name": {} } }))
    );
    assert_eq!(
        fields(&updated, "unknown"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
}

#[tokio::test]
async fn an_omitted_own_field_is_removed() {
    let (_server, client) = server().await;
    let spec = json!({ "color": "red", "name": "abc" });
    apply_spec(&client, &by("m"), "a", spec).await.unwrap();
    let applied = apply_spec(&client, &by("m"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    assert_eq!(
        applied.data["spec"],
        json!({ "color": "red", "replicas": 1 })
    );
}

#[tokio::test]
async fn an_omitted_field_that_another_owns_stays() {
    let (_server, client) = server().await;
    apply_spec(
        &client,
        &by("one"),
        "a",
        json!({ "color": "red", "name": "abc" }),
    )
    .await
    .unwrap();
    apply_spec(&client, &by("two"), "a", json!({ "name": "abc" }))
        .await
        .unwrap();
    let applied = apply_spec(&client, &by("one"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    assert_eq!(applied.data["spec"]["name"], "abc");
}

#[tokio::test]
async fn two_managers_keep_conditions_of_their_own() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let ready = json!({ "type": "Ready", "status": "True" });
    let fast = json!({ "type": "Fast", "status": "False" });
    apply_status(&client, "one", "a", json!({ "conditions": [ready] }))
        .await
        .unwrap();
    let both = apply_status(&client, "two", "a", json!({ "conditions": [fast] }))
        .await
        .unwrap();
    assert_eq!(
        both.data["status"]["conditions"].as_array().unwrap().len(),
        2
    );
    assert_eq!(
        fields(&both, "one"),
        Some(json!({ "f:status": { "f:conditions": {
            "k:{\"type\":\"Ready\"}": { ".": {}, "f:type": {}, "f:status": {} },
        } } }))
    );
}

#[tokio::test]
async fn an_omitted_own_condition_is_dropped_and_others_are_not() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let own = json!({ "conditions": [condition("Ready"), condition("Fast")] });
    apply_status(&client, "one", "a", own).await.unwrap();
    let other = json!({ "conditions": [condition("Other")] });
    apply_status(&client, "two", "a", other).await.unwrap();
    let less = json!({ "conditions": [condition("Ready")] });
    let applied = apply_status(&client, "one", "a", less).await.unwrap();
    let conditions = applied.data["status"]["conditions"].as_array().unwrap();
    let kinds: Vec<_> = conditions
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    assert_eq!(kinds, ["Ready", "Other"]);
}

#[tokio::test]
async fn an_emptied_list_is_dropped() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let own = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Up" });
    apply_status(&client, "m", "a", own).await.unwrap();
    let applied = apply_status(&client, "m", "a", json!({ "phase": "Up" }))
        .await
        .unwrap();
    assert!(applied.data["status"].get("conditions").is_none());
}

#[tokio::test]
async fn a_set_is_merged_by_value() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "tags": ["x", "y"] }))
        .await
        .unwrap();
    let both = apply_spec(&client, &by("two"), "a", json!({ "tags": ["z"] }))
        .await
        .unwrap();
    assert_eq!(both.data["spec"]["tags"], json!(["x", "y", "z"]));
    let less = apply_spec(&client, &by("one"), "a", json!({ "tags": ["y"] }))
        .await
        .unwrap();
    assert_eq!(less.data["spec"]["tags"], json!(["y", "z"]));
}

#[tokio::test]
async fn an_atomic_list_belongs_to_one() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "plain": ["x"] }))
        .await
        .unwrap();
    let outcome = apply_spec(&client, &by("two"), "a", json!({ "plain": ["y"] })).await;
    assert!(refusal(outcome).message.ends_with(": .spec.plain"));
    let taken = apply_spec(&client, &by("two").force(), "a", json!({ "plain": ["y"] }))
        .await
        .unwrap();
    assert_eq!(taken.data["spec"]["plain"], json!(["y"]));
}

#[tokio::test]
async fn an_atomic_map_belongs_to_one() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "whole": { "a": "1" } }))
        .await
        .unwrap();
    let spec = json!({ "whole": { "b": "2" } });
    let taken = apply_spec(&client, &by("two").force(), "a", spec)
        .await
        .unwrap();
    assert_eq!(taken.data["spec"]["whole"], json!({ "b": "2" }));
}

#[tokio::test]
async fn a_map_is_merged_by_key() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "labels": { "a": "1" } }))
        .await
        .unwrap();
    let both = apply_spec(&client, &by("two"), "a", json!({ "labels": { "b": "2" } }))
        .await
        .unwrap();
    assert_eq!(both.data["spec"]["labels"], json!({ "a": "1", "b": "2" }));
}

#[tokio::test]
async fn an_undeclared_field_is_500() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let status = refusal(apply_status(&client, "m", "a", json!({ "bogus": 1 })).await);
    assert_eq!(status.code, 500);
    assert!(
        status
            .message
            .ends_with(".status.bogus: field not declared in schema"),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn one_key_twice_is_500() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let ready = json!({ "type": "Ready", "status": "True" });
    let outcome = apply_status(&client, "m", "a", json!({ "conditions": [ready, ready] })).await;
    assert_eq!(refusal(outcome).code, 500);
}

async fn apply_raw(body: Value) -> Status {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    refusal(
        widgets(&client)
            .patch("a", &by("m"), &Patch::Apply(body))
            .await,
    )
}

#[tokio::test]
async fn an_apply_without_kind_is_400() {
    assert_eq!(apply_raw(json!({ "spec": {} })).await.code, 400);
    assert_eq!(
        apply_raw(json!({ "kind": "Widget", "spec": {} }))
            .await
            .code,
        400
    );
}

#[tokio::test]
async fn an_apply_of_managed_fields_is_400() {
    let status = apply_raw(json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Widget",
        "metadata": { "managedFields": [] },
    }))
    .await;
    assert_eq!(
        (status.code, status.message.as_str()),
        (400, "metadata.managedFields must be nil")
    );
}

#[tokio::test]
async fn an_apply_without_a_manager_is_refused() {
    let (_server, client) = server().await;
    let request = http::Request::patch("/apis/demo.okt.dev/v1/namespaces/default/widgets/a")
        .header("content-type", "application/apply-patch+yaml")
        .body(b"apiVersion: demo.okt.dev/v1\nkind: Widget\nspec: {}\n".to_vec())
        .unwrap();
    let status = refusal(client.request::<Value>(request).await);
    assert_eq!(status.code, 422);
    assert!(status.message.contains("fieldManager"));
}

#[tokio::test]
async fn a_configuration_may_be_yaml() {
    let (_server, client) = server().await;
    let request = http::Request::patch(
        "/apis/demo.okt.dev/v1/namespaces/default/widgets/a?fieldManager=m",
    )
    .header("content-type", "application/apply-patch+yaml")
    .body(
        b"apiVersion: demo.okt.dev/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  color: red\n"
            .to_vec(),
    )
    .unwrap();
    client.request::<Value>(request).await.unwrap();
    assert_eq!(get(&client, "a").await.data["spec"]["color"], "red");
}

#[tokio::test]
async fn resetting_managed_fields_empties_them() {
    let (_server, client) = server().await;
    apply_spec(&client, &by("one"), "a", json!({ "color": "red" }))
        .await
        .unwrap();
    let reset = json!({ "metadata": { "managedFields": [{}] } });
    let object = merge(&client, "a", reset).await.unwrap();
    assert_eq!(object.metadata.managed_fields, None);
    let status = refusal(apply_spec(&client, &by("two"), "a", json!({ "color": "blue" })).await);
    assert!(
        status.message.contains("before-first-apply"),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn labels_and_finalizers_are_applied_item_by_item() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let patch = |finalizer: &str, label: &str| {
        Patch::Apply(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Widget",
            "metadata": { "finalizers": [finalizer], "labels": { label: "x" } },
        }))
    };
    let api = widgets(&client);
    api.patch("a", &by("one"), &patch("okt.dev/one", "one"))
        .await
        .unwrap();
    let both = api
        .patch("a", &by("two"), &patch("okt.dev/two", "two"))
        .await
        .unwrap();
    assert_eq!(both.metadata.finalizers.as_ref().unwrap().len(), 2);
    assert_eq!(both.metadata.labels.as_ref().unwrap().len(), 2);
    assert_eq!(
        fields(&both, "two"),
        Some(json!({ "f:metadata": {
            "f:finalizers": { "v:\"okt.dev/two\"": {} },
            "f:labels": { "f:two": {} },
        } }))
    );
}
