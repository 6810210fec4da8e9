//! These tests check the validation rules of a CRD on a real API server: what they refuse, and with which message.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use okt::{LifecycleObject, crd, crd_union};
use okt_tests::releases::{first, leaner, renamed, wider};
use okt_tests::rollout::Place;
use okt_tests::rules::{self, answer, at, check_moves};
use okt_tests::{Cluster, Database, Databases, Served};
use serde_json::{Value, json};

use crate::on_kubernetes;

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn every_rule_refuses_with_a_message_that_a_user_understands() {
    on_kubernetes("the rules of a definition", async |place| {
        let cluster: Cluster<Databases> = place.cluster();
        cluster.define(crd::<Database>().expect("a CRD")).await;
        rules::check_messages(&cluster).await;
    })
    .await;
}

/// Applies a CRD, and waits until the server uses it.
async fn define<A: Served>(place: &Place, definition: CustomResourceDefinition, probe: &str) {
    let cluster: Cluster<A> = place.cluster();
    cluster.define(definition).await;
    // The server takes a moment to use a changed CRD.
    for number in 0.. {
        let name = format!("probe-{number}-{}", probe.to_lowercase());
        let answered = answer(&cluster, &name, Value::Null, at(probe, 1, 0)).await;
        if answered == "accepted" {
            return;
        }
        assert!(number < 12_000, "{answered}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_renaming_is_neither_a_transition_nor_a_jump() {
    on_kubernetes("renamed states", async |place| {
        let definition = crd::<renamed::Broker>().expect("a CRD");
        define::<renamed::Brokers>(&place, definition, "Building").await;
        let moves = [
            ("Start", "Building", 1, true),
            ("Building", "Start", 1, true),
            ("Start", "Building", 2, false),
            ("Start", "Running", 2, true),
            ("Start", "Serving", 2, true),
            ("Start", "Tidying", 2, false),
        ];
        check_moves::<renamed::Brokers>(&place.cluster(), (1, 0), &moves).await;
    })
    .await;
}

fn union<New: LifecycleObject, Old: LifecycleObject>() -> CustomResourceDefinition {
    crd_union::<New>(&crd::<Old>().expect("a CRD")).expect("they fit")
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_union_takes_the_moves_of_both_graphs_and_no_others() {
    on_kubernetes("the definition of two releases", async |place| {
        let definition = union::<leaner::Broker, wider::Broker>();
        define::<leaner::Brokers>(&place, definition, "Start").await;
        let moves = [
            // Two states of the old graph that are one state in the new one.
            ("Running", "Standby", 6, true),
            ("Running", "Standby", 5, true),
            ("Standby", "Running", 6, true),
            ("Standby", "Running", 5, true),
            ("Running", "Running", 6, false),
            ("Standby", "Running", 7, false),
            ("Running", "Moving", 6, true),
            ("Standby", "Compacting", 6, true),
            ("Moving", "Compacting", 6, false),
            ("Moving", "Running", 6, true),
        ];
        check_moves::<leaner::Brokers>(&place.cluster(), (5, 1), &moves).await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn the_longest_rule_that_okt_writes_is_taken_and_a_longer_one_is_not() {
    on_kubernetes("the longest rule", async |place| {
        let crds: Api<CustomResourceDefinition> = Api::all(place.client.clone());
        let crowded = |states| okt_tests::definition::crowded::<first::Broker>(states);
        let fits = |states: &usize| crd_union::<first::Broker>(&crowded(*states)).is_ok();
        let most = (1..300).rev().find(fits).expect("some fit");
        let union = crd_union::<first::Broker>(&crowded(most)).expect("they fit");
        let rule = |crd: &CustomResourceDefinition| {
            json!(crd).pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/lifecycle/x-kubernetes-validations/1/rule")
                .and_then(Value::as_str).expect("a rule").to_owned()
        };
        println!("{most} states more: a rule of {} characters is taken", rule(&union).len());
        place.cluster::<first::Brokers>().define(union.clone()).await;
        let mut longer = json!(union);
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/lifecycle/x-kubernetes-validations/1/rule";
        let rule = rule(&union);
        let padded = format!("{rule}{}", " ".repeat(100_001 - rule.len()));
        *longer.pointer_mut(path).expect("a rule") = json!(padded);
        let mut longer: CustomResourceDefinition = serde_json::from_value(longer).expect("a CRD");
        let stored = crds.get("brokers.demo.okt.dev").await.expect("it is there");
        longer.metadata.resource_version = stored.metadata.resource_version;
        let refused = crds.replace("brokers.demo.okt.dev", &kube::api::PostParams::default(), &longer).await;
        let error = refused.expect_err("it is too long").to_string();
        assert!(error.contains("expression code point size exceeds limit: size: 100001, limit 100000"), "{error}");
    })
    .await;
}
