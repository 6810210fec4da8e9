//! What the application says of itself, and what follows from it.

use std::time::Duration;

use okt_tests::{DatabaseState::*, Reply, Rig, Sight};
use serde_json::json;

async fn running() -> Rig {
    let rig = Rig::new().await;
    rig.create("db", json!({})).await;
    rig.until_ready("db", Running).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn a_running_application_is_adopted_where_it_stands_with_a_warning() {
    let rig = Rig::new().await;
    rig.app.sees("db", Sight::In(Running));
    rig.create("db", json!({})).await;
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!((position.trail.as_str(), position.jumps), (">Running>", 1));
    assert_eq!(position.history[0].cause, "Jump:Adopted");
    assert_eq!(rig.app.states("db"), [Running], "its handler is told so");
    assert_eq!(rig.app.ran()[0].cause, Some(okt_runtime::Cause::Adopted));
    assert_eq!(rig.events().await, ["Warning JumpedToRunning"]);
}

#[tokio::test(start_paused = true)]
async fn an_application_seen_at_the_end_of_an_edge_goes_along_it() {
    let rig = running().await;
    rig.app.sees("db", Sight::In(Stopping));
    rig.until_in("db", End).await;
    let position = rig.position("db").await;
    assert_eq!(position.jumps, 0);
    assert_eq!(position.history[2].cause, "Observed");
    assert_eq!(rig.events().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_application_seen_where_no_edge_leads_is_followed_by_a_jump() {
    let rig = running().await;
    rig.app.next_time(
        Start,
        Reply::After(Duration::from_secs(5), okt_runtime::Answer::Next),
    );
    rig.app.sees("db", Sight::In(Start));
    rig.until_in("db", Start).await;
    rig.app.sees("db", Sight::Unobserved);
    rig.until_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!(position.trail, ">Start>Running>Start>Running>");
    assert_eq!(position.jumps, 1);
    assert_eq!(rig.events().await, ["Warning JumpedToStart"]);
}

#[tokio::test(start_paused = true)]
async fn a_holding_state_does_not_follow_but_says_what_is_seen() {
    let rig = running().await;
    rig.app.sees("db", Sight::Event(Running, Failed));
    rig.until_in("db", Failed).await;
    rig.app.sees("db", Sight::Event(Running, Running));
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("db").await.state.to_string(), "Failed");
    assert_eq!(rig.says("db", "Stalled").await, "True Failed");
    rig.ask_for("db", json!({ "request": "mended" })).await;
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn an_absent_application_is_made_anew() {
    let rig = running().await;
    rig.app.next_time(
        Start,
        Reply::After(Duration::from_secs(5), okt_runtime::Answer::Next),
    );
    rig.app.sees("db", Sight::Absent);
    rig.until_in("db", Start).await;
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.jumps, 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_is_said_after_three_looks_that_failed_and_unsaid_after_one_that_did_not() {
    let rig = running().await;
    rig.pass(Duration::from_secs(1)).await;
    rig.wire.clear();
    rig.app.sees("db", Sight::Unreachable);
    rig.pass(Duration::from_secs(65)).await;
    assert_eq!(rig.says("db", "Ready").await, "True Running");
    assert_eq!(rig.wire.writes(), [""; 0]);
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.says("db", "Ready").await, "Unknown Unreachable");
    assert_eq!(rig.says("db", "Available").await, "Unknown Unreachable");
    assert_eq!(rig.says("db", "Reconciling").await, "True Unreachable");
    rig.pass(Duration::from_mins(30)).await;
    assert_eq!(rig.wire.writes().len(), 1);
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.says("db", "Available").await,
        "True AcceptingConnections"
    );
    assert_eq!(rig.wire.writes().len(), 2);
    assert_eq!(rig.position("db").await.transition, 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_whose_application_cannot_be_asked_is_begun() {
    let rig = Rig::new().await;
    rig.app.sees("db", Sight::Unreachable);
    rig.create("db", json!({})).await;
    rig.until_in("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_object_whose_look_fails_waits_and_says_so() {
    let rig = Rig::new().await;
    rig.app.sees("db", Sight::Broken);
    rig.create("db", json!({})).await;
    let ready = rig.until_reason("db", "Ready", "ObservationFailed").await;
    assert_eq!(ready.status, "Unknown");
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.app.ran(), []);
    rig.app.sees("db", Sight::Absent);
    rig.until_in("db", Start).await;
}

#[tokio::test(start_paused = true)]
async fn a_state_of_its_own_moves_nothing_and_is_named() {
    let rig = running().await;
    rig.app.sees("db", Sight::Named("Vacuuming"));
    let ready = rig.until_reason("db", "Ready", "UnforeseenState").await;
    assert_eq!(ready.status, "Unknown");
    assert!(ready.message.contains("`Vacuuming`"), "{}", ready.message);
    rig.wire.clear();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    rig.app.sees("db", Sight::Named("Reindexing"));
    rig.pass(Duration::from_mins(1)).await;
    let ready = rig.condition("db", "Ready").await.expect("a condition");
    assert!(ready.message.contains("`Reindexing`"), "{}", ready.message);
    // The other rules go on.
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_or_panics_moves_nothing_and_is_said_after_three() {
    for sight in [Sight::Broken, Sight::Panics] {
        let rig = running().await;
        rig.app.sees("db", sight);
        let ready = rig.until_reason("db", "Ready", "ObservationFailed").await;
        assert_eq!(ready.status, "Unknown");
        assert_eq!(rig.position("db").await.transition, 2);
        rig.app.sees("db", Sight::In(Running));
        rig.until_ready("db", Running).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_hangs_counts_as_unreachable() {
    let rig = running().await;
    rig.app.sees("db", Sight::Hangs);
    let ready = rig.until_reason("db", "Ready", "Unreachable").await;
    assert!(
        ready.message.contains("no answer within 10 s"),
        "{}",
        ready.message
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_trigger_does_not_wait_for_the_action_in_flight() {
    let rig = Rig::new().await;
    rig.app.next_time(Running, Reply::UntilCancelled);
    rig.create("db", json!({})).await;
    rig.until_in("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.app.sees("db", Sight::Event(Running, Failed));
    rig.request("db");
    rig.until_in("db", Failed).await;
    assert_eq!(rig.app.cancelled(), 1);
    assert_eq!(rig.position("db").await.history[2].cause, "Observed");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_names_no_edge_moves_nothing_and_writes_nothing() {
    let rig = running().await;
    rig.wire.clear();
    rig.app.sees("db", Sight::Event(Running, End));
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.position("db").await.transition, 2);
    assert_eq!(rig.wire.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_look_begun_before_the_work_ended_does_not_judge_it() {
    let rig = Rig::new().await;
    // The look sees the server where it was before the work of Running was done.
    rig.app.next_time(
        Running,
        Reply::After(Duration::from_secs(32), okt_runtime::Answer::Stay),
    );
    rig.create("db", json!({})).await;
    rig.until_in("db", Running).await;
    rig.app
        .sees("db", Sight::Slow(Duration::from_secs(5), Start));
    rig.pass(Duration::from_secs(34)).await;
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.jumps, 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_named_often_is_looked_at_as_rarely_afterwards() {
    let rig = Rig::new().await;
    rig.create("db", json!({})).await;
    rig.until_ready("db", Running).await;
    for _ in 0..3000 {
        rig.request("db");
        rig.pass(Duration::from_millis(10)).await;
    }
    let before = rig.app.observations();
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.app.observations() - before, 10, "one in 30 s");
}
