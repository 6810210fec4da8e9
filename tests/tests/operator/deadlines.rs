//! Deadlines: counted from the arrival in a state, across restarts.

use std::time::Duration;

use jiff::SignedDuration;
use okt_tests::{DatabaseState::*, Reply, Rig, Sight, assert_within};
use serde_json::json;
use tokio::time::Instant;

async fn servicing(rig: &Rig, reply: Reply) {
    rig.app.next_time(Servicing, reply);
    rig.create_ready("db", Running).await;
    rig.visit("db", "Servicing", None).await;
    rig.until_in("db", Servicing).await;
    rig.pass(Duration::from_secs(1)).await;
}

fn waits(times: usize) -> impl Iterator<Item = Reply> {
    let reply = Reply::Answer(okt::Answer::Wait(Duration::from_mins(2)));
    std::iter::repeat_n(reply, times)
}

#[tokio::test(start_paused = true)]
async fn a_deadline_fires_once_and_cancels_the_action_in_flight() {
    let rig = Rig::new().await;
    for reply in waits(14) {
        rig.app.next_time(Servicing, reply);
    }
    servicing(&rig, Reply::CleansUpFor(Duration::from_secs(3))).await;
    rig.pass(Duration::from_secs(60 * 30 - 30)).await;
    assert_eq!(rig.position("db").await.state.to_string(), "Servicing");
    rig.pass(Duration::from_mins(1)).await;
    let position = rig.position("db").await;
    assert_eq!(position.trail, ">Start>Running>Servicing>Failed>");
    assert_eq!(
        position.history.last().map(|h| h.cause.as_str()),
        Some("After")
    );
    rig.pass(Duration::from_hours(2)).await;
    assert_eq!(rig.position("db").await.transition, 4);
    assert_eq!(rig.app.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_deadline_the_object_says_which_time_was_over_and_what_failed_last() {
    let over = |failure: Option<okt::RecordedFailure>| {
        let failure = failure.expect("a failure");
        (failure.reason, failure.message)
    };
    let rig = Rig::new().await;
    for reply in waits(20) {
        rig.app.next_time(Servicing, reply);
    }
    servicing(
        &rig,
        Reply::Answer(okt::Answer::Wait(Duration::from_mins(2))),
    )
    .await;
    rig.pass(Duration::from_mins(31)).await;
    let (reason, message) = over(rig.position("db").await.failure);
    assert_eq!(reason, "DeadlineExceeded");
    assert_eq!(message, "Servicing took longer than 30m");
    let stalled = rig.condition("db", "Stalled").await.expect("it is");
    assert_eq!(
        stalled.message,
        "DeadlineExceeded: Servicing took longer than 30m; Failed holds: set spec.lifecycle.request to a new text to go to Running"
    );

    let rig = Rig::new().await;
    for _ in 0..100 {
        let failure = Reply::FailAs("NoSpace".to_owned(), "the disk is full".to_owned());
        rig.app.next_time(Servicing, failure);
    }
    servicing(&rig, Reply::Hang).await;
    rig.pass(Duration::from_mins(31)).await;
    let (reason, message) = over(rig.position("db").await.failure);
    assert_eq!(reason, "NoSpace");
    assert_eq!(message, "Servicing took longer than 30m: the disk is full");
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(over(rig.position("db").await.failure).0, "NoSpace");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_across_restarts() {
    let rig = Rig::new().await;
    for reply in waits(60) {
        rig.app.next_time(Servicing, reply);
    }
    servicing(
        &rig,
        Reply::Answer(okt::Answer::Wait(Duration::from_mins(2))),
    )
    .await;
    let since = rig.position("db").await.since.expect("a time");
    for _ in 0..5 {
        rig.pass(Duration::from_mins(5)).await;
        rig.restart().await;
    }
    rig.kill().await;
    rig.pass(Duration::from_mins(2)).await;
    rig.start();
    rig.until_in("db", Failed).await;
    let left = rig.position("db").await.since.expect("a time");
    let took = left.duration_since(since).as_secs_f64();
    assert!((1800.0..1802.0).contains(&took), "{took}");
    rig.restart().await;
    rig.pass(Duration::from_hours(2)).await;
    assert_eq!(rig.position("db").await.transition, 4);
}

/// Makes every attempt of servicing hang until its limit.
fn hang(rig: &Rig) {
    rig.app.next_times(100, Servicing, &Reply::Hang);
}

/// Returns how long the database is in `Servicing` from now on.
async fn time_until_failed(rig: &Rig) -> Duration {
    let begun = Instant::now();
    rig.until_in("db", Failed).await;
    begun.elapsed()
}

fn minutes(range: std::ops::Range<u64>) -> std::ops::Range<Duration> {
    Duration::from_mins(range.start)..Duration::from_mins(range.end)
}

#[tokio::test(start_paused = true)]
async fn an_absence_of_the_operator_counts_for_a_quarter_of_a_deadline_at_most() {
    for away in [Duration::from_mins(40), Duration::from_hours(30 * 24)] {
        let rig = Rig::new().await;
        servicing(&rig, Reply::Hang).await;
        rig.kill().await;
        rig.pass(away).await;
        hang(&rig);
        rig.start();
        let left = time_until_failed(&rig).await;
        assert!(minutes(21..24).contains(&left), "{away:?}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_become_good_while_no_operator_was_there_or_the_object_was_paused_is_not_late() {
    for pauses in [false, true] {
        for before in [0, 15, 29] {
            let rig = Rig::new().await;
            for reply in waits(20) {
                rig.app.next_time(Servicing, reply);
            }
            servicing(
                &rig,
                Reply::Answer(okt::Answer::Wait(Duration::from_mins(2))),
            )
            .await;
            rig.pass(Duration::from_mins(before)).await;
            if pauses {
                rig.pause("db").await;
                rig.pass(Duration::from_mins(90)).await;
            } else {
                rig.kill().await;
                rig.pass(Duration::from_mins(90)).await;
            }
            rig.app.forget_replies();
            if pauses {
                rig.unpause("db").await;
                rig.pass(Duration::from_secs(1)).await;
                rig.request("db");
            } else {
                rig.start();
            }
            rig.until_ready("db", Running).await;
            let trail = rig.position("db").await.trail;
            assert!(!trail.contains("Failed"), "{trail}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_restarts_often_comes_to_the_end_of_a_deadline() {
    for every in [
        Duration::from_mins(2),
        Duration::from_mins(5),
        Duration::from_mins(9),
    ] {
        let rig = Rig::new().await;
        hang(&rig);
        servicing(&rig, Reply::Hang).await;
        let begun = Instant::now();
        while rig.position("db").await.state.as_str() != "Failed" {
            assert_within(begun, Duration::from_hours(1));
            rig.pass(every).await;
            rig.restart().await;
        }
        assert!(begun.elapsed() > Duration::from_mins(29), "{every:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_a_day_ahead_neither_brings_a_deadline_nor_holds_it_up() {
    for day in [-24, 24] {
        a_day_from_here(SignedDuration::from_hours(day)).await;
    }
}

async fn a_day_from_here(day: SignedDuration) {
    let rig = Rig::new().await;
    servicing(&rig, Reply::Hang).await;
    rig.kill().await;
    let position = rig.position("db").await;
    let ahead = |time: Option<jiff::Timestamp>| {
        let time = time.expect("a time").checked_add(day);
        time.expect("a time")
    };
    // As a replica reads it whose own clock is a day ahead, or that follows one whose clock was.
    let (since, at) = (
        ahead(position.since),
        ahead(position.acting.map(|it| it.at)),
    );
    rig.patch_status(
        "db",
        json!({ "lifecycle": { "since": since, "acting": { "at": at } } }),
    )
    .await
    .expect("it is accepted");
    hang(&rig);
    rig.start();
    let left = time_until_failed(&rig).await;
    assert!(minutes(21..31).contains(&left), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn an_absence_is_counted_across_restarts() {
    let rig = Rig::running().await;
    rig.app.sees("db", Sight::AbsentFor(Duration::from_mins(5)));
    for _ in 0..4 {
        rig.pass(Duration::from_mins(1)).await;
        rig.restart().await;
    }
    assert_eq!(rig.position("db").await.transition, 2);
    rig.pass(Duration::from_secs(100)).await;
    assert!(rig.position("db").await.transition > 2);
    // Found again, it is forgotten.
    let rig = Rig::running().await;
    for _ in 0..5 {
        rig.app.sees("db", Sight::AbsentFor(Duration::from_mins(5)));
        rig.pass(Duration::from_mins(3)).await;
        assert!(rig.position("db").await.absent_since.is_some());
        rig.app.sees("db", Sight::In(Running));
        rig.pass(Duration::from_mins(1)).await;
        assert_eq!(rig.position("db").await.absent_since, None);
        rig.restart().await;
    }
    assert_eq!(rig.position("db").await.transition, 2);
}

#[tokio::test(start_paused = true)]
async fn the_new_action_starts_only_after_the_cancelled_one_has_ended() {
    let rig = Rig::new().await;
    rig.cancel_work(Reply::CleansUpFor(Duration::from_secs(8)))
        .await;
    assert_eq!(rig.app.cancelled(), 1);
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_in("db", Stopping).await;
    rig.until_ready("db", End).await;
    let ran = rig.app.ran();
    let (running, stopping) = (&ran[1], &ran[2]);
    assert_eq!((running.state, stopping.state), (Running, Stopping));
    assert!(stopping.at - running.at >= Duration::from_secs(8));
    assert_eq!(rig.app.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancelled_work_that_does_not_end_is_dropped_after_half_a_minute() {
    let rig = Rig::new().await;
    rig.cancel_work(Reply::Hang).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
    let ran = rig.app.ran();
    let gap = ran[2].at - ran[1].at;
    assert!((30.0..35.0).contains(&gap.as_secs_f64()), "{gap:?}");
    assert_eq!(rig.app.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_position_without_a_time_gets_one() {
    let rig = Rig::without_operator().await;
    rig.create("db", json!({})).await;
    let foreign = json!({ "lifecycle": { "state": "Servicing", "transition": 3, "jumps": 1 } });
    rig.patch_status("db", foreign)
        .await
        .expect("it is accepted");
    for reply in waits(60) {
        rig.app.next_time(Servicing, reply);
    }
    rig.start();
    rig.until_position("db", "knows since when", |p| p.since.is_some())
        .await;
    rig.until_in("db", Failed).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_a_pause_holds_back_does_not_spin() {
    let rig = Rig::new().await;
    for reply in waits(60) {
        rig.app.next_time(Servicing, reply);
    }
    servicing(
        &rig,
        Reply::Answer(okt::Answer::Wait(Duration::from_mins(2))),
    )
    .await;
    rig.pause("db").await;
    rig.pass(Duration::from_mins(31)).await;
    let observations = rig.app.observations();
    rig.pass(Duration::from_mins(10)).await;
    assert!(
        rig.app.observations() - observations < 50,
        "{} observations",
        rig.app.observations() - observations
    );
    assert_eq!(rig.position("db").await.state.to_string(), "Servicing");
    rig.unpause("db").await;
    rig.until_in("db", Failed).await;
}
