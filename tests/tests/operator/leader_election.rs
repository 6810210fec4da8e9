//! Leader election: an operator acts only while it leads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use okt::Answer;
use okt_testing::Fault;
use okt_tests::{DatabaseState::*, Databases, Kiosks, OPERATOR, Reply, Rig, Sight, numbered};
use serde_json::json;
use tokio::sync::watch;

async fn elected(leading: bool) -> (Rig, watch::Sender<bool>) {
    let (is_leader, leads) = watch::channel(leading);
    let mut rig = Rig::<Databases>::without_operator().await;
    rig.options.is_leader = Some(leads);
    rig.start();
    (rig, is_leader)
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_does_not_lead_does_nothing() {
    let (rig, is_leader) = elected(false).await;
    rig.create("db", json!({})).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!((rig.app.ran().len(), rig.app.observations()), (0, 0));
    is_leader.send_replace(true);
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn lost_leadership_stops_new_actions_at_once_and_regained_leadership_resumes_running_ones() {
    let (rig, is_leader) = elected(true).await;
    rig.begin_work(Start, Reply::After(Duration::from_secs(30), Answer::Next))
        .await;
    rig.wire.clear();
    is_leader.send_replace(false);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(
        (rig.app.ran().len(), rig.app.ended()),
        (1, 1),
        "running work may end"
    );
    is_leader.send_replace(true);
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.app.states("db"),
        [Start, Running],
        "its result was kept"
    );
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_leadership() {
    let (rig, is_leader) = elected(true).await;
    rig.app.next_time(Start, Reply::Fail("not yet"));
    rig.create("db", json!({})).await;
    rig.until_reason("db", "Ready", "Refused").await;
    is_leader.send_replace(false);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran().len(), 1);
    is_leader.send_replace(true);
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_another_leader_are_kept() {
    let (rig, is_leader) = elected(true).await;
    let late = Answer::To(okt::Lifecycle::id(Failed));
    rig.begin_work(Start, Reply::After(Duration::from_secs(30), late))
        .await;
    is_leader.send_replace(false);
    // The other leader serves the same application and resumes under the same id.
    let other = rig.operate(rig.client.clone());
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_mins(5)).await;
    other.kill().await;
    is_leader.send_replace(true);
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("db").await.trail, ">Start>Running>");
    let ran = rig.app.ran();
    assert_eq!(ran[0].id, ran[1].id);
    assert!(ran[1].resumed);
}

/// A database at rest whose operator leads.
async fn at_rest() -> (Rig, watch::Sender<bool>) {
    let (rig, is_leader) = elected(true).await;
    rig.create_ready("db", Running).await;
    (rig, is_leader)
}

fn a_backup() -> serde_json::Value {
    json!({ "visit": { "state": "Servicing", "request": "nightly" } })
}

#[tokio::test(start_paused = true)]
async fn leadership_lost_between_observation_and_write_leaves_write_and_work_to_the_next_leader() {
    let (rig, is_leader) = at_rest().await;
    rig.app
        .sees("db", Sight::Slow(Duration::from_secs(8), Running));
    rig.ask_for("db", a_backup()).await;
    rig.pass(Duration::from_secs(4)).await;
    let (observations, ran) = (rig.app.observations(), rig.app.ran().len());
    rig.wire.clear();
    is_leader.send_replace(false);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    assert_eq!(
        (rig.app.observations(), rig.app.ran().len()),
        (observations, ran)
    );
    // The other leader makes the backup, then the desired state becomes End.
    rig.app.sees("db", Sight::Unobserved);
    let other = rig.operate(rig.client.clone());
    rig.until_position("db", "made its backup", |position| position.transition == 4)
        .await;
    other.kill().await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    is_leader.send_replace(true);
    rig.until_ready("db", End).await;
    let trail = ">Start>Running>Servicing>Running>Stopping>End";
    assert_eq!(rig.position("db").await.trail, trail);
    let states = rig.app.states("db");
    let backups = states.iter().filter(|state| **state == Servicing);
    assert_eq!(backups.count(), 1, "{states:?}");
}

#[tokio::test(start_paused = true)]
async fn leadership_lost_while_a_position_is_written_starts_no_work() {
    let (rig, is_leader) = at_rest().await;
    let answered_late = Fault::delay(Duration::from_secs(8))
        .after_commit()
        .client(OPERATOR)
        .subresource("status");
    let late = rig.server.inject(answered_late);
    rig.ask_for("db", a_backup()).await;
    rig.until_in("db", Servicing).await;
    is_leader.send_replace(false);
    late.end();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.states("db"), [Start, Running], "no work is started");
    is_leader.send_replace(true);
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.position("db").await.trail,
        ">Start>Running>Servicing>Running>"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_arrives_after_the_next_leaders_is_refused() {
    let (rig, is_leader) = at_rest().await;
    let late = rig.inject(Fault::delay(Duration::from_secs(40)).subresource("status"));
    rig.ask_for("db", a_backup()).await;
    rig.pass(Duration::from_secs(4)).await;
    assert_eq!(late.struck(), 1, "the write is under way");
    is_leader.send_replace(false);
    late.end();
    let other = rig.operate(rig.client.clone());
    rig.until_position("db", "made its backup", |position| position.transition == 4)
        .await;
    rig.pass(Duration::from_mins(5)).await;
    let trail = ">Start>Running>Servicing>Running>";
    assert_eq!(rig.position("db").await.trail, trail);
    other.kill().await;
    is_leader.send_replace(true);
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("db").await.trail, trail);
    assert_eq!(
        rig.app.states("db"),
        [Start, Running, Servicing, Running],
        "each work was done once"
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_for_cancelled_work_to_end_is_not_started_without_leadership() {
    let (rig, is_leader) = elected(true).await;
    rig.cancel_work(Reply::CleansUpFor(Duration::from_secs(20)))
        .await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_in("db", Stopping).await;
    assert_eq!((rig.app.cancelled(), rig.app.ended()), (1, 1));
    is_leader.send_replace(false);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ended(), 2, "the cancelled work has ended");
    assert_eq!(rig.app.states("db"), [Start, Running], "nothing was begun");
    is_leader.send_replace(true);
    rig.until_ready("db", End).await;
    let ran = rig.app.ran();
    let states: Vec<_> = ran.iter().map(|ran| ran.state).collect();
    assert_eq!(states, [Start, Running, Stopping]);
    assert_eq!(ran[2].attempt, 1, "work that did not begin is no attempt");
    assert_eq!(rig.app.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_leader_channel_counts_as_not_leading() {
    let (rig, is_leader) = elected(true).await;
    rig.create_ready("db", Running).await;
    drop(is_leader);
    rig.wire.clear();
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_deposed_stops_between_two_objects_of_a_list() {
    let mut rig = Rig::<Kiosks>::without_operator_of().await;
    let (is_leader, leading) = watch::channel(true);
    rig.options.is_leader = Some(leading);
    let is_leader = Arc::new(is_leader);
    let count = Arc::new(AtomicUsize::new(0));
    let deposed = {
        let (is_leader, count) = (Arc::clone(&is_leader), Arc::clone(&count));
        Fault::delay(Duration::from_millis(1)).matching(move |request| {
            if request.resource == "configmaps" && request.is_write() {
                let writes = count.fetch_add(1, Ordering::Relaxed) + 1;
                is_leader.send_replace(writes < 3);
            }
            false
        })
    };
    rig.server.inject(deposed);
    rig.start();
    let maps: serde_json::Map<_, _> = (0..20)
        .map(|number| (format!("map-{number:02}"), json!("text")))
        .collect();
    rig.create_with("kiosk", json!({ "maps": maps })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(
        count.load(Ordering::Relaxed),
        3,
        "nothing is written after that"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_reconciles_changed_objects_before_settled_ones() {
    let (is_leader, leads) = watch::channel(true);
    let mut rig = Rig::<Databases>::without_operator().await;
    rig.options.is_leader = Some(leads);
    // Nothing is observed again by itself.
    rig.app.observe_again_after(Duration::from_hours(10));
    rig.start_with(|operator| operator.concurrency(1));
    rig.create_all_ready(&numbered("db", 0..60), Running).await;
    is_leader.send_replace(false);
    rig.pass(Duration::from_mins(1)).await;
    for number in [13, 31, 47] {
        rig.ask_for(&format!("db-{number}"), json!({ "state": "End" }))
            .await;
    }
    rig.pass(Duration::from_mins(1)).await;
    let before = rig.app.observed().len();
    is_leader.send_replace(true);
    rig.pass(Duration::from_mins(1)).await;
    let mut first = rig.app.observed()[before..][..3].to_vec();
    first.sort();
    assert_eq!(first, ["db-13", "db-31", "db-47"]);
    assert!(
        rig.app.observed().len() >= before + 60,
        "the others come after"
    );
}
