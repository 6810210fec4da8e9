//! What handlers remember, and steps that they need not repeat: recorded with the transition, with the end of an attempt,
//! or at once, and by nobody else.

use std::time::Duration;

use okt::reasons;
use okt_testing::Fault;
use okt_tests::{Broker, BrokerState, Brokers, Resize, Rig, STEPS, assert_contains};
use serde_json::{Value, json};

/// The writes of the status of a resize without steps: two transitions, and that the resources of the idle state are ready.
const RESIZE: usize = 3;

type Cluster = Rig<Brokers>;

/// Returns a broker of three nodes that runs.
async fn running() -> Cluster {
    let rig = Cluster::of().await;
    rig.create_with("a", json!({ "nodes": 3 })).await;
    rig.until_ready("a", BrokerState::Running).await;
    rig
}

async fn resize(rig: &Cluster, nodes: u32) {
    rig.patch("a", json!({ "spec": { "nodes": nodes } })).await;
}

async fn recorded(rig: &Cluster) -> Value {
    rig.json("a").await["status"]["lifecycle"]["memory"]["value"].clone()
}

fn remembers(nodes: u32) -> impl Fn(&Broker) -> bool {
    move |broker| {
        let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        let memory = position.and_then(|it| it.memory.as_ref());
        memory.is_some_and(|memory| memory.value["nodes"] == nodes)
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_remembers_is_written_with_the_transition_and_resources_see_it_then() {
    let rig = running().await;
    assert_eq!(recorded(&rig).await, json!({ "nodes": 3 }));
    assert_eq!(rig.text("a").await.as_deref(), Some("3"));

    rig.wire.clear();
    rig.app.resizes.lock().push_back(Resize::Hangs);
    resize(&rig, 5).await;
    rig.until_in("a", BrokerState::Resizing).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("3"), "not recorded");

    rig.restart().await;
    rig.until("a", "remembers 5", remembers(5)).await;
    rig.until_ready("a", BrokerState::Running).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("5"));
    let of_status = |it: &&String| it.ends_with("/brokers/a/status");
    let writes = rig.wire.writes();
    let count = writes.iter().filter(of_status).count();
    assert_eq!(count, RESIZE, "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_records_what_it_remembers_and_the_next_one_finds_it() {
    let rig = running().await;
    rig.app.resizes.lock().extend([Resize::Fails, Resize::Done]);
    resize(&rig, 4).await;
    rig.until("a", "remembers 4", remembers(4)).await;
    rig.until_in("a", BrokerState::Broken).await;
    assert_eq!(recorded(&rig).await["note"], "attempt 1");
    let found: Vec<u32> = rig.app.found.lock().iter().map(|it| it.nodes).collect();
    assert_eq!(found, [3]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_changes_is_reported_and_not_obeyed_until_it_is_accepted() {
    let rig = running().await;
    let edit = |memory: Value| json!({ "lifecycle": { "memory": memory } });
    let shrunk = edit(json!({ "value": { "nodes": 1 } }));
    rig.patch_status("a", shrunk).await.expect("a status");
    let part = "somebody else than the operator has changed `value`";
    rig.until_message("a", "Stalled", reasons::UNDECODABLE, part)
        .await;
    resize(&rig, 4).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("3"), "it was obeyed");
    assert_eq!(rig.position("a").await.state.as_str(), "Running");

    let restored = edit(json!({ "value": { "nodes": 3 } }));
    rig.patch_status("a", restored).await.expect("a status");
    rig.until("a", "remembers 4", remembers(4)).await;
    rig.until_ready("a", BrokerState::Running).await;

    let accepted = edit(json!({ "value": { "nodes": 2 }, "sum": null }));
    rig.patch_status("a", accepted).await.expect("a status");
    rig.until("a", "is sealed again", |broker| {
        let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        let memory = position.and_then(|it| it.memory.as_ref());
        memory.is_some_and(|memory| memory.sum.is_some() && memory.value["nodes"] == 2)
    })
    .await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_no_longer_decodes_is_reported_and_nothing_acts_on_a_default() {
    let rig = running().await;
    // A release before this one had larger numbers.
    let large = json!({ "value": { "nodes": 5_000_000_000_u64 }, "sum": null });
    let large = json!({ "lifecycle": { "memory": large } });
    rig.patch_status("a", large).await.expect("a status");
    let part = "status.lifecycle.memory.value: invalid value";
    rig.until_message("a", "Stalled", reasons::UNDECODABLE, part)
        .await;
    resize(&rig, 4).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("3"));
    assert_eq!(recorded(&rig).await, json!({ "nodes": 5_000_000_000_u64 }));
}

#[tokio::test(start_paused = true)]
async fn sixteen_kilobytes_are_remembered_and_one_more_byte_is_refused() {
    let rig = running().await;
    let others = r#"{"nodes":3,"note":""}"#.len();
    let most = 16 * 1024 - others;
    rig.app
        .resizes
        .lock()
        .extend([Resize::Notes(most), Resize::Notes(most + 1)]);
    resize(&rig, 4).await;
    rig.until("a", "remembers much", |broker| {
        let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        position.is_some_and(|it| it.memory.as_ref().is_some_and(|it| it.len() == 16 * 1024))
    })
    .await;
    rig.until_ready("a", BrokerState::Running).await;
    resize(&rig, 5).await;
    rig.until_in("a", BrokerState::Broken).await;
    let part = "takes 16385 bytes, and 16384 at most";
    check_failure(&rig, reasons::BAD_MEMORY, part).await;
    assert_eq!(
        recorded(&rig).await["note"].as_str().map(str::len),
        Some(most)
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_or_loses_its_answer_loses_nothing_that_was_remembered() {
    for fault in [Fault::conflict(), Fault::break_connection().after_commit()] {
        let rig = running().await;
        let fault = rig.inject(fault.subresource("status").every(2));
        resize(&rig, 7).await;
        rig.until("a", "remembers 7", remembers(7)).await;
        rig.until_ready("a", BrokerState::Running).await;
        assert!(fault.struck() > 0);
    }
}

/// Checks the failure that led into the present state.
async fn check_failure(rig: &Cluster, reason: &str, part: &str) {
    let failure = rig.position("a").await.failure.expect("a failure");
    assert_eq!(failure.reason, reason);
    assert_contains(&failure.message, part);
}

/// Returns the names of the steps in a list of their ids.
fn names(ids: &[String]) -> Vec<&str> {
    let names = ids.iter().filter_map(|id| id.rsplit('/').next());
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_at_once_is_seen_by_resources_while_the_work_goes_on() {
    let rig = running().await;
    rig.wire.clear();
    rig.app.resizes.lock().push_back(Resize::Now);
    resize(&rig, 6).await;
    rig.until("a", "remembers 6", remembers(6)).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.position("a").await.state.as_str(), "Resizing");
    assert_eq!(rig.text("a").await.as_deref(), Some("6"));
    let of_status = |it: &&String| it.ends_with("/brokers/a/status");
    let writes = rig.wire.writes();
    assert_eq!(writes.iter().filter(of_status).count(), 2, "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_is_taken_once_whatever_crashes_after_it_is_recorded() {
    let rig = running().await;
    let attempts = [Resize::Steps(1), Resize::Steps(2), Resize::Steps(3)];
    rig.app.resizes.lock().extend(attempts);
    rig.wire.clear();
    resize(&rig, 4).await;
    for number in 1..STEPS.len() {
        rig.until("a", "has recorded its steps", |broker| {
            let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
            let action = position.and_then(|it| it.action.as_ref());
            let steps = action.and_then(|it| it.steps.as_ref()?.value.as_array());
            steps.is_some_and(|steps| steps.len() == number)
        })
        .await;
        rig.restart().await;
    }
    rig.until("a", "remembers 4", remembers(4)).await;
    rig.until_ready("a", BrokerState::Running).await;
    let taken = rig.app.taken.lock().clone();
    assert_eq!(names(&taken), STEPS);
    let of_status = |it: &&String| it.ends_with("/brokers/a/status");
    let writes = rig.wire.writes();
    let count = writes.iter().filter(of_status).count();
    assert_eq!(count, RESIZE + STEPS.len(), "{writes:?}");
    let position = rig.json("a").await["status"]["lifecycle"].clone();
    assert_eq!(
        position["action"],
        Value::Null,
        "steps end with their action"
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_record_fails_or_loses_its_answer_is_taken_once() {
    let faults = [
        Fault::conflict(),
        Fault::unavailable(),
        Fault::break_connection().after_commit(),
    ];
    for fault in faults {
        let rig = running().await;
        rig.app.resizes.lock().push_back(Resize::Steps(3));
        let fault = rig.inject(fault.subresource("status").every(2));
        resize(&rig, 4).await;
        rig.until_ready("a", BrokerState::Running).await;
        rig.until("a", "remembers 4", remembers(4)).await;
        assert!(fault.struck() > 1);
        let taken = rig.app.taken.lock().clone();
        assert_eq!(names(&taken), STEPS);
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_steps_that_somebody_else_changes_are_not_believed() {
    let rig = running().await;
    rig.app.resizes.lock().push_back(Resize::Steps(1));
    resize(&rig, 4).await;
    rig.until("a", "has recorded a step", |broker| {
        let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        let action = position.and_then(|it| it.action.as_ref());
        action.is_some_and(|it| it.steps.is_some())
    })
    .await;
    rig.kill().await;
    let forged = json!([{ "name": "drain", "result": 0 }, { "name": "move", "result": 1 }]);
    let forged = json!({ "lifecycle": { "action": { "steps": { "value": forged } } } });
    rig.patch_status("a", forged).await.expect("a status");
    rig.start();
    let part = "status.lifecycle.action.steps: somebody else than the operator";
    rig.until_message("a", "Stalled", reasons::UNDECODABLE, part)
        .await;
    assert_eq!(names(&rig.app.taken.lock()), ["drain"]);
}

#[tokio::test(start_paused = true)]
async fn steps_that_cannot_work_fail_for_a_reason_that_names_them() {
    for (resize_by, part) in [
        (Resize::Twice, "the handler has two steps `a`"),
        (Resize::Within, "`b` is a step within a step"),
        (Resize::Large, "the result of the step `a` takes 5002 bytes"),
    ] {
        let rig = running().await;
        rig.app.resizes.lock().push_back(resize_by);
        resize(&rig, 4).await;
        rig.until_in("a", BrokerState::Broken).await;
        check_failure(&rig, reasons::BAD_STEP, part).await;
    }
}

/// Returns how many steps are on record, done or failed.
fn has_steps(count: usize) -> impl Fn(&Broker) -> bool {
    move |broker| {
        let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        let action = position.and_then(|it| it.action.as_ref());
        let steps = action.and_then(|it| it.steps.as_ref()?.value.as_array());
        steps.is_some_and(|steps| steps.len() == count)
    }
}

#[tokio::test(start_paused = true)]
async fn each_part_has_attempts_of_its_own_and_a_part_that_is_done_is_not_done_again() {
    let rig = running().await;
    rig.app.busy.lock().extend([("node-1".to_owned(), 2)]);
    let attempts = [Resize::Nodes(4, 1), Resize::Nodes(4, 1)];
    rig.app.resizes.lock().extend(attempts);
    resize(&rig, 4).await;
    rig.until("a", "has failed on a node", has_steps(2)).await;
    let progress = |broker: &Broker| {
        let position = broker.status.as_ref().and_then(|it| it.lifecycle.as_ref());
        let action = position.and_then(|it| it.action.as_ref());
        action.is_some_and(|it| it.message.contains("drain/node-1: attempt 1 failed"))
    };
    rig.until("a", "reports the failure", progress).await;
    rig.restart().await;
    rig.until_ready("a", BrokerState::Running).await;
    rig.until("a", "remembers 4", remembers(4)).await;
    let taken = rig.app.taken.lock().clone();
    assert_eq!(names(&taken), ["node-0", "node-1", "node-2", "node-3"]);
    assert_eq!(rig.app.busy.lock()["node-1"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_fails_too_often_ends_the_work_once_the_parts_beside_it_are_done() {
    let rig = running().await;
    rig.app.busy.lock().extend([("node-1".to_owned(), 3)]);
    rig.app.resizes.lock().push_back(Resize::Nodes(6, 2));
    resize(&rig, 4).await;
    rig.until_in("a", BrokerState::Broken).await;
    check_failure(&rig, "Busy", "drain/node-1: it has messages").await;
    let taken = rig.app.taken.lock().clone();
    assert!(!names(&taken).contains(&"node-1"), "{taken:?}");
    // Its attempts took more time than all the others beside it.
    assert_eq!(
        names(&taken),
        ["node-0", "node-2", "node-3", "node-4", "node-5"]
    );
}

#[tokio::test(start_paused = true)]
async fn two_hundred_parts_are_recorded_and_those_that_vanish_are_dropped() {
    let rig = running().await;
    let attempts = [Resize::Nodes(200, 50), Resize::Nodes(3, 3)];
    rig.app.resizes.lock().extend(attempts);
    rig.app.busy.lock().extend([("node-199".to_owned(), 1)]);
    resize(&rig, 4).await;
    rig.until("a", "has two hundred parts", has_steps(200))
        .await;
    rig.restart().await;
    rig.until_ready("a", BrokerState::Running).await;
    rig.until("a", "remembers 4", remembers(4)).await;
    let taken = rig.app.taken.lock().clone();
    let mut once = names(&taken);
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), taken.len(), "a part is done twice");
}
