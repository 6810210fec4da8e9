//! `Wait`: OKT calls the handler again later and records nothing.

use std::time::Duration;

use okt::Answer;
use okt_tests::{DatabaseState::*, Reply, Rig};
use serde_json::json;

fn wait(seconds: u64) -> Reply {
    Reply::Answer(Answer::Wait(Duration::from_secs(seconds)))
}

#[tokio::test(start_paused = true)]
async fn waiting_keeps_id_and_attempt_and_writes_nothing() {
    let rig = Rig::new().await;
    rig.app.next_times(5, Start, &wait(10));
    rig.create_in("db", Start).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.writes_nothing_for(Duration::from_secs(45)).await;
    rig.until_ready("db", Running).await;
    let ran = rig.app.ran();
    let start: Vec<_> = ran.iter().filter(|ran| ran.state == Start).collect();
    assert_eq!(start.len(), 6);
    assert!(
        start
            .iter()
            .all(|ran| ran.id == start[0].id && ran.attempt == 1 && !ran.resumed)
    );
    for pair in start.windows(2) {
        let gap = pair[1].at - pair[0].at;
        assert!((9.9..10.2).contains(&gap.as_secs_f64()), "{gap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_request_ends_a_wait_at_once() {
    let rig = Rig::new().await;
    rig.app.next_time(Start, wait(3000));
    rig.create_in("db", Start).await;
    rig.pass(Duration::from_secs(5)).await;
    rig.patch("db", json!({ "metadata": { "labels": { "a": "b" } } }))
        .await;
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(rig.app.ran().len(), 1, "a label is no reconcile request");
    rig.request("db");
    rig.pass(Duration::from_secs(1)).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.app.ran()[1].attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_request_during_a_run_outlives_the_wait_that_the_run_returns() {
    let rig = Rig::new().await;
    let long = Duration::from_mins(50);
    rig.app.next_time(
        Start,
        Reply::After(Duration::from_secs(10), Answer::Wait(long)),
    );
    rig.create_in("db", Start).await;
    rig.pass(Duration::from_secs(5)).await;
    rig.request("db");
    rig.pass(Duration::from_secs(10)).await;
    rig.until_ready("db", Running).await;
    let ran = rig.app.ran();
    let gap = ran[1].at - ran[0].at;
    assert!(gap < Duration::from_secs(12), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_zero_does_not_spin() {
    let rig = Rig::new().await;
    rig.app.next_times(1000, Start, &wait(0));
    rig.create_in("db", Start).await;
    rig.pass(Duration::from_secs(10)).await;
    let ran = rig.app.ran().len();
    assert!((50..=110).contains(&ran), "{ran}");
}

#[tokio::test(start_paused = true)]
async fn a_resting_state_may_be_left_while_its_work_waits() {
    let rig = Rig::new().await;
    rig.app.next_time(Running, wait(3000));
    rig.create_in("db", Running).await;
    rig.pass(Duration::from_secs(5)).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
}
