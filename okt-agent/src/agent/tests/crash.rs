//! `kill -9` at every point of an action's life.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};

use super::puppet::{Life, World, failing, once, work};

/// More steps of writing than the life of one action has.
const STEPS: usize = 28;

/// The answers that an operator received before the crash.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an answer that it has, or has not, had"
)]
struct Answers {
    begun: bool,
    refused: bool,
    succeeded: bool,
    acknowledged: bool,
}

/// Runs an agent whose disk fails from this step on and which is killed after this many seconds, then starts another
/// one.
async fn killed(state: &str, step: usize, after: u64) -> (Life, Answers) {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let gone = failing(move |number, _| number > step);
    let life = Life::start(World::new(), directory, gone).await;
    let mut answers = Answers::default();
    let lived = async {
        let request = work(state, 1, 1, &json!({ "seconds": 10, "remember": "pid 7" }));
        let status = life.put("a", request).await.status;
        answers.begun = status == 201;
        answers.refused = status == 503;
        if answers.refused {
            // This agent must not begin the action either. The next one may find the record if the disk failed after
            // the record was written and before it could be cut off.
            sleep(Duration::from_hours(1)).await;
        }
        let end = life.end("a").await;
        answers.succeeded = end.phase() == "Succeeded";
        if answers.succeeded {
            answers.acknowledged = life.acknowledge("a", 1, 1).await.status == 200;
        }
        sleep(Duration::from_hours(1)).await;
    };
    let _ = timeout(Duration::from_secs(after), lived).await;
    (life.crash().await, answers)
}

#[tokio::test(start_paused = true)]
async fn work_that_is_not_repeatable_begins_once_and_is_unknown_if_its_end_is_lost() {
    let mut phases = std::collections::BTreeSet::new();
    for step in 0..STEPS {
        for after in [0, 5, 60] {
            let (life, answers) = killed("Once", step, after).await;
            let at = format!("step {step}, {after} s, {answers:?}, {:?}", life.world.log);
            let end = life.end("a").await;
            let begun = life.world.count("begin a");
            assert!(begun <= 1, "{at}");
            assert!(!(answers.refused && begun > 0), "refused and begun: {at}");
            match end.phase() {
                "Succeeded" => assert_eq!(life.world.count("done a"), 1, "{at}"),
                "Unknown" => assert!(!answers.succeeded, "an end was lost: {at}"),
                // The note for the cleanup could not be stored.
                "Failed" => assert_eq!(life.world.count("remember a false"), 1, "{at}"),
                _ => {
                    assert_eq!(end.code(), (404, "NoSuchAction"), "{at}");
                    assert!(!answers.begun && begun == 0, "a promise was lost: {at}");
                }
            }
            if answers.acknowledged {
                assert_eq!(end.json["acknowledged"], true, "{at}");
            }
            phases.insert(end.phase().to_owned());
            // The old action does not block later ones.
            let next = life.put("b", once(2, &json!({}))).await;
            assert_eq!(next.status, 201, "{at}");
            assert_eq!(life.end("b").await.phase(), "Succeeded", "{at}");
        }
    }
    let expected = ["", "Succeeded", "Unknown"].map(ToOwned::to_owned);
    assert!(
        expected.iter().all(|phase| phases.contains(phase)),
        "{phases:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn repeatable_work_is_resumed_after_its_leftovers_are_cleaned_up() {
    let mut resumed = 0;
    for step in 0..STEPS {
        for after in [0, 5, 60] {
            let (life, answers) = killed("Twice", step, after).await;
            let end = life.end("a").await;
            let log = life.world.log.lock().clone();
            let at = format!("step {step}, {after} s, {answers:?}, {log:?}");
            match end.phase() {
                "Succeeded" => assert_eq!(end.json["attempt"], 1, "{at}"),
                "Failed" => assert!(life.world.count("remember a false") > 0, "{at}"),
                _ => assert!(!answers.begun && life.world.count("begin") == 0, "{at}"),
            }
            if answers.succeeded {
                assert_eq!(life.world.count("begin a"), 1, "begun again: {at}");
            }
            if life.world.count("begin a 1 resumed") > 0 {
                resumed += 1;
                assert_eq!(end.json["resumed"], true, "{at}");
                let place = |prefix: &str| log.iter().rposition(|line| line.starts_with(prefix));
                let recovered = place("recover a");
                assert!(
                    recovered.is_some() && recovered < place("begin a 1 resumed"),
                    "{at}"
                );
                let remembered = log.iter().position(|line| line == "remember a true");
                if remembered < recovered && remembered.is_some() {
                    let noted = log
                        .iter()
                        .any(|line| line.contains("Some(String(\"pid 7\"))"));
                    assert!(noted, "a note was lost: {at}");
                }
            }
        }
    }
    assert!(resumed > 10, "{resumed}");
}

#[tokio::test(start_paused = true)]
async fn an_action_that_was_being_cancelled_is_not_resumed() {
    let life = Life::new().await;
    life.put("a", work("Twice", 1, 1, &json!({ "how": "stubborn" })))
        .await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(life.cancel("a", 1).await.status, 202);
    let life = life.crash().await;
    assert_eq!(life.end("a").await.phase(), "Cancelled");
    assert_eq!(life.world.count("begin a"), 1);
    assert_eq!(life.world.count("recover a"), 1);
}
