//! An operator that is killed at every write and started again.

use std::collections::BTreeMap;
use std::time::Duration;

use okt::Answer;
use okt_testing::Fault;
use okt_tests::{DatabaseState, DatabaseState::*, OPERATOR, Reply, Rig};
use serde_json::json;

/// Runs creation with a failed attempt, a visit, a new revision, a trigger, the way out of a holding state and the
/// deletion; returns the trails.
async fn scenario(rig: &Rig) -> Vec<String> {
    let mut trails = Vec::new();
    rig.create_ready("db", Running).await;
    trails.push(rig.position("db").await.trail);
    rig.visit("db", "Servicing", "1").await;
    rig.until_visited("db").await;
    rig.until_ready("db", Running).await;
    trails.push(rig.position("db").await.trail);
    rig.patch("db", json!({ "spec": { "storage": "2Gi" } }))
        .await;
    rig.until_ready("db", Running).await;
    trails.push(
        rig.position("db")
            .await
            .action
            .expect("an action")
            .id
            .split('@')
            .next()
            .and_then(|id| id.rsplit('/').next())
            .unwrap_or_default()
            .to_owned(),
    );
    rig.app.sees("db", okt_tests::Sight::Event(Running, Failed));
    rig.until_in("db", Failed).await;
    rig.app.sees("db", okt_tests::Sight::Unobserved);
    rig.ask_for("db", json!({ "request": "mended" })).await;
    rig.until_ready("db", Running).await;
    trails.push(rig.position("db").await.trail);
    rig.delete_until_gone("db").await;
    trails
}

/// Returns the states whose work ran, in order and once per id; panics if an id names two pieces of work.
fn work(rig: &Rig) -> Vec<DatabaseState> {
    let mut seen: BTreeMap<String, DatabaseState> = BTreeMap::new();
    let mut states = Vec::new();
    for ran in rig.app.ran() {
        match seen.get(&ran.id) {
            None => {
                seen.insert(ran.id, ran.state);
                states.push(ran.state);
            }
            Some(before) => assert_eq!(*before, ran.state, "{} names two pieces of work", ran.id),
        }
    }
    states
}

/// Two faults for the operator's write of this number, counted from 1, which gets no answer: in one it does not reach
/// the server, in the other the server carries it out.
fn cuts(number: usize) -> [Fault; 2] {
    let write = || Fault::no_answer().client(OPERATOR).on_writes();
    let number = u64::try_from(number).expect("it fits");
    [write(), write().after_commit()].map(|cut| cut.nth(number))
}

#[tokio::test(start_paused = true)]
async fn an_operator_killed_at_any_write_reaches_the_same_end() {
    let reference = Rig::new().await;
    let trails = scenario(&reference).await;
    let states = work(&reference);
    assert_eq!(
        states,
        [
            Start, Running, Servicing, Running, Running, Running, Stopping
        ]
    );
    let writes = reference.wire.writes().len();
    println!("writes of the reference run: {writes}");
    for number in 1..=writes {
        for cut in cuts(number) {
            let rig = Rig::without_operator().await;
            let what = format!("{cut} at write {number}");
            let cut = rig.server.inject(cut);
            rig.start();
            let crash = async {
                cut.struck_at_least(1).await;
                rig.restart().await;
                std::future::pending::<()>().await;
            };
            let ended = tokio::select! {
                ended = scenario(&rig) => ended,
                () = crash => unreachable!("it never ends"),
            };
            assert_eq!(ended, trails, "{what}");
            assert_eq!(work(&rig), states, "{what}");
            assert_eq!(rig.app.overlaps(), 0, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_blocks_nothing() {
    let reference = Rig::new().await;
    let trails = scenario(&reference).await;
    let states = work(&reference);
    for number in 1..=reference.wire.writes().len() {
        for cut in cuts(number) {
            let rig = Rig::without_operator().await;
            let what = format!("{cut} at write {number}");
            rig.server.set_watch_lag(Duration::from_millis(50));
            rig.server.inject(cut);
            rig.start();
            assert_eq!(scenario(&rig).await, trails, "{what}");
            assert_eq!(work(&rig), states, "{what}");
            assert_eq!(rig.app.overlaps(), 0, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_action_is_resumed_under_its_id_and_marked_as_resumed() {
    let rig = Rig::new().await;
    rig.begin_work(Start, Reply::Hang).await;
    rig.restart().await;
    rig.until_ready("db", Running).await;
    let ran = rig.app.ran();
    assert_eq!(ran[0].id, ran[1].id);
    assert_eq!((ran[0].resumed, ran[1].resumed), (false, true));
    assert_eq!(ran[1].attempt, 1);
    assert!(!ran[2].resumed);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_ends_takes_its_work_with_it() {
    let rig = Rig::new().await;
    rig.begin_work(Start, Reply::After(Duration::from_mins(1), Answer::Next))
        .await;
    rig.kill().await;
    rig.pass(Duration::from_millis(10)).await;
    assert_eq!(rig.app.ended(), 1, "the work goes on without its operator");
}

#[tokio::test(start_paused = true)]
async fn the_cause_of_a_state_is_reported_after_a_restart_and_at_a_retry() {
    use okt::Cause;
    let rig = Rig::new().await;
    rig.app.next_time(Start, Reply::Fail("not yet"));
    rig.app.next_time(Start, Reply::Hang);
    rig.create_in("db", Start).await;
    rig.pass(Duration::from_secs(20)).await;
    rig.restart().await;
    rig.until_ready("db", Running).await;
    let causes: Vec<_> = rig.app.ran().into_iter().map(|ran| ran.cause).collect();
    assert_eq!(causes[..3], [Some(Cause::Created); 3]);
    assert_eq!(causes[3], Some(Cause::DesiredState));
}
