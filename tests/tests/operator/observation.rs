//! Observations of the application, and their effects.

use std::time::Duration;

use okt_tests::{DatabaseState::*, Reply, Rig, Sight, assert_contains};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_running_application_is_adopted_in_its_state_with_a_warning() {
    let rig = Rig::new().await;
    rig.app.sees("db", Sight::In(Running));
    rig.create_ready("db", Running).await;
    let position = rig.position("db").await;
    assert_eq!((position.trail.as_str(), position.jumps), (">Running>", 1));
    assert_eq!(position.history[0].cause, "Jump:Adopted");
    assert_eq!(rig.app.states("db"), [Running], "its handler runs");
    assert_eq!(rig.app.ran()[0].cause, Some(okt::Cause::Adopted));
    assert_eq!(rig.events().await, ["Warning JumpedToRunning"]);
}

#[tokio::test(start_paused = true)]
async fn an_application_observed_at_the_end_of_an_edge_takes_that_edge() {
    let rig = Rig::running().await;
    rig.app.sees("db", Sight::In(Stopping));
    rig.until_in("db", End).await;
    let position = rig.position("db").await;
    assert_eq!(position.jumps, 0);
    assert_eq!(position.history[2].cause, "Observed");
    let stalled = "Warning End";
    assert_eq!(rig.events().await, [stalled], "no jump");
}

#[tokio::test(start_paused = true)]
async fn an_application_observed_where_no_edge_leads_causes_a_jump() {
    let rig = Rig::running().await;
    rig.app.next_time(
        Start,
        Reply::After(Duration::from_secs(5), okt::Answer::Next),
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
async fn a_holding_state_does_not_follow_an_observation() {
    let rig = Rig::running().await;
    rig.app.sees("db", Sight::Event(Running, Failed));
    rig.until_in("db", Failed).await;
    rig.app.sees("db", Sight::Event(Running, Running));
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("db").await.state.to_string(), "Failed");
    assert_eq!(rig.shows("db", "Stalled").await, "True Failed");
    rig.ask_for("db", json!({ "request": "mended" })).await;
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_tolerated_absence_counts_after_its_time_in_a_row() {
    let rig = Rig::running().await;
    let absent = Sight::AbsentFor(Duration::from_secs(100));
    rig.app.sees("db", absent.clone());
    rig.pass(Duration::from_secs(90)).await;
    rig.app.sees("db", Sight::Unreachable);
    rig.pass(Duration::from_secs(5)).await;
    rig.app.sees("db", Sight::In(Running));
    rig.request("db");
    rig.pass(Duration::from_secs(1)).await;
    rig.app.sees("db", absent);
    rig.request("db");
    rig.pass(Duration::from_secs(98)).await;
    assert_eq!(rig.position("db").await.jumps, 0);
    rig.pass(Duration::from_secs(4)).await;
    assert_eq!(rig.position("db").await.jumps, 1);
}

#[tokio::test(start_paused = true)]
async fn an_absent_application_is_started_again() {
    let rig = Rig::running().await;
    rig.app.next_time(
        Start,
        Reply::After(Duration::from_secs(5), okt::Answer::Next),
    );
    rig.app.sees("db", Sight::Absent);
    rig.until_in("db", Start).await;
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.jumps, 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_is_reported_after_three_failed_observations_and_cleared_by_one_that_succeeds() {
    let rig = Rig::running().await;
    rig.pass(Duration::from_secs(1)).await;
    rig.wire.clear();
    rig.app.sees("db", Sight::Unreachable);
    rig.pass(Duration::from_secs(65)).await;
    assert_eq!(rig.shows("db", "Ready").await, "True Running");
    assert_eq!(rig.wire.writes(), [""; 0]);
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.shows("db", "Ready").await, "Unknown Unreachable");
    assert_eq!(rig.shows("db", "Available").await, "Unknown Unreachable");
    assert_eq!(rig.shows("db", "Reconciling").await, "True Unreachable");
    rig.pass(Duration::from_mins(30)).await;
    assert_eq!(rig.wire.writes().len(), 1);
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.shows("db", "Available").await,
        "True AcceptingConnections"
    );
    assert_eq!(rig.wire.writes().len(), 2);
    assert_eq!(rig.position("db").await.transition, 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_with_an_unreachable_application_is_started() {
    let rig = Rig::new().await;
    rig.app.sees("db", Sight::Unreachable);
    rig.create_in("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_object_whose_observation_fails_waits_and_reports_it() {
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
async fn an_undeclared_state_moves_nothing_and_is_reported() {
    let rig = Rig::running().await;
    rig.app.sees("db", Sight::Named("Vacuuming"));
    let ready = rig.until_reason("db", "Ready", "UnforeseenState").await;
    assert_eq!(ready.status, "Unknown");
    assert_contains(&ready.message, "`Vacuuming`");
    rig.writes_nothing_for(Duration::from_mins(10)).await;
    rig.app.sees("db", Sight::Named("Reindexing"));
    rig.pass(Duration::from_mins(1)).await;
    let ready = rig.condition("db", "Ready").await.expect("a condition");
    assert_contains(&ready.message, "`Reindexing`");
    // The other rules still apply.
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn an_observation_that_fails_or_panics_moves_nothing_and_is_reported() {
    for sight in [Sight::Broken, Sight::Panics] {
        let rig = Rig::running().await;
        rig.app.sees("db", sight);
        let ready = rig.until_reason("db", "Ready", "ObservationFailed").await;
        assert_eq!(ready.status, "Unknown");
        assert_eq!(rig.position("db").await.transition, 2);
        rig.app.sees("db", Sight::In(Running));
        rig.until_ready("db", Running).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_observation_that_hangs_counts_as_unreachable() {
    let rig = Rig::running().await;
    rig.app.sees("db", Sight::Hangs);
    rig.until_message("db", "Ready", "Unreachable", "no answer within 10 s")
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_trigger_does_not_wait_for_the_action_in_flight() {
    let rig = Rig::new().await;
    rig.cancel_work(Reply::UntilCancelled).await;
    assert_eq!(rig.app.cancelled(), 1);
    assert_eq!(rig.position("db").await.history[2].cause, "Observed");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_names_no_edge_moves_nothing_and_writes_nothing() {
    let rig = Rig::running().await;
    rig.wire.clear();
    rig.app.sees("db", Sight::Event(Running, End));
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.position("db").await.transition, 2);
    assert_eq!(rig.wire.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_observation_begun_before_the_work_ended_is_ignored() {
    let rig = Rig::new().await;
    // The observation reports where the server was before the work of Running ended.
    rig.app.next_time(
        Running,
        Reply::After(Duration::from_secs(32), okt::Answer::Stay),
    );
    rig.create_in("db", Running).await;
    rig.app
        .sees("db", Sight::Slow(Duration::from_secs(5), Start));
    rig.pass(Duration::from_secs(34)).await;
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
    assert_eq!(rig.position("db").await.jumps, 0);
}

#[tokio::test(start_paused = true)]
async fn many_reconcile_requests_do_not_shorten_the_observation_interval_afterwards() {
    let rig = Rig::running().await;
    for _ in 0..3000 {
        rig.request("db");
        rig.pass(Duration::from_millis(10)).await;
    }
    let before = rig.app.observations();
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.app.observations() - before, 10, "one in 30 s");
}
