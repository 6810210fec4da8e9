//! A restored backup of the cluster: its history goes back, and versions and transitions repeat.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_tests::{DatabaseState, DatabaseState::*, Kiosks, Objects, Rig};
use serde_json::json;

/// Writes often, so that resource versions go far beyond those of the backup.
async fn churn(rig: &Rig) {
    for number in 0..200 {
        let label = json!({ "metadata": { "labels": { "n": number.to_string() } } });
        rig.patch("other", label).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restore_objects_continue_and_no_id_names_two_actions() {
    let rig = Rig::new().await;
    rig.create_all_ready(&["db", "other", "quiet"], Running)
        .await;
    let backup = rig.server.backup();
    let before = rig.position("db").await;
    // In the lost history the database is stopped.
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
    churn(&rig).await;
    rig.pass(Duration::from_mins(1)).await;

    rig.server.restore(&backup);
    assert_eq!(rig.position("db").await, before);
    rig.pass(Duration::from_mins(12)).await;
    // In the history after the restore the database is backed up, and `quiet` is stopped.
    rig.ask_for("quiet", json!({ "state": "End" })).await;
    rig.visit("db", "Servicing", "1").await;
    rig.pass(Duration::from_mins(1)).await;
    let trail = rig.position("db").await.trail;
    assert_eq!(trail, ">Start>Running>Servicing>Running>");
    rig.until_ready("quiet", End).await;

    let mut works: BTreeMap<String, DatabaseState> = BTreeMap::new();
    for ran in rig.app.ran() {
        let work = works.entry(ran.id.clone()).or_insert(ran.state);
        assert_eq!(*work, ran.state, "{} names two pieces of work", ran.id);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_released_in_the_lost_history_is_reconciled_again() {
    let rig = Rig::new().await;
    for name in ["db", "other"] {
        rig.create_ready(name, Running).await;
    }
    let backup = rig.server.backup();
    rig.delete_until_gone("db").await;
    churn(&rig).await;
    rig.server.restore(&backup);
    rig.pass(Duration::from_mins(12)).await;
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.until_ready("db", End).await;
}

#[tokio::test(start_paused = true)]
async fn owned_objects_are_listed_again_after_a_restore() {
    let rig = Rig::<Kiosks>::of().await;
    rig.create_with("kiosk", json!({ "maps": { "map": "a" } }))
        .await;
    rig.until_ready("kiosk", okt_tests::KioskState::Open).await;
    let backup = rig.server.backup();
    for text in 0..100 {
        let maps = json!({ "spec": { "maps": { "map": text.to_string(), "another": "b" } } });
        rig.patch("kiosk", maps).await;
        rig.pass(Duration::from_secs(1)).await;
    }
    rig.server.restore(&backup);
    rig.pass(Duration::from_mins(12)).await;
    assert_eq!(rig.app.sees_maps("kiosk"), ["map"]);
    rig.patch("kiosk", json!({ "spec": { "maps": { "map": "c" } } }))
        .await;
    rig.pass(Duration::from_secs(5)).await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(rig.client.clone(), "default");
    let map = maps.read("map").await;
    assert_eq!(map.data.expect("data")["text"], "c");
}
