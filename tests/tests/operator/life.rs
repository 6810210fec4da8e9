//! The whole lifecycle of an object: creation, desired states, visits, deletion.

use std::time::Duration;

use okt::VisitOutcome;
use okt_tests::{DatabaseState::*, Rig};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_new_object_enters_its_entry_and_comes_to_rest_where_the_graph_says() {
    let rig = Rig::new().await;
    rig.create("db", json!({})).await;
    let database = rig.until_ready("db", Running).await;
    let position = database
        .status
        .expect("a status")
        .lifecycle
        .expect("a position");
    assert_eq!(position.trail, ">Start>Running>");
    assert_eq!((position.transition, position.jumps), (2, 0));
    let ran: Vec<_> = rig
        .app
        .ran()
        .into_iter()
        .map(|ran| (ran.state, ran.attempt))
        .collect();
    assert_eq!(ran, [(Start, 1), (Running, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_settled_object_causes_no_request() {
    let rig = Rig::new().await;
    rig.create("db", json!({})).await;
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_secs(5)).await;
    let settled = rig.server.mark();
    rig.pass(Duration::from_mins(20)).await;
    let requests: Vec<_> = rig.server.requests_since(settled);
    assert!(
        requests.iter().all(|request| !request.is_write()),
        "{requests:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_visit_is_made_once_and_the_object_returns() {
    let rig = Rig::new().await;
    rig.create("db", json!({})).await;
    rig.until_ready("db", Running).await;
    rig.ask_for(
        "db",
        json!({ "visit": { "state": "Servicing", "request": "nightly-1" } }),
    )
    .await;
    let database = rig
        .until("db", "has made its visit", |database| {
            let position = database.status.as_ref().and_then(|s| s.lifecycle.as_ref());
            position
                .and_then(|p| p.visit.as_ref())
                .is_some_and(|v| v.outcome == VisitOutcome::Reached)
        })
        .await;
    assert!(database.status.is_some());
    let database = rig.until_ready("db", Running).await;
    let position = database
        .status
        .expect("a status")
        .lifecycle
        .expect("a position");
    assert_eq!(position.trail, ">Start>Running>Servicing>Running>");
}

#[tokio::test(start_paused = true)]
async fn deletion_follows_the_graph_to_a_leaf_and_then_removes_the_object() {
    let rig = Rig::new().await;
    rig.create("db", json!({})).await;
    rig.until_ready("db", Running).await;
    rig.delete("db").await;
    rig.until_gone("db").await;
    let states: Vec<_> = rig.app.ran().into_iter().map(|ran| ran.state).collect();
    assert_eq!(states, [Start, Running, Stopping]);
}
