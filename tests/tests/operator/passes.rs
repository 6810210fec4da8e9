//! Passes of a resource without a lifecycle: what steps say, what is written, what is made and deleted.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use okt_runtime::{ConditionStatus, Declared, FINALIZER, Failure, PAUSED_ANNOTATION};
use okt_tests::{Chart, Charts, Rig, Say};
use serde_json::{Value, json};

type Board = Rig<Charts>;

fn map(name: &str, text: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "text": text },
    }))
}

async fn text(rig: &Board, name: &str) -> Option<String> {
    let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
    let map = maps.get_opt(name).await.expect("a read")?;
    map.data?.get("text").cloned()
}

fn chart(text: &str) -> Value {
    json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Chart",
        "metadata": { "name": "chart" },
        "spec": { "text": text },
    })
}

/// A chart whose pass was walked through once.
async fn walked(script: impl FnOnce(&Charts)) -> Board {
    let rig = Board::without_operator_of().await;
    script(&rig.app);
    rig.start();
    rig.pass(Duration::from_secs(1)).await;
    rig.create_raw(chart("x")).await;
    rig.pass(Duration::from_millis(500)).await;
    rig
}

/// Each condition but those of a deletion and a pause, as `Type Status Reason: message`.
fn said(chart: &Chart) -> Vec<String> {
    let conditions = chart.status.iter().flat_map(|status| &status.conditions);
    conditions
        .filter(|it| it.type_ != "Deleting" && it.type_ != "Paused")
        .map(|it| format!("{} {} {}: {}", it.type_, it.status, it.reason, it.message))
        .collect()
}

async fn says(rig: &Board) -> Vec<String> {
    said(&rig.get("chart").await.expect("it is there"))
}

fn status_writes(rig: &Board) -> usize {
    let writes = rig.wire.writes().into_iter();
    writes
        .filter(|it| it.contains("/charts/chart/status"))
        .count()
}

const DONE: &str = "Ready True Complete: every step of the pass is done";

#[tokio::test(start_paused = true)]
async fn a_walk_is_one_write_of_the_status_and_none_when_nothing_changed_or_after_a_restart() {
    let rig = walked(|_| {}).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    assert_eq!(
        says(&rig).await,
        [
            DONE,
            "Valid True Check: ",
            "Provisioned True Provision: ",
            "Reported True Report: ",
            "Left Unknown NotReached: ",
        ]
    );
    assert_eq!(status_writes(&rig), 1, "{:?}", rig.wire.writes());
    rig.pass(Duration::from_hours(2)).await;
    assert_eq!(rig.app.script.taken(), [""; 0], "nothing has happened");
    rig.restart().await;
    rig.pass(Duration::from_mins(1)).await;
    // Each object is looked at when it is listed, and when the CRD is known.
    let taken = rig.app.script.taken();
    assert_eq!(taken[..3], ["Check", "Provision", "Report"]);
    assert!(taken.len() <= 6, "{taken:?}");
    assert_eq!(status_writes(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_says_so_and_is_asked_again_after_its_time() {
    let wait = Say::Wait(
        "FooNamespaceNotFound",
        Duration::from_secs(5),
        "foo namespace not found",
    );
    let rig = walked(|app| app.script.say("Check", wait)).await;
    assert_eq!(
        says(&rig).await[..4],
        [
            "Ready False FooNamespaceNotFound: foo namespace not found",
            "Reconciling True FooNamespaceNotFound: foo namespace not found",
            "Valid False FooNamespaceNotFound: foo namespace not found",
            "Provisioned Unknown NotReached: ",
        ]
    );
    assert_eq!(rig.app.script.taken(), ["Check"]);
    rig.pass(Duration::from_secs(4)).await;
    assert_eq!(rig.app.script.taken(), [""; 0]);
    rig.app.script.say("Check", Say::Text("it is there"));
    rig.pass(Duration::from_secs(2)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    assert_eq!(
        says(&rig).await[..2],
        [DONE, "Valid True Check: it is there"]
    );
    assert_eq!(status_writes(&rig), 2);
}

#[tokio::test(start_paused = true)]
async fn another_spec_is_walked_through_and_said_to_be_seen() {
    let rig = walked(|_| {}).await;
    rig.app.script.taken();
    let patched = rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    let chart = rig.get("chart").await.expect("it is there");
    let status = chart.status.expect("a status");
    assert_eq!(status.observed_generation, patched.metadata.generation);
    let all = status.conditions.iter();
    assert!(
        all.map(|it| it.observed_generation)
            .all(|seen| seen == patched.metadata.generation)
    );
}

#[tokio::test(start_paused = true)]
async fn what_steps_put_is_there_repaired_and_deleted_when_it_is_put_no_more() {
    let rig = walked(|app| app.script.put("Provision", [map("a", "x"), map("b", "y")])).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
    let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
    rig.pass(Duration::from_mins(1)).await;
    maps.delete("a", &DeleteParams::default())
        .await
        .expect("deleted by hand");
    rig.pass(Duration::from_secs(3)).await;
    assert_eq!(
        text(&rig, "a").await.as_deref(),
        Some("x"),
        "it is restored"
    );
    let patch = Patch::Merge(json!({ "data": { "text": "z" } }));
    maps.patch("b", &PatchParams::default(), &patch)
        .await
        .expect("changed by hand");
    rig.pass(Duration::from_secs(10)).await;
    assert_eq!(
        text(&rig, "b").await.as_deref(),
        Some("y"),
        "it is repaired"
    );
    rig.app.script.put("Provision", [map("a", "x")]);
    rig.poke("chart");
    rig.pass(Duration::from_secs(3)).await;
    assert_eq!(text(&rig, "b").await, None, "it is put no more");
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
    assert_eq!(status_writes(&rig), 1, "none of it is news");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_by_a_walk_that_ended_early() {
    let rig = walked(|app| app.script.put("Provision", [map("a", "x")])).await;
    rig.app.script.put("Provision", []);
    rig.app
        .script
        .say("Report", Say::Fail(Failure::retry("Broken", "no")));
    rig.poke("chart");
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn what_was_put_before_a_walk_ended_early_is_not_made_and_not_said_to_be() {
    let rig = walked(|app| {
        app.script.put("Provision", [map("a", "x")]);
        app.script
            .say("Report", Say::Fail(Failure::retry("Broken", "no")));
    })
    .await;
    assert_eq!(text(&rig, "a").await, None);
    let says = says(&rig).await;
    assert!(
        says[3].starts_with("Provisioned False NotApplied: "),
        "{says:#?}"
    );
    assert_eq!(says[4], "Reported False Broken: no");
}

#[tokio::test(start_paused = true)]
async fn a_commit_makes_at_once_what_was_put() {
    let rig = walked(|app| {
        app.script.put("Provision", [map("a", "x")]);
        app.script.say("Provision", Say::Commit);
        app.script
            .say("Report", Say::Fail(Failure::retry("Broken", "no")));
    })
    .await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
    assert_eq!(says(&rig).await[3], "Provisioned True Provision: ");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_the_failure_of_the_step_that_put_it() {
    let rig = Board::without_operator_of().await;
    let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
    let theirs = serde_json::from_value(json!({ "metadata": { "name": "a" } })).expect("a map");
    maps.create(&PostParams::default(), &theirs)
        .await
        .expect("created");
    rig.app.script.put("Provision", [map("a", "x")]);
    rig.start();
    rig.create_raw(chart("x")).await;
    rig.pass(Duration::from_secs(1)).await;
    let conditions = says(&rig).await;
    assert!(
        conditions[0].starts_with("Ready False NotOwned: ConfigMap a exists"),
        "{conditions:#?}"
    );
    assert!(
        conditions[3].starts_with("Provisioned False NotOwned: "),
        "{conditions:#?}"
    );
    assert_eq!(conditions[4], "Reported True Report: ");
    maps.delete("a", &DeleteParams::default())
        .await
        .expect("deleted");
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(
        says(&rig).await[0],
        DONE,
        "it recovers when the cause is gone"
    );
}

#[tokio::test(start_paused = true)]
async fn the_table_of_results() {
    use ConditionStatus::False;
    let rows: [(&str, Say, &[&str], [&str; 2]); 9] = [
        (
            "done",
            Say::Done,
            &["Check", "Provision", "Report"],
            ["Ready True Complete", "Provisioned True Provision"],
        ),
        (
            "done, with a condition of its own",
            Say::Condition(False, "Custom", "a message"),
            &["Check", "Provision", "Report"],
            [
                "Ready False Custom: Provisioned: a message",
                "Provisioned False Custom: a message",
            ],
        ),
        (
            "done, and again later",
            Say::Again(Duration::from_secs(5)),
            &["Check", "Provision", "Report"],
            ["Ready True Complete", "Provisioned True Provision"],
        ),
        (
            "wait",
            Say::Wait("Waiting", Duration::from_secs(5), "for it"),
            &["Check", "Provision"],
            [
                "Ready False Waiting: for it",
                "Provisioned False Waiting: for it",
            ],
        ),
        (
            "wait with back-off",
            Say::Retry("Backoff", "for it"),
            &["Check", "Provision"],
            [
                "Ready False Backoff: for it",
                "Provisioned False Backoff: for it",
            ],
        ),
        (
            "fail",
            Say::Fail(Failure::retry("InternalError", "error result")),
            &["Check", "Provision"],
            [
                "Ready False InternalError: error result",
                "Provisioned False InternalError: error result",
            ],
        ),
        (
            "fail for good",
            Say::Fail(Failure::permanent("BadText", "no such text")),
            &["Check", "Provision"],
            [
                "Ready False BadText: no such text; it is tried again",
                "Provisioned False BadText: no such text",
            ],
        ),
        (
            "give up",
            Say::GiveUp("not mine"),
            &["Check", "Provision"],
            [
                "Ready False GaveUp: not mine; it is tried again",
                "Provisioned False GaveUp: not mine",
            ],
        ),
        (
            "panic",
            Say::Panic,
            &["Check", "Provision"],
            [
                "Ready False Panicked: the handler panicked: the step panics",
                "Provisioned False Panicked: the handler panicked: the step panics",
            ],
        ),
    ];
    for (what, say, steps, [ready, provisioned]) in rows {
        let rig = walked(|app| app.script.say("Provision", say)).await;
        assert_eq!(rig.app.script.taken(), steps, "{what}");
        let all = says(&rig).await;
        assert!(all[0].starts_with(ready), "{what}: {all:#?}");
        assert!(
            all.iter().any(|it| it.starts_with(provisioned)),
            "{what}: {all:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_hangs_is_given_up_after_a_minute() {
    let rig = walked(|app| app.script.say("Provision", Say::Hang)).await;
    assert_eq!(
        says(&rig).await,
        [""; 0],
        "it is walked through for the first time"
    );
    rig.pass(Duration::from_secs(61)).await;
    assert_eq!(
        says(&rig).await[0],
        "Ready False TimedOut: Provision was not done within 60s"
    );
}

/// When walks began within a time, in whole seconds.
async fn walks_within(rig: &Board, seconds: u64) -> Vec<u64> {
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
async fn failures_are_tried_again_with_growing_waits_and_what_is_for_good_is_not() {
    let fails = Say::Fail(Failure::retry("Broken", "no"));
    let rig = walked(|app| app.script.say("Check", fails)).await;
    let walks = walks_within(&rig, 120).await;
    assert!((5..=9).contains(&walks.len()), "{walks:?}");
    let gaps: Vec<_> = walks.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps.last() > gaps.first(), "{gaps:?}");

    let for_good = Say::Fail(Failure::permanent("Broken", "no"));
    let rig = walked(|app| app.script.say("Check", for_good)).await;
    assert!(walks_within(&rig, 600).await.is_empty());
    rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    assert_eq!(walks_within(&rig, 5).await, [0], "another spec is tried");

    let quiet = walked(|app| app.script.say("Check", Say::GiveUp("not mine"))).await;
    assert!(walks_within(&quiet, 600).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn events_that_have_nothing_to_do_with_a_failure_do_not_bring_it_forward() {
    let fails = Say::Fail(Failure::retry("Broken", "no"));
    let rig = walked(|app| app.script.say("Check", fails)).await;
    rig.pass(Duration::from_mins(5)).await;
    rig.app.script.taken();
    for number in 0..20 {
        let label = json!({ "metadata": { "labels": { "number": number.to_string() } } });
        rig.patch("chart", label).await;
        rig.pass(Duration::from_millis(100)).await;
    }
    let taken = rig.app.script.taken();
    assert!(taken.len() <= 1, "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_asked_to_be_walked_again_is() {
    let rig = walked(|app| app.script.say("Check", Say::Again(Duration::from_secs(30)))).await;
    assert_eq!(walks_within(&rig, 100).await.len(), 3);
    assert_eq!(status_writes(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn results_tell_a_step_what_came_before_it() {
    let rig = walked(|app| app.script.say("Check", Say::Again(Duration::from_secs(30)))).await;
    let results = rig.app.script.results().expect("steps were taken");
    assert_eq!((results.steps, results.failures), (2, 0));
    assert_eq!(results.again, Some(Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_stays_as_it_is_and_catches_up() {
    let rig = walked(|app| app.script.put("Provision", [map("a", "x")])).await;
    rig.annotate("chart", PAUSED_ANNOTATION, Some("true")).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.app.script.taken();
    let before = rig
        .get("chart")
        .await
        .and_then(|chart| chart.status)
        .expect("a status");
    assert_eq!(rig.says("chart", "Paused").await, "True Paused");
    assert_eq!(rig.says("chart", "Ready").await, "True Complete");
    rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.script.taken(), [""; 0]);
    let after = rig
        .get("chart")
        .await
        .and_then(|chart| chart.status)
        .expect("a status");
    assert_eq!(before, after);
    rig.annotate("chart", PAUSED_ANNOTATION, None).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    let seen = rig.get("chart").await.expect("it is there");
    assert_eq!(
        seen.status.expect("a status").observed_generation,
        seen.metadata.generation
    );
    assert_eq!(rig.says("chart", "Paused").await, "False NotPaused");
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_what_was_due_and_its_end_is_said_at_once() {
    let fails = Say::Fail(Failure::retry("Broken", "no"));
    let rig = walked(|app| app.script.say("Check", fails)).await;
    rig.pass(Duration::from_mins(10)).await;
    rig.annotate("chart", PAUSED_ANNOTATION, Some("true")).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.says("chart", "Paused").await, "True Paused");
    rig.annotate("chart", PAUSED_ANNOTATION, None).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.says("chart", "Paused").await, "False NotPaused");
}

#[tokio::test(start_paused = true)]
async fn a_time_beside_a_failure_counts_and_does_not_spin() {
    let rig = walked(|app| {
        app.script.say("Check", Say::Again(Duration::from_secs(5)));
        let fails = Say::Fail(Failure::retry("Broken", "no"));
        app.script.say("Provision", fails);
    })
    .await;
    rig.pass(Duration::from_mins(5)).await;
    let walks = walks_within(&rig, 60).await.len();
    assert!((10..=14).contains(&walks), "{walks}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_created_paused_says_so_and_nothing_is_done() {
    let rig = Board::of().await;
    let mut paused = chart("x");
    paused["metadata"]["annotations"] = json!({ PAUSED_ANNOTATION: "true" });
    rig.create_raw(paused).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.script.taken(), [""; 0]);
    assert_eq!(rig.says("chart", "Ready").await, "False Paused");
}

#[tokio::test(start_paused = true)]
async fn deletion_takes_the_way_for_it_and_the_finalizer_goes_at_its_end() {
    let wait = Say::Wait(
        "FooNamespace",
        Duration::from_secs(5),
        "foo namespace missing two annotations",
    );
    let rig = walked(|app| app.script.put("Provision", [map("a", "x")])).await;
    let chart = rig.get("chart").await.expect("it is there");
    assert_eq!(chart.finalizers(), [FINALIZER]);
    rig.app.script.say("Leave", wait);
    rig.app.script.taken();
    rig.delete("chart").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Leave"]);
    let all = says(&rig).await;
    assert_eq!(
        all[0],
        "Ready False FooNamespace: foo namespace missing two annotations"
    );
    assert_eq!(
        all[5],
        "Left False FooNamespace: foo namespace missing two annotations"
    );
    assert_eq!(rig.says("chart", "Deleting").await, "True Deleting");
    rig.pass(Duration::from_mins(10)).await;
    assert!(rig.get("chart").await.is_some());
    rig.app.script.say("Leave", Say::Done);
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("chart").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_stays_after_a_way_for_deletion_that_failed_and_an_invalid_object_can_go() {
    let rig = walked(|app| {
        app.script
            .say("Check", Say::Fail(Failure::permanent("Invalid", "no")));
    })
    .await;
    rig.app
        .script
        .say("Leave", Say::Fail(Failure::permanent("Stuck", "it holds")));
    rig.delete("chart").await;
    rig.pass(Duration::from_mins(10)).await;
    let says = says(&rig).await;
    assert!(
        says[0].starts_with("Ready False Stuck: it holds; change the spec"),
        "{says:#?}"
    );
    assert_eq!(says[1].split(' ').next(), Some("Stalled"));
    rig.app.script.say("Leave", Say::Done);
    rig.patch("chart", json!({ "spec": { "text": "y" } })).await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(
        rig.get("chart").await.is_none(),
        "the check that fails does not keep it"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_can_be_given_up() {
    let rig = walked(|app| {
        app.script
            .say("Leave", Say::Fail(Failure::permanent("Stuck", "no")));
    })
    .await;
    rig.delete("chart").await;
    rig.pass(Duration::from_secs(5)).await;
    let uid = rig
        .get("chart")
        .await
        .and_then(|chart| chart.uid())
        .expect("a uid");
    rig.annotate("chart", okt_runtime::ABANDON_ANNOTATION, Some(&uid))
        .await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(rig.get("chart").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_for_an_object_that_is_being_deleted() {
    let rig = walked(|_| {}).await;
    rig.app.script.put("Leave", [map("late", "x")]);
    rig.app.script.say("Leave", Say::Commit);
    rig.delete("chart").await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("chart").await.is_none());
    assert_eq!(text(&rig, "late").await, None);
}
