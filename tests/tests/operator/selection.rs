//! Operators that act on a selection of the objects, and changes of objects that a predicate ignores.

use std::error::Error;
use std::time::Duration;

use kube::runtime::predicates;
use okt::{Answer, FINALIZER, Group, Membership, Operator, Shards};
use okt_testing::FeatureGate;
use okt_tests::{
    Database, DatabaseState::*, Databases, OPERATOR, Reply, Rig, Sight, assert_contains,
    assert_within,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// What an operator does within this time, it does not do at all.
const LONG: Duration = Duration::from_mins(10);

/// Creates a database with this label, or without one.
async fn create(rig: &Rig, name: &str, channel: Option<&str>) {
    let labels = channel.map_or_else(|| json!({}), |channel| json!({ "channel": channel }));
    rig.create_raw(json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Database",
        "metadata": { "name": name, "labels": labels },
        "spec": { "storage": "1Gi" },
    }))
    .await;
}

/// Returns whether no operator has written the object.
async fn is_untouched(rig: &Rig, name: &str) -> bool {
    let object = rig.object(name).await;
    let status = object.status.unwrap_or_default();
    object.metadata.finalizers.is_none()
        && status.lifecycle.is_none()
        && status.conditions.is_empty()
}

async fn move_to(rig: &Rig, name: &str, channel: Option<&str>) {
    let labels = json!({ "metadata": { "labels": { "channel": channel } } });
    rig.patch(name, labels).await;
}

/// Returns another operator of the databases in a channel.
fn operate(rig: &Rig, channel: &str) -> tokio::task::JoinHandle<()> {
    let operator = Operator::new(rig.server.client_named(OPERATOR), rig.app.clone())
        .virtual_time()
        .labels(&format!("channel={channel}"));
    tokio::spawn(async move {
        let ran = operator.run(std::future::pending()).await;
        ran.expect("the operator runs");
    })
}

async fn finalizers(rig: &Rig, name: &str) -> Vec<String> {
    let object = rig.object(name).await;
    object.metadata.finalizers.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_operator_acts_only_on_objects_that_its_labels_and_fields_select() {
    let rig = Rig::without_operator().await;
    create(&rig, "listed", Some("beta")).await;
    create(&rig, "other", Some("stable")).await;
    rig.start_with(|operator| {
        let operator = operator.labels("channel in (alpha, beta)");
        operator.fields("metadata.name!=excluded")
    });
    rig.until_ready("listed", Running).await;
    create(&rig, "watched", Some("alpha")).await;
    create(&rig, "excluded", Some("alpha")).await;
    create(&rig, "unlabelled", None).await;
    rig.until_ready("watched", Running).await;
    rig.pass(LONG).await;
    for name in ["other", "excluded", "unlabelled"] {
        assert!(is_untouched(&rig, name).await, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_share_only_the_selected_objects() {
    for filters in [false, true] {
        let rig = Rig::without_operator().await;
        rig.server
            .set_feature_gate(FeatureGate::ShardedListAndWatch, filters);
        for replica in ["a", "b"] {
            let client = rig.server.client_named(replica);
            let app = rig.app.clone();
            tokio::spawn(async move {
                let group = Group::new("databases", "default").replica(replica);
                let group = group.shards(Shards::Auto).virtual_time();
                let membership = Membership::join(client.clone(), group);
                let operator = Operator::new(client, app).virtual_time();
                let operator = operator.labels("channel=beta").replicas(&membership);
                let ran = operator.run(std::future::pending()).await;
                ran.expect("the operator runs");
            });
        }
        sleep(Duration::from_mins(1)).await;
        let mark = rig.server.mark();
        for number in 0..20 {
            let channel = if number % 2 == 0 { "beta" } else { "stable" };
            create(&rig, &format!("db-{number}"), Some(channel)).await;
        }
        for number in (0..20).step_by(2) {
            rig.until_ready(&format!("db-{number}"), Running).await;
        }
        rig.pass(LONG).await;
        for number in (1..20).step_by(2) {
            assert!(is_untouched(&rig, &format!("db-{number}")).await);
        }
        let requests = rig.server.requests_since(mark);
        let acts = |replica: &str| {
            (requests.iter()).any(|it| it.client == replica && it.resource == "databases")
        };
        assert!(acts("a") && acts("b"), "both act");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_forgotten_and_resumed_once_it_is_back() {
    let rig = Rig::without_operator().await;
    rig.start_with(|operator| operator.labels("channel=beta"));
    rig.app.next_time(Start, Reply::UntilCancelled);
    create(&rig, "db", Some("beta")).await;
    rig.until_in("db", Start).await;
    rig.pass(Duration::from_secs(1)).await;
    let before = rig.position("db").await;

    rig.wire.clear();
    move_to(&rig, "db", None).await;
    rig.pass(LONG).await;
    assert_eq!(rig.app.ended(), 1, "its work does not run any more");
    assert_eq!(rig.app.cancelled(), 0, "it was dropped, and not cancelled");
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(rig.position("db").await, before);
    assert_eq!(finalizers(&rig, "db").await, [FINALIZER]);

    move_to(&rig, "db", Some("beta")).await;
    rig.until_ready("db", Running).await;
    let ran = rig.app.ran();
    assert_eq!((&ran[0].id, ran[0].state), (&ran[1].id, ran[1].state));
    assert!(ran[1].resumed);
    assert_eq!(rig.app.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_outside_of_the_selection_waits_for_an_operator() {
    let rig = Rig::without_operator().await;
    rig.start_with(|operator| operator.labels("channel=beta"));
    create(&rig, "db", Some("beta")).await;
    rig.until_ready("db", Running).await;
    move_to(&rig, "db", Some("stable")).await;
    rig.delete("db").await;
    rig.pass(LONG).await;
    assert_eq!(finalizers(&rig, "db").await, [FINALIZER]);
    assert_eq!(rig.app.states("db"), [Start, Running]);
    move_to(&rig, "db", Some("beta")).await;
    rig.until_gone("db").await;
    assert_eq!(rig.app.states("db"), [Start, Running, Stopping]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_during_an_outage_is_not_cancelled_either() {
    let rig = Rig::without_operator().await;
    rig.start_with(|operator| operator.labels("channel=beta"));
    rig.app.next_time(Start, Reply::UntilCancelled);
    create(&rig, "db", Some("beta")).await;
    rig.until_in("db", Start).await;
    rig.pass(Duration::from_secs(1)).await;
    // The watch breaks before it reports the change, and the history is gone: the operator lists anew.
    rig.server.set_watch_lag(Duration::from_mins(1));
    move_to(&rig, "db", None).await;
    rig.server.compact();
    rig.server.end_watches();
    rig.pass(LONG).await;
    assert_eq!((rig.app.ended(), rig.app.cancelled()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn work_moves_under_its_id_to_the_operator_that_selects_its_object_now() {
    let rig = Rig::without_operator().await;
    let operators = [operate(&rig, "beta"), operate(&rig, "stable")];
    rig.app.next_time(Start, Reply::Hang);
    create(&rig, "db", Some("beta")).await;
    rig.until_in("db", Start).await;
    rig.pass(Duration::from_secs(1)).await;
    move_to(&rig, "db", Some("stable")).await;
    rig.until_ready("db", Running).await;
    let ran = rig.app.ran();
    assert_eq!(rig.app.states("db"), [Start, Start, Running]);
    assert_eq!(ran[0].id, ran[1].id);
    assert!(ran[1].resumed);
    assert_eq!(rig.position("db").await.trail, ">Start>Running>");
    operators.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_returns_is_not_acted_upon_before_its_newest_version_is_here() {
    let rig = Rig::without_operator().await;
    let operators = [operate(&rig, "beta"), operate(&rig, "stable")];
    let slow = Duration::from_secs(5);
    rig.app.next_time(Start, Reply::After(slow, Answer::Next));
    rig.app.next_time(Start, Reply::After(slow, Answer::Next));
    create(&rig, "db", Some("beta")).await;
    rig.until_in("db", Start).await;
    // Each operator learns 10 s later that the object has come, and by then it has left again.
    rig.server.set_watch_lag(Duration::from_secs(10));
    move_to(&rig, "db", Some("stable")).await;
    rig.pass(Duration::from_secs(1)).await;
    move_to(&rig, "db", Some("beta")).await;
    rig.until_ready("db", Running).await;
    rig.pass(LONG).await;
    let ran = rig.app.ran();
    let of_start: Vec<_> = ran.iter().filter(|it| it.state == Start).collect();
    assert_eq!(of_start.len(), 2, "the operator in between begins nothing");
    assert_eq!(of_start[0].id, of_start[1].id);
    assert_eq!(rig.position("db").await.trail, ">Start>Running>");
    operators.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_the_api_server_refuses_ends_the_operator_with_its_words() {
    let rig = Rig::without_operator().await;
    let refused = async |select: fn(Operator<Databases>) -> Operator<Databases>| {
        let operator = select(
            Operator::new(rig.server.client_named(OPERATOR), rig.app.clone()).virtual_time(),
        );
        let refused = operator.run(sleep(LONG)).await.expect_err("it is refused");
        let mut why: &dyn Error = &refused;
        while let Some(source) = why.source() {
            why = source;
        }
        (refused.to_string(), why.to_string())
    };
    let (what, why) = refused(|it| it.labels("channel=beta").fields("spec.storage=1Gi")).await;
    assert_eq!(
        what,
        "cannot select the objects of kind Database by `channel=beta` and `spec.storage=1Gi`"
    );
    assert_contains(&why, "field label not supported: spec.storage");
    let (what, _) = refused(|it| it.labels("channel=beta stable")).await;
    assert_eq!(
        what,
        "cannot select the objects of kind Database by `channel=beta stable`"
    );
}

/// Returns the number of observations that a change leads to.
async fn observations(rig: &Rig, change: impl AsyncFnOnce()) -> u32 {
    rig.pass(Duration::from_secs(2)).await;
    let before = rig.app.observations();
    change().await;
    rig.pass(Duration::from_secs(2)).await;
    rig.app.observations() - before
}

#[tokio::test(start_paused = true)]
async fn only_changes_of_metadata_that_the_predicate_names_reconcile_an_object() {
    let rig = Rig::without_operator().await;
    rig.app.observe_again_after(Duration::from_hours(1));
    rig.start_with(|operator| operator.predicate(predicates::labels));
    create(&rig, "db", Some("beta")).await;
    rig.until_ready("db", Running).await;
    let annotate = async || rig.annotate("db", "seen-by", Some("an auditor")).await;
    assert_eq!(observations(&rig, annotate).await, 0);
    let label = async || move_to(&rig, "db", Some("stable")).await;
    assert_eq!(observations(&rig, label).await, 1);
    // Whoever asks for a reconciliation gets one.
    assert_eq!(observations(&rig, async || rig.request("db")).await, 1);
}

/// A predicate that names nothing.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it has the signature of a predicate"
)]
fn nothing(_: &Database) -> Option<u64> {
    Some(0)
}

#[tokio::test(start_paused = true)]
async fn no_predicate_hides_what_the_operator_decides_by() {
    let rig = Rig::without_operator().await;
    rig.app.observe_again_after(Duration::from_hours(1));
    rig.start_with(|operator| operator.predicate(nothing));
    let begun = Instant::now();
    create(&rig, "db", None).await;
    rig.until_ready("db", Running).await;
    rig.visit("db", "Servicing", "1").await;
    rig.until_ready("db", Running).await;
    rig.pause("db").await;
    rig.until_reason("db", "Paused", "Paused").await;
    rig.unpause("db").await;
    rig.until_reason("db", "Paused", "NotPaused").await;
    // Somebody damages the status.
    let damage = json!({ "conditions": [], "lifecycle": { "trail": ">Start>" } });
    rig.patch_status("db", damage)
        .await
        .expect("it is accepted");
    rig.until_ready("db", Running).await;
    rig.delete_until_gone("db").await;
    assert_within(begun, Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_panics_or_has_no_value_hides_nothing() {
    let panics = |_: &Database| -> Option<u64> { panic!("a predicate that panics") };
    for predicate in [|_: &Database| None, panics] {
        let rig = Rig::without_operator().await;
        rig.app.observe_again_after(Duration::from_hours(1));
        rig.start_with(move |operator| operator.predicate(predicate));
        create(&rig, "db", None).await;
        rig.until_ready("db", Running).await;
        let annotate = async || rig.annotate("db", "seen-by", Some("an auditor")).await;
        assert_eq!(observations(&rig, annotate).await, 1);
    }
}

/// Annotates a database every 300 ms for this time.
async fn disturb(rig: &Rig, time: Duration) {
    let end = Instant::now() + time;
    for round in 0.. {
        if Instant::now() >= end {
            return;
        }
        rig.annotate("db", "round", Some(&round.to_string())).await;
        rig.pass(Duration::from_millis(300)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ignored_changes_keep_the_times_of_requeues() {
    let rig = Rig::without_operator().await;
    let seconds = Duration::from_secs;
    rig.app.observe_again_after(seconds(7));
    let wait = Reply::Answer(Answer::Wait(seconds(20)));
    rig.app.next_time(Start, wait);
    rig.start_with(|operator| operator.predicate(nothing));
    create(&rig, "db", None).await;
    rig.until_in("db", Start).await;
    disturb(&rig, seconds(25)).await;
    let ran = rig.app.ran();
    assert_eq!(rig.app.states("db"), [Start, Start, Running]);
    let waited = (ran[1].at - ran[0].at).as_secs();
    assert!((20..=21).contains(&waited), "{waited} s");
    // Changes come while an observation runs, too.
    let slow = Duration::from_millis(900);
    rig.app.sees("db", Sight::Slow(slow, Running));
    rig.pass(seconds(10)).await;
    let before = rig.app.observations();
    disturb(&rig, seconds(100)).await;
    let observed = rig.app.observations() - before;
    assert!((10..=40).contains(&observed), "{observed}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_an_ignored_change_refuses_is_repeated_soon() {
    let rig = Rig::without_operator().await;
    rig.app.observe_again_after(Duration::from_hours(1));
    rig.start_with(|operator| operator.predicate(nothing));
    create(&rig, "db", None).await;
    rig.until_ready("db", Running).await;
    // The change comes while the observation runs whose result is written.
    rig.app
        .sees("db", Sight::Slow(Duration::from_secs(2), Failed));
    rig.request("db");
    rig.pass(Duration::from_secs(1)).await;
    rig.annotate("db", "seen-by", Some("an auditor")).await;
    let begun = Instant::now();
    rig.until_in("db", Failed).await;
    assert_within(begun, Duration::from_secs(5));
}
