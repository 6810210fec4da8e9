//! The resources that the steps of a pass apply: when OKT creates, repairs and deletes them, and which step reports a
//! failure.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ListParams;
use okt::{Declared, Failure};
use okt_testing::{Fault, Verb};
use okt_tests::{Charts, Objects, Scripted};
use serde_json::json;

use super::{Board, DONE, conditions, map, ran, status_writes};

#[tokio::test(start_paused = true)]
async fn objects_that_steps_declare_are_created_repaired_and_pruned() {
    let rig = ran(|app| app.script.put("Provision", [map("a", "x"), map("b", "y")])).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    let maps = rig.of::<ConfigMap>();
    rig.pass(Duration::from_mins(1)).await;
    maps.remove("a").await;
    rig.pass(Duration::from_secs(3)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"), "it is restored");
    maps.edit("b", json!({ "data": { "text": "z" } })).await;
    rig.pass(Duration::from_secs(10)).await;
    assert_eq!(rig.text("b").await.as_deref(), Some("y"), "it is repaired");
    rig.app.script.put("Provision", [map("a", "x")]);
    rig.request("chart");
    rig.pass(Duration::from_secs(3)).await;
    assert_eq!(rig.text("b").await, None, "no step applies it any more");
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    assert_eq!(status_writes(&rig), 1, "the status does not change");
}

#[tokio::test(start_paused = true)]
async fn a_pass_run_that_ended_early_deletes_nothing() {
    let rig = ran(|app| app.script.put("Provision", [map("a", "x")])).await;
    rig.app.script.put("Provision", []);
    rig.app
        .script
        .set("Report", Scripted::Fail(Failure::retry("Broken", "no")));
    rig.request("chart");
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn a_pass_run_that_ended_early_applies_nothing_and_reports_that() {
    let rig = ran(|app| {
        app.script.put("Provision", [map("a", "x")]);
        app.script
            .set("Report", Scripted::Fail(Failure::retry("Broken", "no")));
    })
    .await;
    assert_eq!(rig.text("a").await, None);
    let shown = conditions(&rig).await;
    assert!(
        shown[3].starts_with("Provisioned False NotApplied: "),
        "{shown:#?}"
    );
    assert_eq!(shown[4], "Reported False Broken: no");
}

#[tokio::test(start_paused = true)]
async fn a_commit_applies_resources_at_once() {
    let rig = ran(|app| {
        app.script.put("Provision", [map("a", "x")]);
        app.script.set("Provision", Scripted::Commit);
        app.script
            .set("Report", Scripted::Fail(Failure::retry("Broken", "no")));
    })
    .await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    assert_eq!(conditions(&rig).await[3], "Provisioned True Provision: ");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_the_failure_of_the_step_that_declared_the_object() {
    let rig = Board::without_operator_of().await;
    let maps = rig.of::<ConfigMap>();
    maps.make(json!({ "metadata": { "name": "a" } })).await;
    rig.app.script.put("Provision", [map("a", "x")]);
    rig.start();
    rig.create("chart", json!({})).await;
    rig.pass(Duration::from_secs(1)).await;
    let shown = conditions(&rig).await;
    assert!(
        shown[0].starts_with("Ready False NotOwned: ConfigMap a exists"),
        "{shown:#?}"
    );
    assert!(
        shown[3].starts_with("Provisioned False NotOwned: "),
        "{shown:#?}"
    );
    assert_eq!(shown[4], "Reported True Report: ");
    maps.remove("a").await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(
        conditions(&rig).await[0],
        DONE,
        "it recovers when the cause is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pass_creates_nothing_for_an_object_that_is_being_deleted() {
    let rig = ran(|_| {}).await;
    rig.app.script.put("Leave", [map("late", "x")]);
    rig.app.script.set("Leave", Scripted::Commit);
    rig.delete("chart").await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("chart").await.is_none());
    assert_eq!(rig.text("late").await, None);
}

#[tokio::test(start_paused = true)]
async fn objects_that_steps_declare_are_owned_and_no_others() {
    let all = ["a", "b", "c"];
    let rig = ran(|app| app.script.put("Provision", all.map(|it| map(it, "x")))).await;
    let maps = rig.of::<ConfigMap>();
    let uid = rig.object("chart").await.metadata.uid;
    let uid = uid.expect("a uid");
    let ours = ListParams::default().labels(&format!("okt.dev/owner={uid}"));
    let found = maps.list(&ours).await.expect("a list");
    let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, all);
    for map in found {
        let owners = map.metadata.owner_references.unwrap_or_default();
        assert_eq!((owners.len(), &*owners[0].uid), (1, &*uid));
        assert_eq!(owners[0].controller, Some(true));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_no_longer_declared_and_already_gone_needs_no_request() {
    let rig = ran(|app| {
        (app.script).put("Provision", [map("a", "x"), map("b", "x")]);
    })
    .await;
    rig.kill().await;
    let maps = rig.of::<ConfigMap>();
    maps.remove("b").await;
    rig.app.script.put("Provision", [map("a", "x")]);
    rig.wire.clear();
    rig.start();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(conditions(&rig).await[0], DONE);
}

#[tokio::test(start_paused = true)]
async fn two_steps_that_declare_one_object_fail_the_second() {
    let rig = ran(|app| {
        app.script.put("Check", [map("a", "x")]);
        app.script.put("Provision", [map("a", "y")]);
    })
    .await;
    let all = conditions(&rig).await;
    assert!(
        all[0].starts_with("Ready False BadResource: ConfigMap a is declared twice"),
        "{all:#?}"
    );
    assert!(
        all.iter().any(|it| it.starts_with("Valid True")),
        "{all:#?}"
    );
    assert!(
        all.iter()
            .any(|it| it.starts_with("Provisioned False BadResource")),
        "{all:#?}"
    );
}

fn listing(finalizers: &[&str]) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "a", "finalizers": finalizers },
    }))
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_removes_the_entries_and_an_omitted_list_leaves_them_to_others() {
    let rig = ran(|app| {
        let own = listing(&["test.okt.dev/own"]);
        app.script.put("Provision", [own]);
    })
    .await;
    let maps = rig.of::<ConfigMap>();
    let lists = async || maps.read("a").await.metadata.finalizers;
    assert_eq!(lists().await, Some(vec!["test.okt.dev/own".to_owned()]));
    rig.app.script.put("Provision", [listing(&[])]);
    rig.request("chart");
    rig.pass(Duration::from_secs(3)).await;
    assert_eq!(lists().await.unwrap_or_default(), [""; 0]);
    rig.app.script.put("Provision", [map("a", "x")]);
    maps.edit(
        "a",
        json!({ "metadata": { "finalizers": ["test.okt.dev/theirs"] } }),
    )
    .await;
    rig.request("chart");
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(lists().await, Some(vec!["test.okt.dev/theirs".to_owned()]));
    assert_eq!(conditions(&rig).await[0], DONE);
}

/// Creates maps with these names that do not belong to the chart.
async fn theirs(rig: &Board, names: &[&str]) {
    let maps = rig.of::<ConfigMap>();
    for name in names {
        maps.make(json!({ "metadata": { "name": name } })).await;
    }
}

async fn disputed(names: &[&str], script: impl FnOnce(&Charts)) -> Vec<String> {
    let rig = Board::without_operator_of().await;
    theirs(&rig, names).await;
    script(&rig.app);
    rig.start();
    rig.create("chart", json!({})).await;
    rig.pass(Duration::from_secs(1)).await;
    conditions(&rig).await
}

#[tokio::test(start_paused = true)]
async fn each_step_whose_object_was_refused_reports_it() {
    let shown = disputed(&["a", "c"], |app| {
        app.script.put("Check", [map("a", "x")]);
        app.script.put("Provision", [map("b", "x")]);
        app.script.put("Report", [map("c", "x")]);
    })
    .await;
    let shown = shown
        .iter()
        .map(|it| it.split(": ").next().unwrap_or_default());
    let shown: Vec<_> = shown.collect();
    assert_eq!(
        shown,
        [
            "Ready False NotOwned",
            "Reconciling True NotOwned",
            "Valid False NotOwned",
            "Provisioned True Provision",
            "Reported False NotOwned",
            "Left Unknown NotReached",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_commit_reports_what_it_could_not_apply_and_applies_the_rest() {
    let rig = Board::without_operator_of().await;
    theirs(&rig, &["a"]).await;
    rig.app.script.put("Check", [map("a", "x")]);
    rig.app.script.put("Provision", [map("b", "x")]);
    rig.app.script.set("Provision", Scripted::Commit);
    rig.start();
    rig.create("chart", json!({})).await;
    rig.pass(Duration::from_secs(1)).await;
    let shown = conditions(&rig).await;
    assert!(shown[2].starts_with("Valid False NotApplied"), "{shown:#?}");
    assert!(
        shown[3].starts_with("Provisioned False NotOwned"),
        "{shown:#?}"
    );
    assert_eq!(rig.text("b").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn a_permanently_refused_commit_is_retried_rarely() {
    let rig = Board::without_operator_of().await;
    let refused = rig.inject(
        Fault::answer(422, "Invalid", "a webhook says no")
            .on(Verb::Apply)
            .resource("configmaps"),
    );
    rig.app.script.put("Provision", [map("a", "x")]);
    rig.app.script.set("Provision", Scripted::Commit);
    rig.start();
    rig.create("chart", json!({})).await;
    // Unrelated events do not bring the retry forward.
    for number in 0..5 {
        rig.pass(Duration::from_mins(1)).await;
        let label = json!({ "metadata": { "labels": { "number": number.to_string() } } });
        rig.patch("chart", label).await;
    }
    let stalled = rig.shows("chart", "Stalled").await;
    assert_eq!(stalled, "True ResourceRefused");
    let tried = refused.struck();
    assert!((1..=2).contains(&tried), "{tried} times in 5 minutes");
    refused.end();
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.shows("chart", "Ready").await, "True Complete");
}
