//! Progress messages of running work.

use std::time::Duration;

use okt::Answer;
use okt_tests::{DatabaseState::*, Reply, Rig};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn progress_is_shown_at_most_every_ten_seconds_and_the_newest_wins() {
    let rig = Rig::new().await;
    for number in 0..600 {
        let text = format!("{number} of 600 pages");
        rig.app.next_time(Start, Reply::Progress(text));
        rig.app
            .next_time(Start, Reply::Pause(Duration::from_millis(100)));
    }
    rig.create_in("db", Start).await;
    rig.wire.clear();
    let observations = rig.app.observations();
    rig.pass(Duration::from_secs(55)).await;
    let writes = rig.wire.writes().len();
    assert!((4..=6).contains(&writes), "{writes}");
    let message = rig.position("db").await.action.expect("an action").message;
    let shown: u32 = message
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!((430..=560).contains(&shown), "{message}");
    let observations = rig.app.observations() - observations;
    assert!(
        observations < 30,
        "{observations} observations for 550 texts"
    );
    rig.until_ready("db", Running).await;
    assert_eq!(
        rig.position("db").await.action.expect("an action").message,
        ""
    );
}

#[tokio::test(start_paused = true)]
async fn progress_is_bounded_between_characters() {
    let rig = Rig::new().await;
    rig.app.next_time(Start, Reply::Progress("é".repeat(1000)));
    rig.app
        .next_time(Start, Reply::After(Duration::from_mins(1), Answer::Next));
    rig.create("db", json!({})).await;
    rig.until_position("db", "says something", |position| {
        let action = position.action.as_ref();
        action.is_some_and(|a| !a.message.is_empty())
    })
    .await;
    let message = rig.position("db").await.action.expect("an action").message;
    assert_eq!(message, "é".repeat(128));
    rig.until_ready("db", Running).await;
}

#[tokio::test(start_paused = true)]
async fn progress_shows_in_no_condition() {
    let rig = Rig::new().await;
    rig.app
        .next_time(Start, Reply::Progress("almost there".to_owned()));
    rig.app
        .next_time(Start, Reply::After(Duration::from_mins(1), Answer::Next));
    rig.create("db", json!({})).await;
    rig.pass(Duration::from_secs(30)).await;
    let database = rig.object("db").await;
    let status = database.status.expect("a status");
    assert_eq!(
        status
            .lifecycle
            .and_then(|l| l.action)
            .expect("an action")
            .message,
        "almost there"
    );
    assert!(
        status
            .conditions
            .iter()
            .all(|c| !c.message.contains("almost"))
    );
}
