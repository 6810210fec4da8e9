//! Observations of the application: the last one, and never an outdated one.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::puppet::{Life, once};

#[tokio::test(start_paused = true)]
async fn an_observation_is_reported_with_its_age() {
    let life = Life::new().await;
    assert_eq!(
        life.status().await["application"],
        json!({ "seen": "unobserved" })
    );
    sleep(Duration::from_millis(2500)).await;
    let seen = &life.status().await["application"];
    assert_eq!(seen["seen"], "in");
    assert_eq!(seen["state"], "Running");
    assert_eq!(seen["ageMs"], 2500);
    sleep(Duration::from_millis(3500)).await;
    assert_eq!(
        life.status().await["application"]["ageMs"],
        1000,
        "observed every 5 s"
    );
}

#[tokio::test(start_paused = true)]
async fn an_observation_that_hangs_or_panics_is_unreachable_and_two_never_overlap() {
    let life = Life::new().await;
    life.world.put_at(None);
    sleep(Duration::from_secs(20)).await;
    let seen = life.status().await["application"].clone();
    assert_eq!(seen["seen"], "unreachable");
    assert_eq!(seen["why"], "no answer within 5s");
    life.world.put_at(Some(""));
    sleep(Duration::from_secs(20)).await;
    let seen = life.status().await["application"].clone();
    assert_eq!(seen["why"], "the observation panicked: no place");
    life.world.put_at(Some("Start"));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(life.status().await["application"]["state"], "Start");
}

#[tokio::test(start_paused = true)]
async fn after_an_action_nothing_is_observed_until_the_next_observation() {
    let life = Life::new().await;
    let observations = || life.world.observations.load(Ordering::Relaxed);
    sleep(Duration::from_secs(1)).await;
    life.put("a", once(1, &json!({ "seconds": 5 }))).await;
    // The observation at 5 s begins before the end at 6 s, and reports at 7 s the state before the end.
    life.world.put_at(Some("slow Running"));
    sleep(Duration::from_millis(4500)).await;
    assert_eq!(observations(), 2);
    life.world.put_at(None);
    assert_eq!(life.end("a").await.phase(), "Succeeded");
    for _ in 0..3 {
        assert_eq!(
            life.status().await["application"],
            json!({ "seen": "unobserved" })
        );
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(observations(), 3, "the application was observed once");
    life.world.put_at(Some("Servicing"));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(life.status().await["application"]["state"], "Servicing");
}

#[tokio::test(start_paused = true)]
async fn work_requested_from_a_state_begins_in_no_other() {
    let life = Life::new().await;
    life.world.put_at(Some("Stopped"));
    sleep(Duration::from_secs(6)).await;
    let mut request = once(1, &json!({}));
    request["from"] = json!(["Start", "Running"]);
    let refused = life.put("a", request.clone()).await;
    assert_eq!(refused.code(), (412, "WrongState"));
    life.world.put_at(Some("Running"));
    sleep(Duration::from_secs(6)).await;
    assert_eq!(life.put("a", request).await.status, 201);
}
