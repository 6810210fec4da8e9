//! An application that is one external resource: four methods create, update, repair and delete it.

use std::time::Duration;

use okt::{AsResource, Delegated};
use okt_tests::{BucketState::*, Buckets, Rig};
use serde_json::json;

type Hall = Rig<Delegated<AsResource<Buckets>>>;

fn buckets(rig: &Hall) -> &Buckets {
    &rig.app.0.0
}

async fn kept() -> Hall {
    let rig = Hall::of().await;
    rig.create_ready("a", Kept).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn the_entry_creates_every_other_state_updates_and_the_leaf_deletes() {
    let rig = kept().await;
    assert_eq!(buckets(&rig).calls(), ["create 1"]);
    rig.delete_until_gone("a").await;
    assert_eq!(buckets(&rig).calls(), ["create 1", "delete 1"]);
    assert_eq!(buckets(&rig).size("a"), None);
}

#[tokio::test(start_paused = true)]
async fn only_a_changed_spec_causes_an_update() {
    let rig = kept().await;
    rig.pass(Duration::from_mins(10)).await;
    rig.patch("a", json!({ "spec": { "size": 2 } })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(buckets(&rig).size("a"), Some(2));
    let calls = buckets(&rig).calls();
    assert_eq!(calls, ["create 1", "update 2"]);
    rig.until_ready("a", Kept).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_created_before_a_crash_is_found_and_not_created_twice() {
    let rig = Hall::of().await;
    buckets(&rig).be_silent(true);
    rig.create_in("a", Made).await;
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(buckets(&rig).calls(), ["create 1"]);
    rig.kill().await;
    buckets(&rig).be_silent(false);
    rig.start();
    rig.until_ready("a", Kept).await;
    assert_eq!(buckets(&rig).calls(), ["create 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_older_than_its_object_is_adopted() {
    let rig = Hall::of().await;
    buckets(&rig).spoil("a", Some(7));
    rig.create_ready("a", Kept).await;
    assert_eq!(buckets(&rig).calls(), ["update 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_creation_is_requested_once_and_waited_for() {
    let rig = Hall::without_operator_of().await;
    buckets(&rig).take_observations(20);
    rig.start();
    rig.create_in("a", Made).await;
    rig.pass(Duration::from_secs(20)).await;
    assert_eq!(buckets(&rig).calls(), ["create 1"]);
    let action = rig.position("a").await.action.expect("an action");
    assert_eq!(action.message, "it is being made");
    rig.until_ready("a", Kept).await;
    assert_eq!(buckets(&rig).calls(), ["create 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_is_retried_and_the_object_stays_until_it_succeeds() {
    let rig = kept().await;
    buckets(&rig).refuse(3);
    rig.delete("a").await;
    rig.until_in("a", Gone).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(buckets(&rig).size("a"), Some(1));
    assert!(rig.get("a").await.is_some(), "it is kept");
    rig.until_gone("a").await;
    assert_eq!(buckets(&rig).size("a"), None);
    let deletes = buckets(&rig).calls().into_iter();
    assert_eq!(deletes.filter(|call| call == "delete 1").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_change_by_others_is_reverted_where_the_application_reports_it() {
    let rig = kept().await;
    buckets(&rig).spoil("a", Some(9));
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(buckets(&rig).size("a"), Some(1));
    rig.until_ready("a", Kept).await;
    assert_eq!(rig.position("a").await.trail, ">Made>Kept>Mended>Kept>");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_others_remove_is_created_again() {
    let rig = kept().await;
    buckets(&rig).spoil("a", None);
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(buckets(&rig).size("a"), Some(1));
    rig.until_ready("a", Kept).await;
    let creates = buckets(&rig).calls().into_iter();
    assert_eq!(creates.filter(|call| call == "create 1").count(), 2);
}
