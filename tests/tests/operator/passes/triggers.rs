//! The events that make OKT run a pass again, and those that do not.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use okt::{FINALIZER, Failure};
use okt_tests::{Objects, Scripted};
use serde_json::json;

use super::{Board, conditions, map, ran, status_writes, steps_while_it_is_labelled};

#[tokio::test(start_paused = true)]
async fn a_changed_spec_runs_the_pass_and_is_observed_in_the_status() {
    let rig = ran(|_| {}).await;
    rig.app.script.taken();
    let patched = rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    let chart = rig.object("chart").await;
    let status = chart.status.expect("a status");
    assert_eq!(status.observed_generation, patched.metadata.generation);
    let all = status.conditions.iter();
    assert!(
        all.map(|it| it.observed_generation)
            .all(|seen| seen == patched.metadata.generation)
    );
}

/// Returns when pass runs began within a time, in whole seconds.
async fn runs_within(rig: &Board, seconds: u64) -> Vec<u64> {
    let mut all = Vec::new();
    rig.app.script.taken();
    for second in 0..seconds {
        rig.pass(Duration::from_secs(1)).await;
        if !rig.app.script.taken().is_empty() {
            all.push(second);
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_waits_and_permanent_failures_are_not() {
    let fails = Scripted::Fail(Failure::retry("Broken", "no"));
    let rig = ran(|app| app.script.set("Check", fails)).await;
    let runs = runs_within(&rig, 120).await;
    assert!((5..=9).contains(&runs.len()), "{runs:?}");
    let gaps: Vec<_> = runs.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.last() > gaps.first(), "{gaps:?}");

    let for_good = Scripted::Fail(Failure::permanent("Broken", "no"));
    let rig = ran(|app| app.script.set("Check", for_good)).await;
    assert!(runs_within(&rig, 600).await.is_empty());
    rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    assert_eq!(runs_within(&rig, 5).await, [0], "another spec is a retry");

    let quiet = ran(|app| app.script.set("Check", Scripted::GiveUp("not mine"))).await;
    assert!(runs_within(&quiet, 600).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn unrelated_events_do_not_bring_a_retry_forward() {
    let fails = Scripted::Fail(Failure::retry("Broken", "no"));
    let rig = ran(|app| app.script.set("Check", fails)).await;
    rig.pass(Duration::from_mins(5)).await;
    let taken = steps_while_it_is_labelled(&rig).await;
    assert!(taken.len() <= 1, "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_requeue_runs_the_pass_again() {
    let rig = ran(|app| {
        app.script
            .set("Check", Scripted::RequeueAfter(Duration::from_secs(30)));
    })
    .await;
    assert_eq!(runs_within(&rig, 100).await.len(), 3);
    assert_eq!(status_writes(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn a_requeue_time_combined_with_a_failure_counts_and_does_not_spin() {
    let rig = ran(|app| {
        app.script
            .set("Check", Scripted::RequeueAfter(Duration::from_secs(5)));
        let fails = Scripted::Fail(Failure::retry("Broken", "no"));
        app.script.set("Provision", fails);
    })
    .await;
    rig.pass(Duration::from_mins(5)).await;
    let runs = runs_within(&rig, 60).await.len();
    assert!((10..=14).contains(&runs), "{runs}");
}

/// Returns how many pass runs of the chart an action causes.
async fn runs_after(rig: &Board, done: impl AsyncFnOnce()) -> usize {
    rig.pass(Duration::from_mins(2)).await;
    rig.app.script.taken();
    done().await;
    rig.pass(Duration::from_secs(5)).await;
    let taken = rig.app.script.taken();
    taken.iter().filter(|step| **step == "Check").count()
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_object_runs_the_pass_and_one_of_another_owner_does_not() {
    let rig = ran(|app| app.script.put("Provision", [map("a", "x")])).await;
    let maps = rig.of::<ConfigMap>();
    let stranger = async || {
        maps.make(json!({ "metadata": { "name": "stranger" } }))
            .await;
    };
    assert_eq!(runs_after(&rig, stranger).await, 0);
    let another = async || {
        rig.app.script.put_named("Provision", |name| match name {
            "another" => vec![map("others", "x")],
            _ => vec![map("a", "x")],
        });
        rig.create("another", json!({})).await;
    };
    assert_eq!(
        runs_after(&rig, another).await,
        1,
        "a pass run of the other chart alone"
    );
    let spoilt = runs_after(&rig, async || {
        maps.remove("others").await;
    });
    // One run of the other chart for the deletion, at most one more for the new map.
    assert!((1..=2).contains(&spoilt.await));
    let runs = runs_after(&rig, async || {
        maps.remove("a").await;
    });
    // One run for the deletion, at most one more for the new map.
    assert!((1..=2).contains(&runs.await));
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let touch = async || {
        rig.patch("chart", label).await;
    };
    assert_eq!(runs_after(&rig, touch).await, 1, "the chart itself changed");
}

#[tokio::test(start_paused = true)]
async fn a_change_outside_the_cluster_is_observed_on_a_reconcile_request() {
    let rig = ran(|_| {}).await;
    let nothing = runs_after(&rig, async || {
        rig.app
            .script
            .set("Check", Scripted::Text("elsewhere it is different"));
    });
    assert_eq!(nothing.await, 0);
    assert_eq!(runs_after(&rig, async || rig.request("chart")).await, 1);
    assert_eq!(
        conditions(&rig).await[1],
        "Valid True Check: elsewhere it is different"
    );
}

#[tokio::test(start_paused = true)]
async fn a_spec_change_that_drops_the_finalizer_is_observed() {
    let rig = ran(|_| {}).await;
    rig.pass(Duration::from_mins(1)).await;
    rig.app.script.taken();
    // A PUT of the file that created the object does the same.
    let replaced = json!({ "metadata": { "finalizers": null }, "spec": { "text": "y" } });
    rig.patch("chart", replaced).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    let chart = rig.object("chart").await;
    assert_eq!(chart.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
    let seen = chart.status.expect("a status").observed_generation;
    assert_eq!(seen, chart.metadata.generation);
}
