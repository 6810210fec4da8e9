//! The gate: acts only while it leads.

use std::time::Duration;

use okt_runtime::Answer;
use okt_tests::{DatabaseState::*, Databases, Reply, Rig};
use serde_json::json;
use tokio::sync::watch;

async fn gated(leading: bool) -> (Rig, watch::Sender<bool>) {
    let (gate, leads) = watch::channel(leading);
    let mut rig = Rig::<Databases>::without_operator().await;
    rig.options.gate = Some(leads);
    rig.start();
    (rig, gate)
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_does_not_lead_does_nothing() {
    let (rig, gate) = gated(false).await;
    rig.create("db", json!({})).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!((rig.app.ran().len(), rig.app.looks()), (0, 0));
    gate.send_replace(true);
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_gate_stops_new_actions_at_once_and_what_runs_is_taken_up_when_it_is_regained() {
    let (rig, gate) = gated(true).await;
    rig.app
        .next_time(Start, Reply::After(Duration::from_secs(30), Answer::Next));
    rig.create("db", json!({})).await;
    rig.until_in("db", Start).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.wire.clear();
    gate.send_replace(false);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(
        (rig.app.ran().len(), rig.app.ended()),
        (1, 1),
        "what runs is let end"
    );
    gate.send_replace(true);
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.app.states("db"),
        [Start, Running],
        "its result was kept"
    );
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_the_gate() {
    let (rig, gate) = gated(true).await;
    rig.app.next_time(Start, Reply::Fail("not yet"));
    rig.create("db", json!({})).await;
    rig.until_reason("db", "Ready", "Refused").await;
    gate.send_replace(false);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran().len(), 1);
    gate.send_replace(true);
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn what_another_leader_did_meanwhile_stands() {
    let (rig, gate) = gated(true).await;
    let late = Answer::To(okt_runtime::Lifecycle::id(Failed));
    rig.app
        .next_time(Start, Reply::After(Duration::from_secs(30), late));
    rig.create("db", json!({})).await;
    rig.until_in("db", Start).await;
    rig.pass(Duration::from_secs(1)).await;
    gate.send_replace(false);
    // The other leader has the same application, and goes on under the same id.
    let other = okt_runtime::Operator::new(rig.client.clone(), rig.app.clone()).virtual_time();
    let other = tokio::spawn(other.run(std::future::pending()));
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_mins(5)).await;
    other.abort();
    let _ = other.await;
    gate.send_replace(true);
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("db").await.trail, ">Start>Running>");
    let ran = rig.app.ran();
    assert_eq!(ran[0].id, ran[1].id);
    assert!(ran[1].resumed);
}
