//! Passes of paused objects.

use std::time::Duration;

use okt::{Failure, PAUSED_ANNOTATION};
use okt_tests::{Charts, Scripted, Served};
use serde_json::json;

use super::{Board, map, ran};

#[tokio::test(start_paused = true)]
async fn a_paused_object_stays_as_it_is_and_catches_up() {
    let rig = ran(|app| app.script.put("Provision", [map("a", "x")])).await;
    rig.pause("chart").await;
    rig.pass(Duration::from_secs(1)).await;
    rig.app.script.taken();
    let before = rig
        .get("chart")
        .await
        .and_then(|chart| chart.status)
        .expect("a status");
    assert_eq!(rig.shows("chart", "Paused").await, "True Paused");
    assert_eq!(rig.shows("chart", "Ready").await, "True Complete");
    rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.script.taken(), [""; 0]);
    let after = rig
        .get("chart")
        .await
        .and_then(|chart| chart.status)
        .expect("a status");
    assert_eq!(before, after);
    rig.unpause("chart").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    let seen = rig.object("chart").await;
    assert_eq!(
        seen.status.expect("a status").observed_generation,
        seen.metadata.generation
    );
    assert_eq!(rig.shows("chart", "Paused").await, "False NotPaused");
}

#[tokio::test(start_paused = true)]
async fn a_pause_drops_pending_retries_and_its_end_is_reported_at_once() {
    let fails = Scripted::Fail(Failure::retry("Broken", "no"));
    let rig = ran(|app| app.script.set("Check", fails)).await;
    rig.pass(Duration::from_mins(10)).await;
    rig.pause("chart").await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.shows("chart", "Paused").await, "True Paused");
    rig.unpause("chart").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.shows("chart", "Paused").await, "False NotPaused");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_created_paused_reports_it_and_runs_no_step() {
    let rig = Board::of().await;
    let mut paused = Charts::object("chart", json!({}));
    paused["metadata"]["annotations"] = json!({ PAUSED_ANNOTATION: "true" });
    rig.create_raw(paused).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.script.taken(), [""; 0]);
    assert_eq!(rig.shows("chart", "Ready").await, "False Paused");
}
