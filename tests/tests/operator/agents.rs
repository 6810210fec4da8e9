//! Applications whose agents do the work, under restarts, silence and competing operators.

mod stage;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use okt_agent::wire::{Fence, Phase, Seen};
use okt_tests::{DatabaseState::*, Databases, SiteState, Sites, assert_within};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use self::stage::{Machine, Operating, Reply, Stage, actions};

const WORKS: [&str; 4] = ["Start", "Running", "Servicing", "Stopping"];

const FORTY_MINUTES: Duration = Duration::from_mins(40);

async fn stage() -> Stage<Databases> {
    Stage::new().await
}

/// Sets a stage on which the database `db` is ready.
async fn running() -> (Stage<Databases>, Arc<Machine>, Operating) {
    let stage = stage().await;
    let machine = stage.machines.add("db", &WORKS).await;
    let operator = stage.operator(stage.agents());
    stage.create_ready("db", Running).await;
    (stage, machine, operator)
}

/// Sets a stage on which the database `db` is half a minute into the five minutes of its first work.
async fn at_work() -> (Stage<Databases>, Arc<Machine>, Operating) {
    let stage = stage().await;
    let machine = stage.machines.add("db", &WORKS).await;
    machine.script("Start", Reply::Takes(Duration::from_mins(5)));
    let operator = stage.operator(stage.agents());
    stage.create_in("db", Start).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    (stage, machine, operator)
}

/// Sets a stage on which the site `site` works in `Online` in this way.
async fn online(work: Reply) -> (Stage<Sites>, Arc<Machine>, Operating) {
    let stage = Stage::<Sites>::new().await;
    let works = ["Building", "Online", "Rebuilding", "Archived", "Gone"];
    let machine = stage.machines.add("site", &works).await;
    machine.script("Online", work);
    let operator = stage.operator(stage.agents());
    stage.create_in("site", SiteState::Online).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    (stage, machine, operator)
}

#[tokio::test(start_paused = true)]
async fn a_whole_life_needs_no_code_for_any_state() {
    let (stage, machine, _operator) = running().await;
    stage.visit("db", "Servicing", "1").await;
    stage.until_visited("db").await;
    stage.until_ready("db", Running).await;
    stage.delete_until_gone("db").await;
    let walk = ["Start", "Running", "Servicing", "Running", "Stopping"];
    assert_eq!(machine.begun(), walk);
    let left = actions(&stage.machines.client("db")).await;
    assert!(left.iter().all(|action| action.acknowledged), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn an_action_of_forty_minutes_blocks_no_other_object_and_survives_operator_restarts() {
    let stage = stage().await;
    let slow = stage.machines.add("slow", &WORKS).await;
    let quick = stage.machines.add("quick", &WORKS).await;
    slow.script("Start", Reply::Takes(FORTY_MINUTES));
    let operator = stage.operator(stage.agents());
    let begun = Instant::now();
    stage.create("slow", json!({})).await;
    stage
        .until_position("slow", "shows progress", |position| {
            let action = position.action.as_ref();
            action.is_some_and(|action| action.message == "50 %: half of it")
        })
        .await;

    stage.create_ready("quick", Running).await;
    assert_within(begun, Duration::from_mins(2));

    tokio::time::sleep(Duration::from_mins(10)).await;
    operator.kill().await;
    let operator = stage.operator(stage.agents());
    tokio::time::sleep(Duration::from_mins(10)).await;
    operator.stop().await;
    let _operator = stage.operator(stage.agents());
    stage.visit("quick", "Servicing", "1").await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(quick.begun(), ["Start", "Running", "Servicing", "Running"]);

    assert_eq!(slow.begun(), ["Start"]);
    stage.until_ready("slow", Running).await;
    assert_eq!(slow.begun(), ["Start", "Running"], "the work ran once");
    let took = begun.elapsed();
    assert!(
        took >= FORTY_MINUTES && took < FORTY_MINUTES + Duration::from_mins(1),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_operator_takes_the_result_of_work_that_ended_without_an_operator() {
    let (stage, machine, operator) = at_work().await;
    operator.kill().await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(machine.ended(), ["Start"]);
    let _operator = stage.operator(stage.agents());
    stage.until_ready("db", Running).await;
    assert_eq!(machine.begun(), ["Start", "Running"]);
}

#[tokio::test(start_paused = true)]
async fn work_with_an_unknown_outcome_takes_the_error_edge_at_once() {
    let (stage, machine, _operator) = at_work().await;
    machine.kill();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(stage.position("db").await.state.known(), Some(Start));
    machine.start().await;
    stage.until_in("db", Failed).await;
    let failure = stage.position("db").await.failure.expect("a failure");
    assert_eq!(failure.reason, "OutcomeUnknown");
    assert_eq!(machine.begun(), ["Start"], "no automatic retry");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_operator_does_not_repeat_work_with_an_unknown_outcome() {
    let (stage, machine, operator) = at_work().await;
    operator.kill().await;
    machine.restart().await;
    let _operator = stage.operator(stage.agents());
    stage.until_in("db", Failed).await;
    assert_eq!(machine.begun(), ["Start"]);
}

#[tokio::test(start_paused = true)]
async fn without_an_error_edge_an_unknown_outcome_stalls_the_object_until_its_spec_changes() {
    let (stage, machine, operator) = running().await;
    machine.script("Servicing", Reply::Takes(Duration::from_mins(5)));
    stage.visit("db", "Servicing", "1").await;
    stage.until_in("db", Servicing).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    machine.restart().await;
    machine.script("Servicing", Reply::Takes(Duration::from_secs(1)));
    stage
        .until_message("db", "Stalled", "OutcomeUnknown", "change the spec")
        .await;

    // A restart does not retry the work.
    operator.kill().await;
    machine.restart().await;
    let _operator = stage.operator(stage.agents());
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(machine.begun(), ["Start", "Running", "Servicing"]);

    stage
        .patch("db", json!({ "spec": { "storage": "2Gi" } }))
        .await;
    stage.until_ready("db", Running).await;
    assert_eq!(
        machine.begun(),
        ["Start", "Running", "Servicing", "Servicing", "Running"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_moves_nothing_and_makes_conditions_unknown() {
    let (stage, machine, _operator) = running().await;
    machine.see(Some(Seen::In {
        state: "Running".into(),
    }));
    machine.kill();
    stage.until_reason("db", "Ready", "Unreachable").await;
    assert_eq!(stage.shows("db", "Available").await, "Unknown Unreachable");
    tokio::time::sleep(Duration::from_mins(30)).await;
    let position = stage.position("db").await;
    assert_eq!(
        (position.state.known(), position.transition),
        (Some(Running), 2)
    );
    machine.start().await;
    stage.until_ready("db", Running).await;

    // The same for an application that does not answer its agent.
    machine.see(Some(Seen::Unreachable {
        why: "it hangs".into(),
    }));
    stage.until_reason("db", "Available", "Unreachable").await;
    assert_eq!(stage.position("db").await.transition, 2);
    assert_eq!(machine.begun(), ["Start", "Running"]);
}

#[tokio::test(start_paused = true)]
async fn observations_and_failures_of_an_agent_move_the_object() {
    let (stage, machine, _operator) = running().await;
    machine.see(Some(Seen::In {
        state: "Failed".into(),
    }));
    stage.until_in("db", Failed).await;
    machine.see(None);
    machine.script("Running", Reply::Fails("DiskBroken"));
    stage
        .ask_for("db", json!({ "state": "Running", "request": "2" }))
        .await;
    stage
        .until_position("db", "failed permanently", |position| {
            let failure = position.failure.as_ref();
            failure.is_some_and(|failure| failure.reason == "DiskBroken")
        })
        .await;
    assert_eq!(machine.begun(), ["Start", "Running", "Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_no_edge_leads_to_is_refused() {
    let stage = stage().await;
    let machine = stage.machines.add("db", &WORKS).await;
    machine.script("Stopping", Reply::Names("Running"));
    let _operator = stage.operator(stage.agents());
    stage.create("db", json!({ "state": "End" })).await;
    stage
        .until_message("db", "Stalled", "NoEdge", "`Running`")
        .await;
    assert_eq!(stage.position("db").await.state.known(), Some(Stopping));
}

#[tokio::test(start_paused = true)]
async fn the_older_of_two_operators_is_refused_and_changes_nothing() {
    let stage = stage().await;
    let machine = stage.machines.add("db", &WORKS).await;
    let (_, older) = watch::channel(4);
    let operator = stage.operator(stage.agents().epoch(older));
    stage.create_ready("db", Running).await;
    // The newer operator has called the agent; the older one does not know about it.
    let client = stage.machines.client("db");
    let action = client
        .status()
        .await
        .expect("an answer")
        .action
        .expect("an action");
    let ended = client.cancel(&action.id, 5).await.expect("it has ended");
    assert_eq!(ended.phase, Phase::Succeeded);

    stage.visit("db", "Servicing", "1").await;
    stage.until_in("db", Servicing).await;
    let version = stage.version("db").await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(machine.begun(), ["Start", "Running"]);
    assert_eq!(stage.version("db").await, version, "not even the status");
    let action = stage.position("db").await.action.expect("a pending action");
    assert_eq!(action.failure, None, "the action did not fail");
    operator.kill().await;

    let (_, newer) = watch::channel(5);
    let _operator = stage.operator(stage.agents().epoch(newer));
    stage.until_ready("db", Running).await;
    assert_eq!(
        machine.begun(),
        ["Start", "Running", "Servicing", "Running"]
    );
    let fence = client.status().await.expect("an answer").fence;
    let last = Fence {
        epoch: 5,
        transition: 4,
        run: 1,
        recorded_at: fence.recorded_at,
    };
    assert_eq!(fence, last);
    assert!(fence.recorded_at > Timestamp::UNIX_EPOCH);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_cancels_the_work_at_the_agent_before_the_next_begins() {
    let (stage, machine, _operator) = online(Reply::Forever(Duration::from_secs(3))).await;
    assert_eq!(machine.begun(), ["Building", "Online"]);
    stage
        .patch("site", json!({ "spec": { "theme": "loud" } }))
        .await;
    stage.until_in("site", SiteState::Rebuilding).await;
    machine.script("Online", Reply::Takes(Duration::from_secs(1)));
    stage.until_ready("site", SiteState::Online).await;
    assert_eq!(
        machine.begun(),
        ["Building", "Online", "Rebuilding", "Online"]
    );
    assert_eq!(
        machine.ended(),
        ["Building", "Online", "Rebuilding", "Online"]
    );
    let all = actions(&stage.machines.client("site")).await;
    let cancelled = all.iter().filter(|action| action.phase == Phase::Cancelled);
    assert!(
        cancelled.count() <= 1 && all.iter().all(|action| action.acknowledged),
        "{all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_restarted_operator_cancels_the_work_that_its_predecessor_left_behind() {
    let (stage, machine, operator) = online(Reply::Forever(Duration::ZERO)).await;
    operator.kill().await;
    stage
        .patch("site", json!({ "spec": { "theme": "loud" } }))
        .await;
    machine.script("Online", Reply::Takes(Duration::from_secs(1)));
    let _operator = stage.operator(stage.agents());
    stage.until_ready("site", SiteState::Online).await;
    assert_eq!(
        machine.begun(),
        ["Building", "Online", "Rebuilding", "Online"]
    );
    assert_eq!(
        machine.ended(),
        ["Building", "Online", "Rebuilding", "Online"]
    );
}
