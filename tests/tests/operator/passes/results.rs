//! The results of the steps of a pass, which the operator reports in one write.

use std::time::Duration;

use okt::{ConditionStatus, Failure};
use okt_tests::Scripted;

use super::{DONE, conditions, ran, status_writes};

#[tokio::test(start_paused = true)]
async fn a_pass_run_writes_the_status_once_and_not_at_all_without_a_change_or_after_a_restart() {
    let rig = ran(|_| {}).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    assert_eq!(
        conditions(&rig).await,
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
    // OKT reconciles each object when it is listed, and when the CRD is known.
    let taken = rig.app.script.taken();
    assert_eq!(taken[..3], ["Check", "Provision", "Report"]);
    assert!(taken.len() <= 6, "{taken:?}");
    assert_eq!(status_writes(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_reports_it_and_runs_after_its_time() {
    let wait = Scripted::Wait(
        "FooNamespaceNotFound",
        Duration::from_secs(5),
        "foo namespace not found",
    );
    let rig = ran(|app| app.script.set("Check", wait)).await;
    assert_eq!(
        conditions(&rig).await[..4],
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
    rig.app.script.set("Check", Scripted::Text("it is there"));
    rig.pass(Duration::from_secs(2)).await;
    assert_eq!(rig.app.script.taken(), ["Check", "Provision", "Report"]);
    assert_eq!(
        conditions(&rig).await[..2],
        [DONE, "Valid True Check: it is there"]
    );
    assert_eq!(status_writes(&rig), 2);
}

#[tokio::test(start_paused = true)]
async fn the_table_of_results() {
    use ConditionStatus::False;
    let rows: [(&str, Scripted, &[&str], [&str; 2]); 9] = [
        (
            "done",
            Scripted::Done,
            &["Check", "Provision", "Report"],
            ["Ready True Complete", "Provisioned True Provision"],
        ),
        (
            "done, with a condition of its own",
            Scripted::Condition(False, "Custom", "a message"),
            &["Check", "Provision", "Report"],
            [
                "Ready False Custom: Provisioned: a message",
                "Provisioned False Custom: a message",
            ],
        ),
        (
            "done, with a requeue",
            Scripted::RequeueAfter(Duration::from_secs(5)),
            &["Check", "Provision", "Report"],
            ["Ready True Complete", "Provisioned True Provision"],
        ),
        (
            "wait",
            Scripted::Wait("Waiting", Duration::from_secs(5), "for it"),
            &["Check", "Provision"],
            [
                "Ready False Waiting: for it",
                "Provisioned False Waiting: for it",
            ],
        ),
        (
            "wait with back-off",
            Scripted::Retry("Backoff", "for it"),
            &["Check", "Provision"],
            [
                "Ready False Backoff: for it",
                "Provisioned False Backoff: for it",
            ],
        ),
        (
            "fail",
            Scripted::Fail(Failure::retry("InternalError", "error result")),
            &["Check", "Provision"],
            [
                "Ready False InternalError: error result",
                "Provisioned False InternalError: error result",
            ],
        ),
        (
            "fail permanently",
            Scripted::Fail(Failure::permanent("BadText", "no such text")),
            &["Check", "Provision"],
            [
                "Ready False BadText: no such text; it is retried",
                "Provisioned False BadText: no such text",
            ],
        ),
        (
            "give up",
            Scripted::GiveUp("not mine"),
            &["Check", "Provision"],
            [
                "Ready False GaveUp: not mine; it is retried",
                "Provisioned False GaveUp: not mine",
            ],
        ),
        (
            "panic",
            Scripted::Panic,
            &["Check", "Provision"],
            [
                "Ready False Panicked: the handler panicked: the step panics",
                "Provisioned False Panicked: the handler panicked: the step panics",
            ],
        ),
    ];
    for (what, result, steps, [ready, provisioned]) in rows {
        let rig = ran(|app| app.script.set("Provision", result)).await;
        assert_eq!(rig.app.script.taken(), steps, "{what}");
        let all = conditions(&rig).await;
        assert!(all[0].starts_with(ready), "{what}: {all:#?}");
        assert!(
            all.iter().any(|it| it.starts_with(provisioned)),
            "{what}: {all:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_hangs_is_given_up_after_a_minute() {
    let rig = ran(|app| app.script.set("Provision", Scripted::Hang)).await;
    assert_eq!(
        conditions(&rig).await,
        [""; 0],
        "the first pass run is not complete"
    );
    rig.pass(Duration::from_secs(61)).await;
    assert_eq!(
        conditions(&rig).await[0],
        "Ready False TimedOut: Provision was not done within 60 s"
    );
}

#[tokio::test(start_paused = true)]
async fn results_give_a_step_the_outcome_of_earlier_steps() {
    let rig = ran(|app| {
        app.script
            .set("Check", Scripted::RequeueAfter(Duration::from_secs(30)));
    })
    .await;
    let results = rig.app.script.results().expect("steps were taken");
    assert_eq!((results.steps, results.failures), (2, 0));
    assert_eq!(results.requeue_after, Some(Duration::from_secs(30)));
}
