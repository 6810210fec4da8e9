//! Failures: retries, the count of attempts, and giving up.

use std::time::Duration;

use okt::{Answer, Phase};
use okt_tests::{DatabaseState::*, Log, Reply, Rig};
use serde_json::json;
use tokio::time::Instant;

fn waits(rig: &Rig) -> Vec<f64> {
    let at: Vec<Instant> = rig.app.ran().iter().map(|ran| ran.at).collect();
    at.windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn waits_between_attempts_grow() {
    let rig = Rig::new().await;
    rig.app.next_times(4, Start, &Reply::Fail("not yet"));
    rig.create_ready("db", Running).await;
    let attempts: Vec<_> = rig.app.ran().iter().map(|ran| ran.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 1]);
    for (index, wait) in waits(&rig)[..4].iter().enumerate() {
        let plain = f64::from(1 << index);
        assert!(
            (plain * 0.79..plain * 1.25).contains(wait),
            "{:?}",
            waits(&rig)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_new_reason_of_a_failed_attempt_is_one_warning() {
    let (log, _taking) = Log::taken();
    let rig = Rig::new().await;
    rig.app.next_times(3, Start, &Reply::Fail("not yet"));
    rig.app.next_time(Start, Reply::Panic);
    rig.create_ready("db", Running).await;
    let text = log.text();
    let warnings = text
        .lines()
        .filter(|line| line.contains("an attempt failed"));
    let warnings: Vec<&str> = warnings.collect();
    assert_eq!(warnings.len(), 2, "{text}");
    assert!(warnings.iter().all(|line| line.contains("WARN")), "{text}");
    assert!(warnings[0].contains("not yet"), "{text}");
    assert!(warnings[1].contains("Panicked"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn success_resets_the_waits() {
    let rig = Rig::new().await;
    rig.app.next_times(4, Start, &Reply::Fail("not yet"));
    rig.app.next_time(Running, Reply::Fail("not yet"));
    rig.create_ready("db", Running).await;
    let wait = *waits(&rig).last().expect("waits");
    assert!(wait < 1.3, "{wait}");
    let last = rig.app.ran().pop().expect("a run");
    assert_eq!((last.state, last.attempt), (Running, 2));
}

#[tokio::test(start_paused = true)]
async fn unrelated_events_neither_raise_a_wait_nor_bring_it_forward() {
    let quiet = Rig::new().await;
    let noisy = Rig::new().await;
    for rig in [&quiet, &noisy] {
        rig.app.next_times(6, Stopping, &Reply::Fail("not yet"));
        rig.create("db", json!({ "state": "End" })).await;
        rig.until_in("db", Stopping).await;
    }
    let disturb = async {
        for round in 0.. {
            noisy.pass(Duration::from_millis(333)).await;
            noisy.request("db");
            noisy
                .patch(
                    "db",
                    json!({ "metadata": { "labels": { "round": round.to_string() } } }),
                )
                .await;
        }
    };
    tokio::select! {
        _ = noisy.until_ready("db", End) => {}
        () = disturb => {}
    }
    quiet.until_ready("db", End).await;
    let count = |rig: &Rig| {
        rig.app
            .states("db")
            .iter()
            .filter(|state| **state == Stopping)
            .count()
    };
    assert_eq!((count(&quiet), count(&noisy)), (7, 7));
    // The jitter comes from the uid, so the waits of both differ, each within its bounds.
    let stopping = waits(&noisy);
    let stopping = &stopping[stopping.len() - 6..];
    for (index, wait) in stopping.iter().enumerate() {
        let plain = f64::from(1 << index);
        assert!((plain * 0.79..plain * 1.25).contains(wait), "{stopping:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_retries_write_the_reason_once_and_not_per_attempt() {
    let rig = Rig::new().await;
    rig.app
        .next_times(20, Stopping, &Reply::Fail("clients stay"));
    rig.create("db", json!({ "state": "End" })).await;
    rig.until_in("db", Stopping).await;
    rig.pass(Duration::from_millis(100)).await;
    rig.wire.clear();
    let ready = rig.until_reason("db", "Ready", "Refused").await;
    assert_eq!(
        (ready.status.as_str(), ready.message.as_str()),
        ("False", "clients stay")
    );
    assert_eq!(rig.shows("db", "Reconciling").await, "True Refused");
    rig.pass(Duration::from_mins(20)).await;
    assert!(rig.app.ran().len() > 8);
    assert!(rig.wire.writes().len() <= 1, "{:?}", rig.wire.writes());
}

#[tokio::test(start_paused = true)]
async fn reasons_that_alternate_are_each_written_once() {
    let rig = Rig::new().await;
    for number in 0..200 {
        let reason = ["DiskFull", "NoQuorum", "Slow"][number % 3];
        let reply = Reply::FailAs(reason.to_owned(), format!("{reason} at {number}"));
        rig.app.next_time(Stopping, reply);
    }
    rig.create("db", json!({ "state": "End" })).await;
    rig.until_in("db", Stopping).await;
    rig.pass(Duration::from_millis(100)).await;
    rig.wire.clear();
    rig.pass(Duration::from_hours(2)).await;
    assert!(rig.app.ran().len() > 20);
    let writes = rig.wire.writes().len();
    assert!((2..=3).contains(&writes), "{writes}");
    let mut events = rig.events().await;
    events.sort();
    assert_eq!(
        events,
        ["Warning DiskFull", "Warning NoQuorum", "Warning Slow"]
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_that_a_trigger_counts_survive_restarts() {
    let rig = Rig::new().await;
    rig.app.next_times(10, Start, &Reply::Fail("no disk"));
    rig.create("db", json!({})).await;
    for attempt in 2..=5 {
        rig.until_position("db", "has another attempt recorded", |position| {
            let action = position.action.as_ref();
            action.is_some_and(|a| a.attempt >= attempt)
        })
        .await;
        rig.restart().await;
        rig.pass(Duration::from_millis(200)).await;
    }
    rig.until_in("db", Failed).await;
    let attempts: Vec<_> = rig.app.ran().iter().map(|ran| ran.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_stays_until_the_generation_changes() {
    let rig = Rig::new().await;
    rig.app.next_time(
        Stopping,
        Reply::FailPermanently("spec.storage is no quantity"),
    );
    rig.create("db", json!({ "state": "End" })).await;
    let stalled = rig.until_reason("db", "Stalled", "Impossible").await;
    assert_eq!(stalled.status, "True");
    assert!(
        stalled.message.starts_with("spec.storage is no quantity"),
        "{}",
        stalled.message
    );
    assert_eq!(rig.shows("db", "Ready").await, "False Impossible");
    assert_eq!(rig.shows("db", "Reconciling").await, "");
    rig.wire.clear();
    rig.pass(Duration::from_mins(30)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(30)).await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
    assert_eq!(rig.wire.writes(), [""; 0]);
    let failed = rig.position("db").await.action.expect("an action");
    assert_eq!(failed.phase, Phase::Failed);
    // A changed desired state changes the generation but not the revision: it is the same piece of work.
    rig.ask_for("db", json!({ "request": "again" })).await;
    rig.until_in("db", End).await;
    let ran = rig.app.ran();
    let tries: Vec<_> = ran
        .iter()
        .filter(|ran| ran.state == Stopping)
        .map(|ran| &ran.id)
        .collect();
    assert_eq!(tries, [&failed.id, &failed.id]);
}

#[tokio::test(start_paused = true)]
async fn a_new_revision_makes_failed_work_another_piece_of_work() {
    let rig = Rig::new().await;
    rig.app.next_time(
        Stopping,
        Reply::FailPermanently("spec.storage is no quantity"),
    );
    rig.create("db", json!({ "state": "End" })).await;
    rig.until_reason("db", "Stalled", "Impossible").await;
    let failed = rig.position("db").await.action.expect("an action").id;
    rig.patch("db", json!({ "spec": { "storage": "2Gi" } }))
        .await;
    rig.until_in("db", End).await;
    let again = rig.app.ran().pop().expect("a run");
    let plain = |id: &str| id.split('@').next().map(str::to_owned);
    assert_eq!(plain(&again.id), plain(&failed).map(|id| format!("{id}/2")));
    assert_eq!(again.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_takes_the_on_error_trigger_at_once() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::FailPermanently("no such image"));
    rig.create_in("db", Failed).await;
    assert_eq!(rig.app.states("db"), [Start]);
    rig.until_reason("db", "Stalled", "Failed").await;
    assert_eq!(rig.shows("db", "Available").await, "False Broken");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_that_is_retried() {
    let rig = Rig::new().await;
    rig.app.next_time(Start, Reply::Panic);
    rig.create("db", json!({})).await;
    rig.until_message("db", "Ready", "Panicked", "a handler that panics")
        .await;
    rig.until_ready("db", Running).await;
    let attempts: Vec<_> = rig.app.ran().iter().map(|ran| ran.attempt).collect();
    assert_eq!(attempts, [1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn work_that_hangs_is_dropped_after_its_limit_and_retried() {
    let rig = Rig::new().await;
    rig.app.next_time(Start, Reply::Hang);
    rig.create("db", json!({})).await;
    let ready = rig.until_reason("db", "Ready", "TimedOut").await;
    assert_eq!(ready.message, "the work of Start took longer than 300 s");
    rig.until_ready("db", Running).await;
    let first = waits(&rig)[0];
    assert!((300.0..303.0).contains(&first), "{first}");
    assert_eq!(rig.app.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_returns_after_its_object_is_gone_has_no_effect() {
    let rig = Rig::new().await;
    rig.begin_work(Start, Reply::CleansUpFor(Duration::from_secs(20)))
        .await;
    // A user removes the finalizer by force.
    rig.delete("db").await;
    rig.patch("db", json!({ "metadata": { "finalizers": null } }))
        .await;
    rig.until_gone("db").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.cancelled(), 1);
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.ended(), 1);
    rig.create_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_with_an_invalid_reason_is_still_reported() {
    let rig = Rig::new().await;
    rig.app.next_time(
        Stopping,
        Reply::FailAs("no reason: at all!".into(), "x".into()),
    );
    rig.create("db", json!({ "state": "End" })).await;
    rig.until_reason("db", "Ready", "Failed").await;
    rig.until_in("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_a_wait_is_retried_soon() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::Answer(Answer::Wait(Duration::from_secs(5))));
    rig.app.next_time(Start, Reply::Fail("not yet"));
    rig.create_ready("db", Running).await;
    let attempts: Vec<_> = rig.app.ran().iter().map(|ran| ran.attempt).collect();
    assert_eq!(attempts, [1, 1, 2, 1]);
}
