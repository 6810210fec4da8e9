//! Graceful shutdown: running work may end, and no work begins.

use std::time::Duration;

use okt::Answer;
use okt_testing::Fault;
use okt_tests::{DatabaseState::*, Reply, Rig, assert_within};
use serde_json::json;
use tokio::time::Instant;

/// Creates a database whose work takes this long and began a second ago.
async fn at_work(time: Duration) -> Rig {
    let rig = Rig::new().await;
    rig.begin_work(Start, Reply::After(time, Answer::Next))
        .await;
    rig
}

#[tokio::test(start_paused = true)]
async fn running_work_is_waited_for_and_its_result_is_recorded() {
    let rig = at_work(Duration::from_secs(10)).await;
    let stopped = Instant::now();
    rig.stop().await;
    assert_eq!(
        stopped.elapsed().as_secs(),
        9,
        "it waits as long as the work takes"
    );
    assert_eq!(rig.position("db").await.trail, ">Start>Running>");
    assert_eq!(rig.app.states("db"), [Start], "nothing is begun");
    rig.start();
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.app.states("db"),
        [Start, Running],
        "nothing is done twice"
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_too_long_is_dropped_and_resumed_under_its_id() {
    let rig = at_work(Duration::from_mins(5)).await;
    let stopped = Instant::now();
    rig.stop().await;
    assert_eq!(stopped.elapsed().as_secs(), 20);
    assert_eq!(rig.app.ended(), 1, "it is no longer under way");
    rig.start();
    rig.until_ready("db", Running).await;
    let ran = rig.app.ran();
    assert_eq!((&ran[0].id, ran[0].state), (&ran[1].id, ran[1].state));
    assert!(ran[1].resumed);
}

#[tokio::test(start_paused = true)]
async fn objects_created_during_a_shutdown_are_left_to_the_next_operator() {
    let rig = at_work(Duration::from_secs(10)).await;
    let stop = rig.stop();
    let meanwhile = async {
        rig.pass(Duration::from_secs(1)).await;
        rig.wire.clear();
        rig.create("another", json!({})).await;
    };
    tokio::join!(stop, meanwhile);
    let other = rig.object("another").await;
    assert_eq!(other.metadata.finalizers, None);
    assert_eq!(rig.wire.writes().len(), 1, "the end of the work");
    rig.start();
    rig.until_ready("another", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_during_a_shutdown_is_recorded_and_not_retried() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::Pause(Duration::from_secs(10)));
    rig.begin_work(Start, Reply::Fail("the disk is full")).await;
    rig.stop().await;
    assert_eq!(rig.shows("db", "Ready").await, "False Refused");
    assert_eq!(rig.app.ran().len(), 1);
    rig.start();
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_for_cancelled_work_to_end_is_not_begun_and_not_waited_for() {
    let rig = Rig::new().await;
    rig.cancel_work(Reply::CleansUpFor(Duration::from_secs(8)))
        .await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_in("db", Stopping).await;
    let stopped = Instant::now();
    rig.stop().await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    assert_eq!(rig.app.states("db"), [Start, Running]);
    rig.start();
    rig.until_ready("db", End).await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_work_may_clean_up() {
    let rig = Rig::new().await;
    let cleans_up = Reply::CleansUpFor(Duration::from_secs(8));
    rig.cancel_work(cleans_up).await;
    let stopped = Instant::now();
    rig.stop().await;
    assert_eq!(stopped.elapsed().as_secs(), 8);
    assert_eq!((rig.app.cancelled(), rig.app.ended()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_a_pause_holds_back_is_not_waited_for() {
    let rig = at_work(Duration::from_secs(5)).await;
    rig.pause("db").await;
    rig.pass(Duration::from_secs(10)).await;
    let stopped = Instant::now();
    rig.stop().await;
    assert_within(stopped, Duration::from_secs(1));
    rig.unpause("db").await;
    rig.start();
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_does_not_block_a_shutdown() {
    let rig = at_work(Duration::from_secs(5)).await;
    let silent = rig.inject(Fault::delay(Duration::from_mins(10)).on_writes());
    rig.pass(Duration::from_secs(10)).await;
    let stopped = Instant::now();
    rig.stop().await;
    assert!(
        stopped.elapsed() <= Duration::from_secs(21),
        "{:?}",
        stopped.elapsed()
    );
    silent.end();
    rig.start();
    rig.until_ready("db", Running).await;
}
