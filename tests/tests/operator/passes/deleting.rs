//! Passes of objects that are being deleted.

use std::time::Duration;

use kube::ResourceExt;
use okt::{FINALIZER, Failure};
use okt_tests::Scripted;
use serde_json::json;

use super::{conditions, map, ran, steps_while_it_is_labelled};

#[tokio::test(start_paused = true)]
async fn deletion_runs_its_own_steps_and_the_finalizer_goes_at_their_end() {
    let wait = Scripted::Wait(
        "FooNamespace",
        Duration::from_secs(5),
        "foo namespace missing two annotations",
    );
    let rig = ran(|app| app.script.put("Provision", [map("a", "x")])).await;
    let chart = rig.object("chart").await;
    assert_eq!(chart.finalizers(), [FINALIZER]);
    rig.app.script.set("Leave", wait);
    rig.app.script.taken();
    rig.delete("chart").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Leave"]);
    let all = conditions(&rig).await;
    assert_eq!(
        all[0],
        "Ready False FooNamespace: foo namespace missing two annotations"
    );
    assert_eq!(
        all[5],
        "Left False FooNamespace: foo namespace missing two annotations"
    );
    assert_eq!(rig.shows("chart", "Deleting").await, "True Deleting");
    rig.pass(Duration::from_mins(10)).await;
    assert!(rig.get("chart").await.is_some());
    rig.app.script.set("Leave", Scripted::Done);
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("chart").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn failed_on_delete_steps_keep_the_finalizer_and_an_invalid_object_can_be_deleted() {
    let rig = ran(|app| {
        app.script
            .set("Check", Scripted::Fail(Failure::permanent("Invalid", "no")));
    })
    .await;
    rig.app.script.set(
        "Leave",
        Scripted::Fail(Failure::permanent("Stuck", "it holds")),
    );
    rig.delete("chart").await;
    rig.pass(Duration::from_mins(10)).await;
    let shown = conditions(&rig).await;
    assert!(
        shown[0].starts_with("Ready False Stuck: it holds; change the spec"),
        "{shown:#?}"
    );
    assert_eq!(shown[1].split(' ').next(), Some("Stalled"));
    rig.app.script.set("Leave", Scripted::Done);
    rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(
        rig.get("chart").await.is_none(),
        "a failing check does not block the deletion"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_can_be_abandoned() {
    let rig = ran(|app| {
        app.script
            .set("Leave", Scripted::Fail(Failure::permanent("Stuck", "no")));
    })
    .await;
    rig.delete("chart").await;
    rig.pass(Duration::from_secs(5)).await;
    let uid = rig
        .get("chart")
        .await
        .and_then(|chart| chart.uid())
        .expect("a uid");
    rig.annotate("chart", okt::ABANDON_ANNOTATION, Some(&uid))
        .await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(rig.get("chart").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pause_does_not_hurry_a_deletion_that_waits() {
    let rig = ran(|app| {
        let fails = Failure::retry("Held", "it holds");
        app.script.set("Leave", Scripted::Fail(fails));
    })
    .await;
    rig.pause("chart").await;
    rig.delete("chart").await;
    rig.pass(Duration::from_mins(10)).await;
    let taken = steps_while_it_is_labelled(&rig).await;
    assert!(taken.len() <= 2, "{taken:?}");
}
