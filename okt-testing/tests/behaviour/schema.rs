//! This file tests what the schema of a CRD does to objects.

use kube::core::Status;
use serde_json::{Value, json};

use crate::support::{create, merge, refusal, server, try_create, widget_crd, widgets};

async fn refuse(spec: Value) -> Status {
    let (_server, client) = server().await;
    let status = refusal(try_create(&client, "a", spec).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    status
}

/// The one cause, after the head of the message.
async fn cause(spec: Value) -> String {
    let message = refuse(spec).await.message;
    let head = "Widget.demo.okt.dev \"a\" is invalid: ";
    let causes = message.strip_prefix(head).expect("the usual head");
    // Rules on other fields were not looked at, and the server says so.
    match causes.split_once(", <nil>: ") {
        Some((first, _)) => first.trim_start_matches('[').to_owned(),
        None => causes.trim_start_matches('[').to_owned(),
    }
}

#[tokio::test]
async fn an_unknown_field_is_pruned() {
    let (_server, client) = server().await;
    let made = create(
        &client,
        "a",
        json!({ "bogus": 1, "either": { "a": "x", "c": "y" } }),
    )
    .await;
    assert!(made.data["spec"].get("bogus").is_none());
    assert_eq!(made.data["spec"]["either"], json!({ "a": "x" }));
}

#[tokio::test]
async fn unknown_fields_are_kept_where_the_schema_says_so() {
    let (_server, client) = server().await;
    let free = json!({ "any": [1, { "thing": true }] });
    let template = json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "t" }, "y": 1 });
    let made = create(&client, "a", json!({ "free": free, "template": template })).await;
    assert_eq!(made.data["spec"]["free"], free);
    assert_eq!(made.data["spec"]["template"], template);
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    assert_eq!(made.data["spec"]["replicas"], 1);
    let patched = merge(&client, "a", json!({ "spec": { "replicas": null } }))
        .await
        .unwrap();
    assert_eq!(patched.data["spec"]["replicas"], 1);
}

#[tokio::test]
async fn nulls_are_dropped_but_where_they_are_allowed() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({ "color": null, "maybe": null })).await;
    assert!(made.data["spec"].get("color").is_none());
    assert_eq!(made.data["spec"].get("maybe"), Some(&Value::Null));
}

#[tokio::test]
async fn a_value_that_is_not_listed_is_refused() {
    assert_eq!(
        cause(json!({ "color": "pink" })).await,
        "spec.color: Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\""
    );
}

#[tokio::test]
async fn numbers_have_bounds() {
    assert_eq!(
        cause(json!({ "replicas": 11 })).await,
        "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"
    );
    assert_eq!(
        cause(json!({ "minReplicas": -1, "replicas": -1 })).await,
        "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer]"
    );
    refuse(json!({ "replicas": 1.5 })).await;
}

#[tokio::test]
async fn texts_have_bounds_and_patterns() {
    assert_eq!(
        cause(json!({ "name": "ABC" })).await,
        "spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'"
    );
    assert_eq!(
        cause(json!({ "name": "abcdef" })).await,
        "spec.name: Too long: may not be more than 5 bytes"
    );
    assert_eq!(
        cause(json!({ "name": "a" })).await,
        "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long"
    );
}

#[tokio::test]
async fn a_time_must_be_one() {
    assert_eq!(
        cause(json!({ "started": "noon" })).await,
        "spec.started: Invalid value: \"noon\": spec.started in body must be of type date-time: \"noon\""
    );
    let (_server, client) = server().await;
    create(&client, "a", json!({ "started": "2026-11-21T09:00:00Z" })).await;
}

#[tokio::test]
async fn an_int_or_string_is_either() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "port": 80 })).await;
    create(&client, "b", json!({ "port": "http" })).await;
    assert_eq!(
        refusal(try_create(&client, "c", json!({ "port": true })).await).code,
        422
    );
}

#[tokio::test]
async fn lists_have_bounds_and_sets_have_no_twins() {
    assert!(
        cause(json!({ "tags": ["a", "b", "c", "d"] }))
            .await
            .starts_with("spec.tags: Too many: 4")
    );
    assert_eq!(
        cause(json!({ "tags": ["a", "a"] })).await,
        "spec.tags[1]: Duplicate value: \"a\""
    );
}

#[tokio::test]
async fn one_of_takes_one() {
    let (_server, client) = server().await;
    create(&client, "ok", json!({ "either": { "a": "x" } })).await;
    assert!(
        cause(json!({ "either": {} }))
            .await
            .contains("Found none valid")
    );
    let both = json!({ "either": { "a": "x", "b": "y" } });
    assert!(
        cause(both)
            .await
            .contains("must validate one and only one schema (oneOf)")
    );
}

#[tokio::test]
async fn a_required_field_is_missed() {
    let (_server, client) = server().await;
    let mut object = crate::support::widget("a", json!({}));
    object.data = json!({});
    let params = kube::api::PostParams::default();
    let outcome = widgets(&client).create(&params, &object).await;
    let status = refusal(outcome);
    assert!(
        status.message.contains("spec: Required value"),
        "{}",
        status.message
    );
    assert_eq!(
        status.details.unwrap().causes[0].reason,
        "FieldValueRequired"
    );
}

#[tokio::test]
async fn several_faults_are_listed_together() {
    let message = refuse(json!({ "color": "pink", "replicas": 11 }))
        .await
        .message;
    assert!(
        message.contains("spec.color: ") && message.contains("spec.replicas: "),
        "{message}"
    );
    assert!(message.ends_with(']'));
}

#[tokio::test]
async fn strict_validation_refuses_unknown_fields() {
    let (_server, client) = server().await;
    let body = json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Widget",
        "metadata": { "name": "a" },
        "spec": { "bogus": 1 },
    });
    let path = "/apis/demo.okt.dev/v1/namespaces/default/widgets?fieldValidation=Strict";
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    let status = refusal(client.request::<Value>(request).await);
    assert_eq!(status.code, 400);
    assert!(
        status
            .message
            .ends_with("strict decoding error: unknown field \"spec.bogus\"")
    );
}

#[tokio::test]
async fn a_changed_schema_shows_in_what_is_stored() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red", "name": "abc" })).await;
    let mut crd = widget_crd();
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec.as_object_mut().unwrap().remove("name");
    spec["size"] = json!({ "type": "string", "default": "small" });
    spec["color"]["enum"] = json!(["blue"]);
    crate::support::apply_crd(&client, crd).await.unwrap();
    let object = crate::support::get(&client, "a").await;
    assert_eq!(
        object.data["spec"],
        json!({ "color": "red", "replicas": 1, "size": "small" })
    );
    let patch = json!({ "spec": { "replicas": 2 } });
    merge(&client, "a", patch)
        .await
        .expect("what was left as it was is not held against it");
    let patch = json!({ "spec": { "color": "green" } });
    assert_eq!(refusal(merge(&client, "a", patch).await).code, 422);
}
