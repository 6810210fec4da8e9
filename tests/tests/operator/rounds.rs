//! The loop guard: an object that repeats its states slows down and reports `LoopDetected`, without a hot loop.

use std::time::Duration;

use okt::{Answer, Lifecycle};
use okt_tests::{DatabaseState::*, Reply, Rig, Sight};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn the_loop_guard_slows_an_object_down_and_reports_it() {
    let rig = Rig::new().await;
    rig.app
        .next_times(10_000, Running, &Reply::Answer(Answer::To(Servicing.id())));
    rig.create("db", json!({})).await;
    let ready = rig.until_reason("db", "Ready", "LoopDetected").await;
    assert_eq!(ready.status, "False");
    rig.pass(Duration::from_hours(1)).await;
    rig.wire.clear();
    let before = rig.position("db").await.transition;
    let observations = rig.app.observations();
    rig.pass(Duration::from_hours(1)).await;
    let transitions = rig.position("db").await.transition - before;
    println!("transitions of an hour in a loop: {transitions}");
    assert!((8..=20).contains(&transitions), "{transitions}");
    assert!(
        rig.wire.writes().len() <= 2 * 20,
        "{:?}",
        rig.wire.writes().len()
    );
    assert!(
        rig.app.observations() - observations < 400,
        "{} observations",
        rig.app.observations() - observations
    );
    assert!(rig.position("db").await.trail.len() < 100);
    // A new desired state releases it at once.
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_in("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn an_application_that_flaps_is_followed_ever_more_slowly() {
    let rig = Rig::running().await;
    // OKT observes the application as absent, whatever it does.
    rig.app.sees("db", Sight::Absent);
    rig.until_reason("db", "Ready", "LoopDetected").await;
    rig.pass(Duration::from_hours(1)).await;
    let before = rig.position("db").await.transition;
    rig.pass(Duration::from_hours(1)).await;
    let transitions = rig.position("db").await.transition - before;
    assert!((4..=40).contains(&transitions), "{transitions}");
    rig.app.sees("db", Sight::In(Running));
    rig.until_ready("db", Running).await;
}
