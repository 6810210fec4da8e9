//! Graceful shutdown: no new work begins, running work may end, and no result is guessed.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::puppet::{Life, call, once, work};

/// Stops an agent while this work runs. Returns the next agent, and how long the stop took, in seconds.
async fn stopped_during(state: &str, seconds: u64) -> (Life, u64) {
    let life = Life::new().await;
    let request = work(state, 1, 1, &json!({ "seconds": seconds }));
    assert_eq!(life.put("a", request).await.status, 201);
    sleep(Duration::from_secs(1)).await;
    let router = life.started.router();
    let begun = Instant::now();
    let stop = tokio::spawn(life.started.stop());
    sleep(Duration::from_secs(1)).await;
    // It answers while it stops.
    let ask = |path: &'static str| call(router.clone(), "GET", path, json!(null));
    assert_eq!(ask("/livez").await.status, 200);
    assert_eq!(ask("/readyz").await.code(), (503, "Stopping"));
    assert_eq!(
        ask("/lifecycle/v1/status").await.json["action"]["phase"],
        "Running"
    );
    let other = once(2, &json!({}));
    let refused = call(router.clone(), "PUT", "/lifecycle/v1/actions/b", other).await;
    assert_eq!(refused.code(), (503, "Stopping"));
    stop.await.unwrap();
    let took = begun.elapsed().as_secs();
    let life = Life::start(life.world, life.directory, |agent| agent).await;
    (life, took)
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_work_that_ends_soon() {
    let (life, took) = stopped_during("Once", 5).await;
    assert_eq!(took, 4);
    assert_eq!(life.end("a").await.phase(), "Succeeded");
    assert_eq!(life.world.count("begin a"), 1);
}

#[tokio::test(start_paused = true)]
async fn repeatable_work_is_interrupted_and_resumed_by_the_next_agent() {
    let (life, took) = stopped_during("Twice", 60).await;
    assert_eq!(took, 10);
    let end = life.end("a").await.json;
    assert_eq!(end["phase"], "Succeeded");
    assert_eq!(end["resumed"], true);
    assert_eq!(
        (&end["attempt"], life.world.count("cancelled a")),
        (&json!(1), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_is_not_repeatable_is_interrupted_and_unknown_to_the_next_agent() {
    let (life, _) = stopped_during("Once", 60).await;
    let end = life.end("a").await.json;
    assert_eq!(end["phase"], "Unknown");
    assert_eq!(end["reason"], "Interrupted");
    assert_eq!(life.world.count("begin a"), 1);
}
