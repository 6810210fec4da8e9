//! Invalid input in objects.

use std::time::Duration;

use kube::api::PostParams;
use okt_tests::{DatabaseState::*, Databases, Objects, Rig, Served};
use serde_json::{Value, json};

async fn lenient() -> Rig {
    let rig = Rig::<Databases>::lenient().await;
    rig.start();
    rig
}

fn bad(name: &str, spec: &Value) -> Value {
    let mut object = Databases::object(name, json!({}));
    object["spec"] = spec.clone();
    object
}

async fn raw_condition(rig: &Rig, name: &str, condition: &str) -> Option<Value> {
    let raw = rig.raw().get_opt(name).await.expect("a read")?;
    let conditions = raw.data.pointer("/status/conditions")?.as_array()?.clone();
    conditions.into_iter().find(|c| c["type"] == condition)
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_reported_once_while_every_other_is_reconciled() {
    let rig = lenient().await;
    for (name, spec) in [
        ("wrong-type", json!({ "storage": 5 })),
        ("missing", json!({})),
        (
            "wrong-lifecycle",
            json!({ "storage": "1Gi", "lifecycle": "Running" }),
        ),
    ] {
        rig.create_raw(bad(name, &spec)).await;
    }
    let mut without = bad("without-spec", &json!({}));
    without.as_object_mut().expect("an object").remove("spec");
    rig.create_raw(without).await;
    rig.create_ready("good", Running).await;
    rig.pass(Duration::from_secs(5)).await;
    for name in ["wrong-type", "missing", "wrong-lifecycle", "without-spec"] {
        let stalled = raw_condition(&rig, name, "Stalled")
            .await
            .expect("a condition");
        assert_eq!(
            (&stalled["status"], &stalled["reason"]),
            (&json!("True"), &json!("Undecodable"))
        );
        let ready = raw_condition(&rig, name, "Ready")
            .await
            .expect("a condition");
        assert_eq!(ready["status"], "False");
        assert!(raw_condition(&rig, name, "Deleting").await.is_some());
    }
    rig.wire.clear();
    rig.pass(Duration::from_hours(1)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    // Once repaired, its lifecycle begins.
    rig.patch("wrong-type", json!({ "spec": { "storage": "1Gi" } }))
        .await;
    rig.until_ready("wrong-type", Running).await;
    assert!(raw_condition(&rig, "wrong-type", "Stalled").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_became_undecodable_keeps_its_position_and_its_conditions() {
    let rig = lenient().await;
    rig.create_ready("db", Running).await;
    rig.patch("db", json!({ "spec": { "storage": 5 } })).await;
    rig.pass(Duration::from_secs(5)).await;
    let raw = rig.raw().read("db").await;
    assert_eq!(
        raw.data.pointer("/status/lifecycle/state"),
        Some(&json!("Running"))
    );
    assert_eq!(
        raw.data.pointer("/status/observedGeneration"),
        Some(&json!(2))
    );
    let available = raw_condition(&rig, "db", "Available")
        .await
        .expect("it is kept");
    assert_eq!(available["status"], "True");
    // The new generation is still undecodable and is reported too.
    rig.patch("db", json!({ "spec": { "storage": 6 } })).await;
    rig.pass(Duration::from_secs(5)).await;
    let stalled = raw_condition(&rig, "db", "Stalled")
        .await
        .expect("a condition");
    assert_eq!(stalled["observedGeneration"], 3);
    rig.patch("db", json!({ "spec": { "storage": "2Gi" } }))
        .await;
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_can_be_deleted_and_abandoned() {
    let rig = lenient().await;
    // This object has no record, so OKT releases it at once.
    let mut fresh = bad("fresh", &json!({}));
    fresh["metadata"]["finalizers"] = json!([okt::FINALIZER]);
    rig.create_raw(fresh).await;
    rig.create_ready("db", Running).await;
    rig.patch("db", json!({ "spec": { "storage": 5 } })).await;
    rig.delete("fresh").await;
    rig.delete("db").await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(!rig.raw().has("fresh").await);
    let stalled = raw_condition(&rig, "db", "Stalled")
        .await
        .expect("a condition");
    let message = stalled["message"].as_str().unwrap_or_default();
    assert!(message.contains("okt.dev/abandon"), "{message}");
    rig.abandon("db").await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(!rig.raw().has("db").await);
}

#[tokio::test(start_paused = true)]
async fn a_huge_request_is_refused_by_the_definition() {
    let rig = Rig::new().await;
    let object = Databases::object("db", json!({ "request": "x".repeat(300) }));
    let object = serde_json::from_value(object).expect("an object");
    let refused = rig.raw().create(&PostParams::default(), &object).await;
    let kube::Error::Api(status) = refused.expect_err("it is refused") else {
        panic!("not by the API");
    };
    assert_eq!(status.code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_huge_request_that_an_older_definition_lets_through_is_recorded_by_its_hash() {
    let rig = lenient().await;
    let huge = "x".repeat(100_000);
    rig.create("db", json!({ "request": huge })).await;
    rig.until_ready("db", Running).await;
    let request = rig
        .position("db")
        .await
        .desired
        .and_then(|d| d.request)
        .expect("a request");
    assert!(
        request.starts_with("sha256:") && request.len() < 80,
        "{request}"
    );
    rig.writes_nothing_for(Duration::from_mins(5)).await;
    rig.visit("db", "Servicing", &*huge).await;
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!(position.trail, ">Start>Running>Servicing>Running>");
    rig.writes_nothing_for(Duration::from_mins(5)).await;
}
