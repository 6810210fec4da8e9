//! The longest durations that a handler or an application can return.

use std::time::Duration;

use okt::Answer;
use okt_tests::{DatabaseState::*, QueueState, Queues, Reply, Rig, Scripted};

#[tokio::test(start_paused = true)]
async fn an_object_that_is_requeued_after_the_longest_duration_stops_no_other() {
    let rig = Rig::without_operator().await;
    rig.app.observe_again_after(Duration::MAX);
    rig.start();
    rig.create_ready("first", Running).await;
    rig.create_ready("second", Running).await;
    let observations = rig.app.observations();
    rig.pass(Duration::from_hours(24)).await;
    assert_eq!(rig.app.observations(), observations, "nothing is due");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_the_longest_duration_runs_only_on_a_reconcile_request() {
    let rig = Rig::without_operator().await;
    rig.app
        .next_time(Start, Reply::Answer(Answer::Wait(Duration::MAX)));
    rig.app.limit_attempts(Duration::MAX);
    rig.start();
    rig.create_in("db", Start).await;
    rig.pass(Duration::from_hours(24)).await;
    assert_eq!(rig.app.ran().len(), 1);
    rig.request("db");
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_requeued_after_the_longest_duration_stops_no_other_object() {
    let rig = Rig::<Queues>::without_operator_of().await;
    rig.app
        .script
        .set("Check", Scripted::RequeueAfter(Duration::MAX));
    rig.start();
    for name in ["first", "second"] {
        rig.create_ready(name, QueueState::Serving).await;
    }
}
