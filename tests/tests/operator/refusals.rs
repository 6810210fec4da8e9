//! An API server that refuses or does not answer.

use std::time::Duration;

use okt::{GRAPH_ANNOTATION, Operator, OperatorError, crd};
use okt_testing::Fault;
use okt_tests::{
    Database, DatabaseState::*, Databases, OPERATOR, Rig, assert_contains, definition,
};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_reported_backed_off_and_made_once_it_is_allowed() {
    let rig = Rig::<Databases>::bare();
    rig.define(definition::without_an_edge()).await;
    rig.start();
    rig.create("db", json!({})).await;
    let stalled = rig.until_reason("db", "Stalled", "Refused").await;
    assert_contains(&stalled.message, "no edge from Start to Running");
    let page = include_str!("../../../docs/upgrades.md");
    let page = page.replace("Broker.demo.okt.dev \"b\"", "Database.demo.okt.dev \"db\"");
    assert_contains(&page, &format!("\n{}\n", stalled.message));
    assert_eq!(rig.shows("db", "Ready").await, "False Refused");
    assert_eq!(
        rig.shows("db", "Available").await,
        "False Start",
        "it is kept"
    );
    assert_eq!(rig.position("db").await.state.as_str(), "Start");
    rig.wire.clear();
    for _ in 0..60 {
        rig.pass(Duration::from_mins(1)).await;
        rig.request("db");
    }
    let writes = rig.wire.writes().len();
    println!("writes of an hour of refusals: {writes}");
    assert!((10..=25).contains(&writes), "{writes}");
    assert_eq!(
        rig.app.states("db"),
        [Start],
        "finished work does not run again"
    );
    rig.define(crd::<Database>().expect("a CRD")).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.app.states("db"), [Start, Running]);
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_api_are_backed_off_and_repeat_no_work() {
    for status in [403, 500, 503] {
        let rig = Rig::running().await;
        let outage = rig.inject(Fault::answer(status, "", "no").subresource("status"));
        rig.wire.clear();
        rig.ask_for("db", json!({ "state": "End" })).await;
        for _ in 0..60 {
            rig.pass(Duration::from_mins(1)).await;
            rig.request("db");
        }
        let writes = rig.wire.writes().len();
        println!("writes of an hour of {status}: {writes}");
        assert!((1..=150).contains(&writes), "{status}: {writes}");
        outage.end();
        rig.until_ready("db", End).await;
        assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_matching_definition_the_operator_does_nothing() {
    let older = definition::with_graph::<Database>(|mut graph| {
        let states = graph["states"].as_array_mut().expect("states");
        states.retain(|state| state["name"] != "Servicing");
        Some(graph)
    });
    let lacks_an_edge = definition::with_graph::<Database>(|mut graph| {
        graph["states"][0]["children"] = json!([]);
        Some(graph)
    });
    let lacks_a_field = definition::with_schema::<Database>(|schema| {
        schema
            .pointer_mut("/properties/status/properties/lifecycle/properties")
            .and_then(Value::as_object_mut)
            .expect("fields")
            .remove("trail");
    });
    let mut without_annotation = definition::with_graph::<Database>(|_| None);
    assert!(
        !without_annotation
            .metadata
            .annotations
            .get_or_insert_default()
            .contains_key(GRAPH_ANNOTATION)
    );
    let mut garbled = without_annotation.clone();
    garbled
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(GRAPH_ANNOTATION.to_owned(), "no JSON".to_owned());
    for (what, definition) in [
        ("older", older),
        ("lacks an edge", lacks_an_edge),
        ("lacks a field", lacks_a_field),
        ("without annotation", without_annotation),
        ("garbled", garbled),
    ] {
        let rig = Rig::<Databases>::bare();
        rig.define(definition).await;
        rig.start();
        rig.create("db", json!({})).await;
        rig.pass(Duration::from_mins(30)).await;
        assert_eq!(rig.wire.writes(), [""; 0], "{what}");
        assert_eq!(rig.app.ran(), [], "{what}");
        rig.define(crd::<Database>().expect("a CRD")).await;
        rig.pass(Duration::from_secs(10)).await;
        rig.until_ready("db", Running).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_loses_its_graph_stops_the_operator_until_it_is_repaired() {
    let rig = Rig::running().await;
    rig.define(definition::with_graph::<Database>(|_| None))
        .await;
    rig.pass(Duration::from_secs(1)).await;
    rig.wire.clear();
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.pass(Duration::from_mins(30)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    rig.define(crd::<Database>().expect("a CRD")).await;
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_waits_for_an_api_server_that_is_unreachable_at_the_start() {
    for fault in [
        Fault::break_connection(),
        Fault::unavailable(),
        Fault::no_answer(),
    ] {
        let rig = Rig::<Databases>::without_operator().await;
        let away = rig.inject(fault.times(5));
        rig.create("db", json!({})).await;
        rig.start();
        rig.until_ready("db", Running).await;
        assert_eq!(away.struck(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_waits_for_the_api_server_can_be_stopped() {
    let rig = Rig::<Databases>::without_operator().await;
    let away = rig.inject(Fault::break_connection());
    rig.start();
    rig.pass(Duration::from_mins(10)).await;
    let attempts = away.struck();
    println!("attempts in ten minutes: {attempts}");
    assert!((25..=45).contains(&attempts), "{attempts}");
    rig.stop().await;
}

#[tokio::test]
async fn an_operator_without_valid_credentials_ends_with_an_error() {
    let rig = Rig::<Databases>::without_operator().await;
    rig.inject(Fault::unauthorized());
    let operator = Operator::new(rig.server.client_named(OPERATOR), rig.app.clone());
    let error = operator.run(std::future::pending()).await;
    let error = error.expect_err("the operator does not wait for another token");
    assert!(matches!(error, OperatorError::NoContact(_)));
    assert_eq!(error.to_string(), "cannot reach the Kubernetes API");
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_operator_waits_for_its_permissions() {
    let rig = Rig::<Databases>::without_operator().await;
    let refused = rig.inject(Fault::forbidden());
    rig.start();
    rig.create("db", json!({})).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.ran().len(), 0);
    refused.end();
    rig.until_ready("db", Running).await;
}
