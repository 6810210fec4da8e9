//! These tests check the validation rules of a CRD on a real API server: what they refuse, and with which message.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use okt::{LifecycleObject, crd, crd_union};
use okt_tests::releases::{first, leaner, renamed, wider};
use okt_tests::rollout::Place;
use okt_tests::{Cluster, Database, Databases, Served};
use serde_json::{Value, json};

use crate::on_kubernetes;

/// Returns the message of a rule, without the common beginning of all messages.
fn words(written: Result<(), kube::Error>) -> String {
    match written {
        Ok(()) => "accepted".to_owned(),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            let (_, words) = status.message.split_once("is invalid: ").expect("a reason");
            words.to_owned()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Writes two statuses and returns the answer to the second one; the first one may be null.
async fn answer<A: Served>(place: &Place, name: &str, first: Value, second: Value) -> String {
    let cluster: Cluster<A> = place.cluster();
    cluster.create_raw(A::object(name, json!({}))).await;
    if !first.is_null() {
        let first = cluster.patch_status(name, first).await;
        assert_eq!(words(first), "accepted", "{name}");
    }
    words(cluster.patch_status(name, second).await)
}

fn at(state: &str, transition: u64, jumps: u64) -> Value {
    json!({ "lifecycle": { "state": state, "transition": transition, "jumps": jumps } })
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn every_rule_refuses_with_a_message_that_a_user_understands() {
    on_kubernetes("the rules of a definition", async |place| {
        let cluster: Cluster<Databases> = place.cluster();
        cluster.define(crd::<Database>().expect("a CRD")).await;
        let no_edge = |from: &str, to: &str| {
            format!("status.lifecycle: Forbidden: the graph has no edge from {from} to {to}, and `jumps` counts no jump")
        };
        let counts = "status.lifecycle: Forbidden: `transition` goes up by one with each change of state, and only then";
        let first = "status.lifecycle: Forbidden: the first state of an object is Start; another one is a jump, which `jumps` counts";
        let shape = |condition: Value| json!({ "conditions": [condition] });
        for (what, before, after, said) in [
            ("an edge", at("Start", 1, 0), at("Running", 2, 0), "accepted".to_owned()),
            ("no edge", at("Start", 1, 0), at("Stopping", 2, 0), no_edge("Start", "Stopping")),
            ("no state", at("Start", 1, 0), at("Zombie", 2, 0), no_edge("Start", "Zombie")),
            ("a jump", at("Start", 1, 0), at("Stopping", 2, 1), "accepted".to_owned()),
            ("transition goes down", at("Running", 5, 1), at("Running", 4, 1), counts.to_owned()),
            ("transition stands still", at("Running", 5, 1), at("Stopping", 5, 1), counts.to_owned()),
            ("transition leaps", at("Running", 5, 1), at("Stopping", 7, 1), counts.to_owned()),
            ("transition without a move", at("Running", 5, 1), at("Running", 6, 1), counts.to_owned()),
            ("jumps goes down", at("Running", 5, 2), at("Running", 5, 1), "status.lifecycle: Forbidden: `jumps` never goes down".to_owned()),
            ("a leaf is left for the entry", at("End", 5, 1), at("Start", 6, 1), "accepted".to_owned()),
            ("a leaf is left for another state", at("End", 5, 1), at("Running", 6, 1), no_edge("End", "Running")),
            ("the first state is the entry", Value::Null, at("Start", 1, 0), "accepted".to_owned()),
            ("the first state is a jump", Value::Null, at("Running", 1, 1), "accepted".to_owned()),
            ("the first state is another", Value::Null, at("Running", 1, 0), first.to_owned()),
            ("a backup is restored", Value::Null, at("Running", 7, 0), "accepted".to_owned()),
            ("the lifecycle goes", at("Start", 1, 0), json!({ "lifecycle": null }), "status: Forbidden: a recorded lifecycle cannot be removed".to_owned()),
            (
                "a condition without a reason",
                Value::Null,
                shape(json!({ "type": "Ready", "status": "True", "message": "", "lastTransitionTime": "2026-11-21T09:00:00Z" })),
                "status.conditions[0].reason: Required value".to_owned(),
            ),
            (
                "a condition of another status",
                Value::Null,
                shape(json!({ "type": "Ready", "status": "Maybe", "reason": "Running", "message": "", "lastTransitionTime": "2026-11-21T09:00:00Z" })),
                "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"True\", \"False\", \"Unknown\"".to_owned(),
            ),
        ] {
            let name = what.replace(' ', "-");
            let answered = answer::<Databases>(&place, &name, before, after).await;
            println!("{what}: {answered}");
            assert!(answered.contains(&said), "{what}: {answered} is not {said}");
        }
    })
    .await;
}

/// Applies a CRD, and waits until the server uses it.
async fn define<A: Served>(place: &Place, definition: CustomResourceDefinition, probe: &str) {
    place.cluster::<A>().define(definition).await;
    // The server takes a moment to use a changed CRD.
    for number in 0.. {
        let name = format!("probe-{number}-{}", probe.to_lowercase());
        let answered = answer::<A>(place, &name, Value::Null, at(probe, 1, 0)).await;
        if answered == "accepted" {
            return;
        }
        assert!(number < 12_000, "{answered}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Checks that each move, from a transition number and a number of jumps, is accepted or refused as expected.
async fn judged<A: Served>(
    place: &Place,
    (transition, jumps): (u64, u64),
    moves: &[(&str, &str, u64, bool)],
) {
    for (number, (from, to, next, accepted)) in moves.iter().enumerate() {
        let name = format!("b-{number}");
        let (before, after) = (at(from, transition, jumps), at(to, *next, jumps));
        let answered = answer::<A>(place, &name, before, after).await;
        println!("{from} to {to}, transition {next}: {answered}");
        assert_eq!(
            answered == "accepted",
            *accepted,
            "{from} to {to}: {answered}"
        );
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
        judged::<renamed::Brokers>(&place, (1, 0), &moves).await;
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
        judged::<leaner::Brokers>(&place, (5, 1), &moves).await;
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
