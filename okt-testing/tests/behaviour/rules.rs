//! This file tests CEL rules.

use serde_json::{Value, json};

use crate::support::{
    apply_status, create, create_crd, merge, merge_status, refusal, server, try_create, widget_crd,
};

#[tokio::test]
async fn a_rule_on_spec_is_422_with_its_message() {
    let (_server, client) = server().await;
    let outcome = try_create(&client, "a", json!({ "replicas": 1, "minReplicas": 3 })).await;
    let status = refusal(outcome);
    assert_eq!(status.code, 422);
    assert_eq!(
        status.message,
        "Widget.demo.okt.dev \"a\" is invalid: spec: Invalid value: at least three"
    );
}

#[tokio::test]
async fn a_transition_rule_does_not_run_without_an_old_value() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "fixed": "x" })).await;
    let status = refusal(merge(&client, "a", json!({ "spec": { "fixed": "y" } })).await);
    assert!(
        status
            .message
            .ends_with("spec.fixed: Invalid value: \"y\": fixed is immutable")
    );
}

#[tokio::test]
async fn the_first_state_is_the_entry_or_a_jump() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let lifecycle =
        |state: &str, jumps: i32| json!({ "lifecycle": { "state": state, "jumps": jumps } });
    let status = refusal(apply_status(&client, "m", "a", lifecycle("Running", 0)).await);
    assert_eq!(status.code, 422);
    assert_eq!(
        status.message,
        "Widget.demo.okt.dev \"a\" is invalid: status.lifecycle: Forbidden: the first state is the entry"
    );
    assert_eq!(
        status.details.unwrap().causes[0].reason,
        "FieldValueForbidden"
    );
    apply_status(&client, "m", "a", lifecycle("Running", 1))
        .await
        .unwrap();
    create(&client, "b", json!({})).await;
    apply_status(&client, "m", "b", lifecycle("Start", 0))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_change_of_state_follows_an_edge_or_jumps() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let to = async |state: &str, jumps: i32| {
        let status = json!({ "lifecycle": { "state": state, "jumps": jumps } });
        apply_status(&client, "m", "a", status).await
    };
    to("Start", 0).await.unwrap();
    let status = refusal(to("End", 0).await);
    assert!(
        status
            .message
            .ends_with("status.lifecycle: Forbidden: no edge from Start to End")
    );
    to("Running", 0).await.unwrap();
    to("Running", 0).await.unwrap();
    to("End", 0).await.unwrap();
    assert_eq!(
        refusal(to("Start", 0).await).code,
        422,
        "a leaf has no edge out"
    );
    to("Start", 1).await.unwrap();
}

#[tokio::test]
async fn a_recorded_lifecycle_is_kept() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let status = json!({ "lifecycle": { "state": "Start" } });
    apply_status(&client, "m", "a", status).await.unwrap();
    let gone = json!({ "status": { "lifecycle": null } });
    let status = refusal(merge_status(&client, "a", gone).await);
    assert!(
        status
            .message
            .ends_with("status: Invalid value: lifecycle is kept")
    );
}

#[tokio::test]
async fn rules_wait_until_the_schema_holds() {
    let (_server, client) = server().await;
    let spec = json!({ "replicas": "x", "minReplicas": 3 });
    let message = refusal(try_create(&client, "a", spec).await).message;
    assert!(
        message.contains("some validation rules were not checked"),
        "{message}"
    );
    assert!(!message.contains("at least three"));
}

/// What a CRD is refused for whose spec has this rule.
async fn compile(rule: Value) -> String {
    let server = okt_testing::ApiServer::new();
    let mut crd = widget_crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([rule]);
    let status = refusal(create_crd(&server.client(), crd).await);
    assert_eq!(status.code, 422, "{}", status.message);
    status.message
}

#[tokio::test]
async fn a_rule_that_does_not_compile_refuses_the_crd() {
    assert!(
        compile(json!({ "rule": "self.replicas >" }))
            .await
            .contains("compilation failed")
    );
    let message = compile(json!({ "rule": "self.nothing > 1" })).await;
    assert!(message.contains("undefined field 'nothing'"), "{message}");
    let message = compile(json!({ "rule": "other.replicas > 1" })).await;
    assert!(
        message.contains("undeclared reference to 'other'"),
        "{message}"
    );
    let message = compile(json!({ "rule": "self.name.shout() == ''" })).await;
    assert!(
        message.contains("undeclared reference to 'shout'"),
        "{message}"
    );
    let message = compile(json!({ "rule": "true", "messageExpression": "self.nothing" })).await;
    assert!(
        message.contains("x-kubernetes-validations[0].messageExpression"),
        "{message}"
    );
    let message = compile(json!({ "rule": "true", "reason": "Because" })).await;
    assert!(
        message.contains("Unsupported value: \"Because\""),
        "{message}"
    );
    let message = compile(json!({ "rule": "self.plain.all(x, x.size() > 1) && self.labels.all(k, k.nothing)", "optionalOldSelf": true })).await;
    assert!(message.contains("optionalOldSelf"), "{message}");
}

#[tokio::test]
async fn old_self_needs_a_list_that_knows_its_items() {
    let server = okt_testing::ApiServer::new();
    let mut crd = widget_crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["plain"]["items"]["x-kubernetes-validations"] =
        json!([{ "rule": "self == oldSelf" }]);
    let status = refusal(create_crd(&server.client(), crd).await);
    assert!(
        status.message.contains("uncorrelatable"),
        "{}",
        status.message
    );
}

/// Creates two widgets under one rule on spec: one that holds, one that does not.
async fn rule(rule: &str, good: Value, bad: Value) {
    let server = okt_testing::ApiServer::new();
    let client = server.client();
    let mut crd = widget_crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = &mut schema["properties"]["spec"];
    spec["properties"]["snake_case"] = json!({ "type": "string" });
    spec["properties"]["dash-ed"] = json!({ "type": "string" });
    spec["properties"]["namespace"] = json!({ "type": "string" });
    spec["x-kubernetes-validations"] = json!([{ "rule": rule }]);
    create_crd(&client, crd).await.unwrap();
    create(&client, "good", good).await;
    let status = refusal(try_create(&client, "bad", bad).await);
    assert_eq!(status.code, 422);
    assert!(
        status.message.ends_with(&format!("failed rule: {rule}")),
        "{}",
        status.message
    );
}

#[tokio::test]
async fn names_are_escaped_as_in_kubernetes() {
    rule(
        "self.snake_case == 'x'",
        json!({ "snake_case": "x" }),
        json!({ "snake_case": "y" }),
    )
    .await;
    rule(
        "self.dash__dash__ed == 'x'",
        json!({ "dash-ed": "x" }),
        json!({ "dash-ed": "y" }),
    )
    .await;
    rule(
        "self.__namespace__ == 'x'",
        json!({ "namespace": "x" }),
        json!({ "namespace": "y" }),
    )
    .await;
}

#[tokio::test]
async fn times_lists_and_library_functions_work() {
    rule(
        "self.started > timestamp('2020-01-01T00:00:00Z')",
        json!({ "started": "2026-01-01T00:00:00Z" }),
        json!({ "started": "2019-01-01T00:00:00Z" }),
    )
    .await;
    rule(
        "self.plain.all(x, x.startsWith('a'))",
        json!({ "plain": ["a", "ab"] }),
        json!({ "plain": ["a", "b"] }),
    )
    .await;
    rule(
        "isURL(self.maybe)",
        json!({ "maybe": "https://okt.dev" }),
        json!({ "maybe": "okt" }),
    )
    .await;
    rule(
        "self.?color.orValue('red') == 'red'",
        json!({}),
        json!({ "color": "blue" }),
    )
    .await;
}
