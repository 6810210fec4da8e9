//! Deletion: from every state to a leaf, and out of the cluster.

use std::time::Duration;

use okt::{ABANDON_ANNOTATION, Answer, FINALIZER};
use okt_tests::{
    DatabaseState, DatabaseState::*, Databases, Reply, Rig, Served, Sight, SiteState, Sites,
};
use serde_json::json;

/// Creates an object in this state, with its action in flight if the state is a passing one.
async fn in_state(state: DatabaseState) -> Rig {
    let rig = Rig::new().await;
    let slow = Reply::After(Duration::from_mins(1), Answer::Next);
    match state {
        Start | Servicing | Stopping => rig.app.next_time(state, slow),
        Failed => rig
            .app
            .next_time(Start, Reply::FailPermanently("no such image")),
        Running | End => {}
    }
    let desired = match state {
        Stopping | End => json!({ "state": "End" }),
        Start | Running | Servicing | Failed => json!({}),
    };
    rig.create("db", desired).await;
    if state == Servicing {
        rig.until_ready("db", Running).await;
        rig.visit("db", "Servicing", None).await;
    }
    rig.until_in("db", state).await;
    rig.pass(Duration::from_secs(2)).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn deletion_in_every_state_ends_in_a_leaf() {
    for (state, way) in [
        (Start, &[Start, Running, Stopping][..]),
        (Running, &[Start, Running, Stopping]),
        (Servicing, &[Start, Running, Servicing]),
        (Stopping, &[Start, Running, Stopping]),
        (Failed, &[Start, Stopping]),
        (End, &[Start, Running, Stopping]),
    ] {
        let rig = in_state(state).await;
        rig.delete_until_gone("db").await;
        let ran = rig.app.states("db");
        // On the way out the work of a resting state may run too; Stopping has to run where it lies on the way.
        let ran: Vec<_> = ran.into_iter().collect();
        assert_eq!(ran, way, "{state:?}");
        assert_eq!(rig.app.overlaps(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn deletion_is_reported_while_an_action_is_in_flight() {
    let rig = in_state(Start).await;
    rig.delete("db").await;
    rig.until_reason("db", "Deleting", "Deleting").await;
    assert_eq!(rig.position("db").await.state.to_string(), "Start");
    assert_eq!(rig.shows("db", "Ready").await, "False Start");
    rig.until_gone("db").await;
}

#[tokio::test(start_paused = true)]
async fn work_begun_before_the_deletion_is_not_retried_but_resumed_once() {
    let rig = Rig::new().await;
    rig.app.next_times(4, Start, &Reply::Fail("not yet"));
    rig.create("db", json!({})).await;
    rig.until_reason("db", "Ready", "Refused").await;
    rig.kill().await;
    rig.delete("db").await;
    rig.start();
    rig.until_gone("db").await;
    let ran = rig.app.ran();
    let start: Vec<_> = ran.iter().filter(|ran| ran.state == Start).collect();
    assert_eq!(start.len(), 2, "{ran:#?}");
    assert!(start[1].resumed);
}

#[tokio::test(start_paused = true)]
async fn work_on_the_way_out_is_retried() {
    let rig = Rig::new().await;
    rig.app
        .next_times(4, Stopping, &Reply::Fail("clients stay"));
    rig.create_ready("db", Running).await;
    rig.delete("db").await;
    rig.until_reason("db", "Reconciling", "Refused").await;
    rig.until_gone("db").await;
    assert_eq!(rig.app.states("db").len(), 2 + 5);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_record_is_released_without_work() {
    for sight in [Sight::Unobserved, Sight::Absent, Sight::Broken] {
        let rig = Rig::without_operator().await;
        rig.app.sees("db", sight);
        let mut object = Databases::object("db", json!({}));
        object["metadata"]["finalizers"] = json!([FINALIZER]);
        rig.create_raw(object).await;
        rig.delete("db").await;
        rig.start();
        rig.until_gone("db").await;
        assert_eq!(rig.app.ran(), []);
        assert_eq!(rig.wire.writes().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_foreign_finalizer_is_released_once() {
    let rig = Rig::new().await;
    let mut object = Databases::object("db", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/backup"]);
    rig.create_raw(object).await;
    rig.until_ready("db", Running).await;
    rig.delete("db").await;
    rig.until("db", "is let go", |db| {
        db.metadata.finalizers.as_deref() == Some(&["example.com/backup".to_owned()])
    })
    .await;
    rig.wire.clear();
    rig.pass(Duration::from_mins(30)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    rig.patch("db", json!({ "metadata": { "finalizers": null } }))
        .await;
    rig.until_gone("db").await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_last_work_fails_reports_how_to_abandon_it_and_goes_once_abandoned() {
    let rig = Rig::<Sites>::of().await;
    rig.create_ready("s", SiteState::Online).await;
    rig.app.fail_in_leaf(u32::MAX);
    rig.delete("s").await;
    rig.until_message("s", "Reconciling", "DiskBusy", "pages are still open")
        .await;
    rig.annotate("s", ABANDON_ANNOTATION, Some("another uid"))
        .await;
    rig.pass(Duration::from_mins(10)).await;
    let site = rig.object("s").await;
    rig.annotate("s", ABANDON_ANNOTATION, site.metadata.uid.as_deref())
        .await;
    rig.until_gone("s").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(
        rig.events().await,
        ["Warning DiskBusy", "Warning Abandoned"]
    );
    let runs = rig.app.ran().len();
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.app.ran().len(), runs);
}

#[tokio::test(start_paused = true)]
async fn passing_work_that_failed_permanently_continues_on_the_way_out() {
    let rig = Rig::running().await;
    rig.app
        .next_time(Stopping, Reply::FailPermanently("no such volume"));
    rig.delete_until_gone("db").await;
}

#[tokio::test(start_paused = true)]
async fn work_of_a_leaf_that_failed_permanently_is_stalled_and_runs_again_for_a_new_spec() {
    let rig = Rig::<Sites>::of().await;
    rig.create_ready("s", SiteState::Online).await;
    rig.app.fail_in_leaf_permanently(true);
    rig.delete("s").await;
    rig.until_message("s", "Stalled", "DiskGone", "okt.dev/abandon")
        .await;
    rig.writes_nothing_for(Duration::from_hours(1)).await;
    rig.app.fail_in_leaf_permanently(false);
    rig.patch("s", json!({ "spec": { "theme": "dark" } })).await;
    rig.until_gone("s").await;
}

#[tokio::test(start_paused = true)]
async fn an_abandon_annotation_does_nothing_without_a_deletion() {
    let rig = Rig::new().await;
    let database = rig.create("db", json!({})).await;
    rig.annotate("db", ABANDON_ANNOTATION, database.metadata.uid.as_deref())
        .await;
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_mins(1)).await;
    let finalizers = rig.object("db").await.metadata.finalizers;
    assert_eq!(finalizers, Some(vec![FINALIZER.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn deletion_of_an_object_without_a_status_starts_where_its_application_is_observed() {
    let rig = Rig::without_operator().await;
    let mut object = Databases::object("db", json!({}));
    object["metadata"]["finalizers"] = json!([okt::FINALIZER]);
    rig.create_raw(object).await;
    rig.delete("db").await;
    rig.app.sees("db", Sight::In(Running));
    rig.start();
    rig.until_gone("db").await;
    assert!(rig.app.states("db").contains(&Stopping), "it is stopped");
}

#[tokio::test(start_paused = true)]
async fn a_recreated_object_begins_no_work_while_the_work_of_the_abandoned_one_still_ends() {
    let rig = Rig::new().await;
    let cleaning = Duration::from_secs(20);
    rig.begin_work(Start, Reply::CleansUpFor(cleaning)).await;
    rig.delete("db").await;
    rig.abandon("db").await;
    rig.until_gone("db").await;
    let given_up = tokio::time::Instant::now();
    rig.create_ready("db", Running).await;
    let ran = rig.app.ran();
    let second = ran.iter().filter(|ran| ran.state == Start).nth(1);
    let waited = second.expect("it ran").at - given_up;
    assert!(waited + Duration::from_secs(2) > cleaning, "{waited:?}");
}
