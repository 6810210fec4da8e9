//! Many actions at once: after a restart they begin one after the other, and the limit is fair.

use std::collections::HashSet;
use std::time::Duration;

use okt::{Answer, Operator};
use okt_tests::{DatabaseState::*, Databases, OPERATOR, Reply, Rig};
use serde_json::json;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn after_a_restart_work_that_was_in_flight_begins_one_by_one() {
    const OBJECTS: usize = 500;
    let rig = Rig::new().await;
    let long = Duration::from_hours(1);
    rig.app.limit_attempts(long);
    rig.app
        .next_times(2 * OBJECTS, Start, &Reply::After(long, Answer::Next));
    for number in 0..OBJECTS {
        rig.create(&format!("db-{number}"), json!({})).await;
    }
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.app.ran().len(), OBJECTS);
    rig.restart().await;
    let restarted = Instant::now();
    rig.pass(Duration::from_mins(1)).await;
    let ran = rig.app.ran().split_off(OBJECTS);
    assert_eq!(ran.len(), OBJECTS, "all are resumed");
    assert!(ran.iter().all(|ran| ran.resumed));
    let begun = |within: Duration| ran.iter().filter(|it| it.at - restarted < within).count();
    let (at_once, first) = (
        begun(Duration::from_millis(10)),
        begun(Duration::from_secs(1)),
    );
    let last = ran.iter().map(|it| it.at - restarted).max().expect("a run");
    println!("{at_once} began at once, {first} within a second, the last after {last:?}");
    assert!(at_once <= 5, "{at_once}");
    assert!((50..=150).contains(&first), "{first}");
    assert!(last < Duration::from_secs(10), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_actions_run_than_there_are_permits_and_deletions_have_their_share() {
    let rig = Rig::<Databases>::without_operator().await;
    rig.app.next_times(
        100,
        Start,
        &Reply::After(Duration::from_mins(1), Answer::Next),
    );
    rig.app.limit_attempts(Duration::from_hours(1));
    let client = rig.server.client_named(OPERATOR);
    let operator = Operator::new(client, rig.app.clone())
        .virtual_time()
        .actions(8);
    let operator = tokio::spawn(operator.run(std::future::pending()));
    for number in 0..30 {
        rig.create(&format!("db-{number:02}"), json!({})).await;
        rig.pass(Duration::from_millis(10)).await;
    }
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.ran().len(), 7, "one place is kept for deletions");
    // The first objects created begin first.
    rig.pass(Duration::from_mins(1)).await;
    let begun: HashSet<String> = rig.app.ran().into_iter().map(|ran| ran.name).collect();
    for number in 0..14 {
        assert!(begun.contains(&format!("db-{number:02}")), "{number}");
    }
    // A deletion does not wait.
    rig.delete("db-00").await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(rig.get("db-00").await.is_none(), "it is gone");
    rig.pass(Duration::from_mins(10)).await;
    for number in 1..30 {
        rig.until_ready(&format!("db-{number:02}"), Running).await;
    }
    operator.abort();
}
