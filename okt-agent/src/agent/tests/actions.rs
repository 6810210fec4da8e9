//! The course of actions: each runs once for any number of requests, and its end is kept.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::puppet::{Life, call, once, work};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_requested_a_thousand_times_at_once_runs_once() {
    let life = Life::new().await;
    let request = work("Once", 1, 1, &json!({}));
    let requests: Vec<_> = (0..1000)
        .map(|_| {
            let router = life.started.router();
            let request = request.clone();
            tokio::spawn(call(router, "PUT", "/lifecycle/v1/actions/a", request))
        })
        .collect();
    let mut begun = 0;
    for answer in requests {
        match answer.await.unwrap().status {
            201 => begun += 1,
            200 => {}
            // The number of concurrent requests is limited too, and such a refusal promises nothing.
            status => assert_eq!(status, 503),
        }
    }
    assert_eq!(begun, 1);
    assert_eq!(life.end("a").await.phase(), "Succeeded");
    assert_eq!(life.world.count("begin a"), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_lower_epoch_are_refused() {
    let life = Life::new().await;
    let by = |epoch| work("Once", epoch, 1, &json!({ "seconds": 60 }));
    assert_eq!(life.put("a", by(3)).await.status, 201);
    assert_eq!(life.put("a", by(4)).await.status, 200);
    assert_eq!(life.status().await["fence"]["epoch"], 4);
    let fenced = (412, "Fenced");
    assert_eq!(life.put("a", by(3)).await.code(), fenced);
    assert_eq!(life.put("b", by(3)).await.code(), fenced);
    assert_eq!(life.cancel("a", 3).await.code(), fenced);
    assert_eq!(life.acknowledge("a", 1, 3).await.code(), fenced);
    // Every request that is taken raises the epoch, also across a crash.
    assert_eq!(life.cancel("a", 5).await.status, 202);
    assert_eq!(life.end("a").await.phase(), "Cancelled");
    assert_eq!(life.acknowledge("a", 1, 4).await.code(), fenced);
    assert_eq!(life.acknowledge("a", 1, 6).await.status, 200);
    let life = life.crash().await;
    assert_eq!(life.cancel("a", 5).await.code(), fenced);
    assert_eq!(life.status().await["fence"]["epoch"], 6);
}

#[tokio::test(start_paused = true)]
async fn forty_minutes_of_work_block_no_other_request() {
    let life = Life::new().await;
    let begun = Instant::now();
    let request = once(1, &json!({ "seconds": 40 * 60, "print": "copying\n" }));
    assert_eq!(life.put("a", request.clone()).await.status, 201);
    for minute in 0..40 {
        let before = Instant::now();
        let status = life.status().await;
        assert_eq!(status["action"]["phase"], "Running", "minute {minute}");
        assert_eq!(status["action"]["progress"]["percent"], 50);
        assert_eq!(life.put("a", request.clone()).await.status, 200);
        let other = once(2, &json!({}));
        assert_eq!(life.put("b", other).await.code(), (409, "Busy"));
        assert_eq!(life.acknowledge("a", 1, 1).await.code(), (409, "NotEnded"));
        assert_eq!(Instant::now(), before, "an answer was delayed");
        sleep(Duration::from_mins(1)).await;
    }
    let end = life.end("a").await;
    assert_eq!(begun.elapsed().as_secs(), 40 * 60);
    assert_eq!(end.phase(), "Succeeded");
    assert_eq!(end.json["event"], "Next");
    assert_eq!(end.json["outputBytes"], 8);
    assert_eq!(life.world.count("begin"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_action_or_its_timeout_and_waits_are_limited() {
    let life = Life::with(|agent| agent.waits(2)).await;
    let request = once(1, &json!({ "seconds": 50 }));
    life.put("a", request).await;
    let begun = Instant::now();
    let wait = || life.get("a?wait=99");
    let (first, second, third) = tokio::join!(wait(), wait(), async {
        tokio::task::yield_now().await;
        wait().await
    });
    assert_eq!((first.phase(), second.phase()), ("Running", "Running"));
    assert_eq!(third.code(), (503, "Overloaded"));
    assert_eq!(begun.elapsed().as_secs(), 30);
    assert_eq!(wait().await.phase(), "Succeeded");
    assert_eq!(begun.elapsed().as_secs(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_and_its_leftovers_are_cleaned_up_first() {
    let life = Life::new().await;
    life.world.stuck.store(2, Ordering::Relaxed);
    let begun = Instant::now();
    let request = once(1, &json!({ "how": "panic", "remember": "pid 7" }));
    life.put("a", request).await;
    let end = life.end("a").await.json;
    assert_eq!(end["reason"], "Panicked");
    assert_eq!(end["message"], "the work panicked: what a pity");
    assert_eq!(life.world.count("recover a Some(String(\"pid 7\"))"), 3);
    assert!(begun.elapsed() >= Duration::from_secs(10));
    assert_eq!(life.put("b", once(2, &json!({}))).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn cancelled_work_ends_gracefully_or_is_dropped_after_a_timeout() {
    let life = Life::new().await;
    life.put("a", once(1, &json!({ "seconds": 60 }))).await;
    tokio::task::yield_now().await;
    assert_eq!(life.cancel("a", 1).await.status, 202);
    let end = life.end("a").await.json;
    assert_eq!(end["phase"], "Cancelled");
    assert_eq!(end["message"], "it was cancelled");
    assert_eq!(life.cancel("a", 1).await.json, end, "the action has ended");

    life.put("b", once(2, &json!({ "how": "stubborn" }))).await;
    let begun = Instant::now();
    for _ in 0..2 {
        let answer = life.cancel("b", 1).await;
        assert_eq!(answer.status, 202);
        assert_eq!(answer.json["cancelling"], true);
    }
    assert_eq!(life.world.count("recover b"), 0);
    assert_eq!(life.end("b").await.phase(), "Cancelled");
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(life.world.count("recover b"), 1);

    // Work that ended well just before has succeeded.
    life.put("c", once(3, &json!({}))).await;
    life.end("c").await;
    assert_eq!(life.cancel("c", 1).await.phase(), "Succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_blocks_its_thread_is_not_reported_cancelled_while_it_runs() {
    let life = Life::with(|agent| agent.cancel_limit(Duration::from_millis(10))).await;
    life.world.held.store(true, Ordering::SeqCst);
    life.put("a", once(1, &json!({ "how": "block" }))).await;
    while life.world.count("begin a") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(life.cancel("a", 1).await.status, 202);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(life.get("a").await.phase(), "Running");
    life.world.held.store(false, Ordering::SeqCst);
    let end = life.end("a").await;
    assert!(life.world.count("done a") == 1, "{end:?} though it runs");
}

#[tokio::test(start_paused = true)]
async fn the_beginning_and_the_end_of_long_output_are_served() {
    let life = Life::with(|agent| agent.output_limit(4)).await;
    let request = once(1, &json!({ "print": "0123456789" }));
    life.put("a", request).await;
    life.end("a").await;
    let piece = async |life: &Life, from: u64| {
        let answer = life.get(&format!("a/output?from={from}")).await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().parse().unwrap();
        let names = ["from", "to", "total", "gap"];
        let numbers: [u64; 4] = names.map(|name| header(&format!("okt-output-{name}")));
        (answer.text, numbers)
    };
    assert_eq!(piece(&life, 0).await, ("0123".into(), [0, 4, 10, 2]));
    assert_eq!(piece(&life, 4).await, ("6789".into(), [6, 10, 10, 2]));
    assert_eq!(piece(&life, 9).await, ("9".into(), [9, 10, 10, 2]));
    let life = life.crash().await;
    assert_eq!(piece(&life, 0).await, (String::new(), [10, 10, 10, 10]));
}

#[tokio::test(start_paused = true)]
async fn notes_are_limited_and_end_with_their_action() {
    let life = Life::new().await;
    let long = "x".repeat(crate::NOTES_LIMIT);
    life.put("a", work("Twice", 1, 1, &json!({ "remember": long })))
        .await;
    assert_eq!(life.end("a").await.json["reason"], "NotRemembered");
    let input = json!({ "remember": "secret", "seconds": 5 });
    let request = work("Twice", 1, 2, &input);
    life.put("b", request).await;
    while life.world.count("remember b true") == 0 {
        tokio::task::yield_now().await;
    }
    let journal = |life: &Life| std::fs::read_to_string(life.journal()).unwrap();
    assert!(journal(&life).contains("secret"));
    life.end("b").await;
    life.started.stop().await;
    let life = Life::start(life.world, life.directory, |agent| agent).await;
    while !life.ready().await || journal(&life).is_empty() {
        tokio::task::yield_now().await;
    }
    life.put("c", work("Twice", 1, 3, &json!({}))).await;
    assert!(!journal(&life).contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn an_action_that_is_cancelled_before_it_is_requested_is_not_begun() {
    let mut life = Life::new().await;
    let late = once(1, &json!({ "seconds": 60 }));
    assert_eq!(life.cancel("a", 1).await.code(), (404, "NoSuchAction"));
    life = life.crash().await;
    let answer = life.put("a", late.clone()).await;
    assert_eq!((answer.status, answer.phase()), (200, "Cancelled"));
    assert_eq!(answer.json["reason"], "Withdrawn");
    assert_eq!(life.put("a", late.clone()).await.phase(), "Cancelled");
    assert_eq!(life.world.count("begin a"), 0, "{:?}", life.world.log);

    // A client that still wants it acknowledges that end first.
    assert_eq!(life.acknowledge("a", 1, 1).await.status, 200);
    assert_eq!(life.put("a", late).await.status, 201);
    life.cancel("a", 1).await;
    life.end("a").await;

    // The agent remembers a limited number of them: as many as may be on their way.
    for number in 0..=64 {
        life.cancel(&format!("c-{number}"), 1).await;
    }
    let first = life.put("c-0", once(2, &json!({}))).await;
    assert_eq!(first.status, 201);
    assert_eq!(life.end("c-0").await.phase(), "Succeeded");
    let second = life.put("c-1", once(3, &json!({}))).await;
    assert_eq!(second.phase(), "Cancelled");
}
