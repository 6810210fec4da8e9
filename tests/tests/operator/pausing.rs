//! A pause: no work begins, no transition happens, no result is lost.

use std::time::Duration;

use okt::{Answer, PAUSED_ANNOTATION};
use okt_tests::{DatabaseState::*, Reply, Rig, Sight};
use serde_json::json;

async fn pause(rig: &Rig, paused: bool) {
    rig.annotate("db", PAUSED_ANNOTATION, paused.then_some("true"))
        .await;
    rig.pass(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_makes_no_transition_and_goes_on_where_it_was() {
    let rig = Rig::running().await;
    pause(&rig, true).await;
    assert_eq!(rig.shows("db", "Paused").await, "True Paused");
    assert_eq!(rig.shows("db", "Ready").await, "True Running");
    rig.ask_for("db", json!({ "state": "End" })).await;
    let ready = rig.until_reason("db", "Ready", "Paused").await;
    assert_eq!(ready.status, "False");
    rig.wire.clear();
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.position("db").await.transition, 2);
    assert_eq!(rig.wire.writes(), [""; 0]);
    pause(&rig, false).await;
    rig.until_ready("db", End).await;
    assert_eq!(rig.shows("db", "Paused").await, "False NotPaused");
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_whose_desired_state_is_reached_again_is_ready_also_after_a_restart() {
    let rig = Rig::running().await;
    pause(&rig, true).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_reason("db", "Ready", "Paused").await;
    rig.restart().await;
    rig.ask_for("db", json!({ "state": "Running" })).await;
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_object_that_is_paused_is_not_started() {
    let rig = Rig::new().await;
    let mut object = <okt_tests::Databases as okt_tests::Served>::object("db", json!({}));
    object["metadata"]["annotations"] = json!({ PAUSED_ANNOTATION: "true" });
    rig.create_raw(object).await;
    rig.until_reason("db", "Ready", "Paused").await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran(), []);
    pause(&rig, false).await;
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_for_the_end_of_the_pause_and_is_not_lost() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::After(Duration::from_secs(30), Answer::Next));
    rig.create_in("db", Start).await;
    pause(&rig, true).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ended(), 1, "running work may end");
    assert_eq!(rig.position("db").await.transition, 1);
    pause(&rig, false).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.app.states("db"), [Start, Running]);
}

#[tokio::test(start_paused = true)]
async fn observation_goes_on_while_a_result_waits_for_the_end_of_the_pause() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::After(Duration::from_secs(30), Answer::Next));
    rig.create_in("db", Start).await;
    pause(&rig, true).await;
    rig.pass(Duration::from_mins(1)).await;
    rig.app.sees("db", Sight::Unreachable);
    let available = rig.until_reason("db", "Available", "Unreachable").await;
    assert_eq!(available.status, "Unknown");
    rig.app.sees("db", Sight::Unobserved);
    pause(&rig, false).await;
    rig.until_ready("db", Running).await;
    assert_eq!(rig.app.states("db"), [Start, Running]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_retried_or_resumed_during_a_pause() {
    let rig = Rig::new().await;
    rig.app.next_time(Start, Reply::Fail("not yet"));
    rig.create("db", json!({})).await;
    rig.until_reason("db", "Ready", "Refused").await;
    pause(&rig, true).await;
    rig.pass(Duration::from_mins(10)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran().len(), 1);
    pause(&rig, false).await;
    rig.until_ready("db", Running).await;
    let attempts: Vec<_> = rig.app.ran().iter().map(|ran| ran.attempt).collect();
    assert_eq!(attempts, [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn observation_and_conditions_go_on_during_a_pause() {
    let rig = Rig::running().await;
    pause(&rig, true).await;
    rig.app.sees("db", Sight::Unreachable);
    let ready = rig.until_reason("db", "Ready", "Unreachable").await;
    assert_eq!(ready.status, "Unknown");
    rig.app.sees("db", Sight::In(Start));
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(
        rig.position("db").await.transition,
        2,
        "no transition follows"
    );
}

#[tokio::test(start_paused = true)]
async fn deletion_ignores_a_pause() {
    let rig = Rig::running().await;
    pause(&rig, true).await;
    rig.delete_until_gone("db").await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
}
