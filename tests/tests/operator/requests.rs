//! The number of requests that an operator sends to the API.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{Patch, PatchParams};

use okt_tests::{DatabaseState::*, Databases, Rig, assert_within, numbered};
use serde_json::json;
use tokio::time::Instant;

/// Writes for a creation, a visit and a deletion: 1 PATCH for each of the 6 transitions, 1 for each of the 2 actions
/// that end at rest, 2 for the finalizer.
const A_LIFE: usize = 10;

/// How many objects exist at the same time.
const OBJECTS: usize = 64;

async fn live(rig: &Rig, name: &str) {
    rig.create_ready(name, Running).await;
    rig.visit(name, "Servicing", "nightly-1").await;
    rig.until_ready(name, Running).await;
    rig.delete_until_gone(name).await;
}

/// Lets objects live at once, with a reconcile request for each of them in short intervals.
async fn live_disturbed(
    rig: &Rig,
    names: &[String],
    every: Duration,
    mut disturb: impl AsyncFnMut(&str),
) {
    let lives = futures::future::join_all(names.iter().map(|name| live(rig, name)));
    let requests = async {
        loop {
            rig.pass(every).await;
            for name in names {
                rig.request(name);
                disturb(name).await;
            }
        }
    };
    tokio::select! {
        _ = lives => {}
        () = requests => {}
    }
}

/// Checks that no piece of work was started twice.
fn began_nothing_twice(rig: &Rig) {
    let ran = rig.app.ran();
    let ids: BTreeSet<_> = ran.iter().map(|ran| &ran.id).collect();
    assert_eq!(ids.len(), ran.len());
}

#[tokio::test(start_paused = true)]
async fn a_lifecycle_costs_one_patch_per_transition_one_per_rest_and_two_for_the_finalizer() {
    let rig = Rig::new().await;
    live(&rig, "db").await;
    rig.pass(Duration::from_mins(5)).await;
    let writes = rig.wire.writes();
    println!("PATCHes of a life of 6 transitions: {}", writes.len());
    assert_eq!(writes.len(), A_LIFE, "{writes:#?}");
    let object = "PATCH /apis/demo.okt.dev/v1/namespaces/default/databases/db";
    let metadata: Vec<_> = (0..writes.len())
        .filter(|index| writes[*index] == object)
        .collect();
    assert_eq!(metadata, [0, A_LIFE - 1]);
}

#[tokio::test(start_paused = true)]
async fn reconcile_requests_labels_and_a_lagging_cache_cost_nothing() {
    let rig = Rig::new().await;
    rig.server.set_watch_lag(Duration::from_millis(50));
    let names = numbered("db", 0..30);
    let mut round = 0;
    live_disturbed(&rig, &names, Duration::from_millis(7), async |name| {
        round += 1;
        if round % 300 < 30 {
            let labels = json!({ "metadata": { "labels": { "round": round.to_string() } } });
            // It may be gone already.
            let params = PatchParams::default();
            let _ = rig.raw().patch(name, &params, &Patch::Merge(labels)).await;
        }
    })
    .await;
    rig.pass(Duration::from_mins(5)).await;
    let writes = rig.wire.writes().len();
    let refused = (rig.server.requests().into_iter())
        .filter(|request| request.is_write() && request.status == 409)
        .count();
    println!("PATCHes of 30 disturbed objects: {writes}, of which {refused} were conflicts");
    // A label set after the read makes the write conflict; a conflict changes nothing.
    assert_eq!(writes - refused, 30 * A_LIFE);
    began_nothing_twice(&rig);
}

#[tokio::test(start_paused = true)]
async fn a_lagging_cache_costs_no_write_and_no_conflict() {
    let rig = Rig::new().await;
    rig.server.set_watch_lag(Duration::from_millis(50));
    let names = numbered("db", 0..30);
    live_disturbed(&rig, &names, Duration::from_millis(7), async |_| {}).await;
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.wire.writes().len(), 30 * A_LIFE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_objects_on_many_threads_start_no_work_twice() {
    let rig = Rig::new().await;
    let names = numbered("db", 0..OBJECTS);
    live_disturbed(&rig, &names, Duration::from_millis(3), async |_| {}).await;
    began_nothing_twice(&rig);
    assert_eq!(rig.app.overlaps(), 0);
    let writes = rig.wire.writes().len();
    println!("PATCHes of {OBJECTS} disturbed objects on 4 threads: {writes}");
    assert_eq!(writes, OBJECTS * A_LIFE);
}

#[tokio::test(start_paused = true)]
async fn reconcile_requests_of_a_settled_object_write_nothing() {
    let rig = Rig::running().await;
    rig.wire.clear();
    for _ in 0..50 {
        rig.request("db");
        rig.pass(Duration::from_secs(40)).await;
    }
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert!(rig.app.observations() > 50, "it was observed");
}

#[tokio::test(start_paused = true)]
async fn a_restart_over_settled_objects_writes_nothing_and_runs_nothing() {
    let rig = Rig::new().await;
    rig.create_all_ready(&numbered("db", 0..30), Running).await;
    rig.pass(Duration::from_secs(5)).await;
    let ran = rig.app.ran().len();
    rig.wire.clear();
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(rig.app.ran().len(), ran);
}

#[tokio::test(start_paused = true)]
async fn an_object_created_while_the_watch_was_broken_is_served() {
    let rig = Rig::new().await;
    for number in 0..5 {
        let name = format!("before-{number}");
        rig.create_ready(&name, Running).await;
    }
    rig.server.end_watches();
    for number in 0..5 {
        rig.create(&format!("gap-{number}"), json!({})).await;
    }
    rig.server.compact();
    for number in 0..5 {
        rig.until_ready(&format!("gap-{number}"), Running).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_operator_stops_at_once() {
    for rig in [Rig::running().await, Rig::<Databases>::bare()] {
        // The second one has no CRD.
        if rig.server.versions().is_empty() {
            rig.start();
        }
        rig.pass(Duration::from_secs(45)).await;
        let begun = Instant::now();
        rig.stop().await;
        assert_within(begun, Duration::from_secs(2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limited_client_sends_its_burst_at_once_and_then_its_rate() {
    let rig = Rig::without_operator().await;
    let limited = okt::limit_requests(&rig.client, 10, 20);
    let begun = Instant::now();
    let requests = (0..70).map(|_| async {
        limited.apiserver_version().await.expect("an answer");
        begun.elapsed()
    });
    let times = futures::future::join_all(requests).await;
    let at_once = times
        .iter()
        .filter(|time| **time < Duration::from_millis(50));
    assert_eq!(at_once.count(), 20);
    let last = times.iter().max().expect("times");
    let expected = Duration::from_millis(4_900)..=Duration::from_millis(5_100);
    assert!(expected.contains(last), "{last:?}");
}
