//! A full disk, and a damaged journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::puppet::{Life, failing, once};

/// Starts an agent whose disk is full while the flag is set.
async fn with_disk() -> (Life, Arc<AtomicBool>) {
    let full = Arc::new(AtomicBool::new(false));
    let disk = Arc::clone(&full);
    let life = Life::with(failing(move |_, _| disk.load(Ordering::Relaxed))).await;
    (life, full)
}

#[tokio::test(start_paused = true)]
async fn with_a_full_disk_nothing_begins_and_an_end_is_published_after_it_is_recorded() {
    let (life, full) = with_disk().await;
    let request = once(1, &json!({ "seconds": 5 }));
    assert_eq!(life.put("a", request).await.status, 201);
    full.store(true, Ordering::Relaxed);
    assert!(life.ready().await);
    sleep(Duration::from_mins(2)).await;
    // The end is not recorded, so it is not published.
    assert_eq!(life.world.count("done a"), 1);
    let running = life.get("a").await.json;
    assert_eq!(running["phase"], "Running");
    let message = running["progress"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("it has ended, which cannot be recorded"),
        "{message}"
    );
    assert!(!life.ready().await);
    assert_eq!(
        life.put("b", once(2, &json!({}))).await.code(),
        (409, "Busy")
    );
    // The action may have filled the disk, so it can still be cancelled.
    assert_eq!(life.cancel("a", 1).await.status, 202);

    full.store(false, Ordering::Relaxed);
    assert_eq!(life.end("a").await.phase(), "Succeeded");
    assert!(life.ready().await);

    full.store(true, Ordering::Relaxed);
    let other = once(2, &json!({}));
    let refused = life.put("b", other.clone()).await;
    assert_eq!(refused.code(), (503, "CannotRecord"));
    assert_eq!(refused.json["retry"], true);
    assert_eq!(
        life.acknowledge("a", 1, 1).await.code(),
        (503, "CannotRecord")
    );
    assert_eq!(life.get("b").await.code(), (404, "NoSuchAction"));
    assert!(!life.ready().await);
    full.store(false, Ordering::Relaxed);
    sleep(Duration::from_mins(1)).await;
    assert!(life.ready().await, "the agent retries without a request");
    assert_eq!(life.world.count("begin b"), 0);
    assert_eq!(life.put("b", other).await.status, 201);
    assert_eq!(life.end("b").await.phase(), "Succeeded");
    let life = life.crash().await;
    assert_eq!(life.get("a").await.phase(), "Succeeded");
    assert_eq!(life.get("b").await.phase(), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn an_unrecorded_end_is_kept_when_another_change_is_recorded() {
    let (life, full) = with_disk().await;
    let request = once(1, &json!({ "seconds": 5 }));
    assert_eq!(life.put("a", request).await.status, 201);
    full.store(true, Ordering::Relaxed);
    sleep(Duration::from_mins(2)).await;
    full.store(false, Ordering::Relaxed);
    // Another change is recorded before the agent retries.
    assert_eq!(life.cancel("a", 2).await.status, 202);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(life.get("a").await.phase(), "Succeeded");
    let life = life.crash().await;
    assert_eq!(life.get("a").await.phase(), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_damaged_journal_answers_and_takes_no_action() {
    let life = Life::new().await;
    life.put("a", once(1, &json!({}))).await;
    life.end("a").await;
    let mut bytes = std::fs::read(life.journal()).unwrap();
    bytes[20] ^= 1;
    std::fs::write(life.journal(), &bytes).unwrap();
    let life = life.crash().await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(life.status().await["application"]["state"], "Running");
    assert_eq!(life.call("GET", "/livez", Value::Null).await.status, 200);
    let unready = life.call("GET", "/readyz", Value::Null).await;
    assert_eq!(unready.code(), (503, "CannotRecord"));
    let detail = unready.json["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("journal:1: the line is damaged"),
        "{detail}"
    );
    for answer in [
        life.put("a", once(1, &json!({}))).await,
        life.get("a").await,
        life.cancel("a", 1).await,
        life.acknowledge("a", 1, 1).await,
        life.get("").await,
        life.get("a/output").await,
    ] {
        assert_eq!(answer.code(), (503, "CannotRecord"));
    }
    assert_eq!(
        std::fs::read(life.journal()).unwrap(),
        bytes,
        "the journal is not changed"
    );
    assert_eq!(life.world.count("begin"), 1);
    life.started.stop().await;
}
