//! OKT reverts changes of its resources by others, at a limited rate.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use okt::{OWNER_LABEL, Resources};
use okt_testing::Verb;
use okt_tests::{OPERATOR, Objects, ShopState::Open};
use serde_json::json;

use super::{Shop, edit, map, of, open, redeclare, writes};

#[tokio::test(start_paused = true)]
async fn changes_by_others_are_reverted_and_their_additions_are_kept() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    edit(
        &rig,
        "a",
        json!({ "data": { "text": "spoilt", "more": "of theirs" } }),
    )
    .await;
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    let map = rig.of::<ConfigMap>().read("a").await;
    assert_eq!(map.data.expect("data")["more"], "of theirs");
    edit(&rig, "a", json!({ "metadata": { "labels": null } })).await;
    rig.pass(Duration::from_mins(1)).await;
    let map = rig.of::<ConfigMap>().read("a").await;
    assert!(
        map.labels().contains_key(OWNER_LABEL),
        "the owner label is restored too"
    );
}

/// Spoils an object every second for ten minutes, and checks how often the operator has repaired it.
async fn spoil(rig: &Shop, once: impl AsyncFn()) {
    rig.wire.clear();
    for _ in 0..600 {
        once().await;
        rig.pass(Duration::from_secs(1)).await;
    }
    let repairs = writes(rig).len();
    assert!(
        (3..=15).contains(&repairs),
        "{repairs} repairs in 10 minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_client_keeps_changing_is_applied_with_a_backoff() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    spoil(&rig, async || {
        change(&rig, "gitops", "spoilt").await;
    })
    .await;
    let who = "ConfigMap a was changed again, last by gitops; it is applied again after a backoff";
    rig.until_message("shop", "Ready", "WaitingForResources", who)
        .await;
    assert_eq!(
        rig.shows("shop", "Ready").await,
        "False WaitingForResources"
    );
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_resource_is_created_again() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let before = rig.of::<ConfigMap>().read("a").await.uid();
    rig.of::<ConfigMap>().remove("a").await;
    rig.pass(Duration::from_secs(5)).await;
    let after = rig.of::<ConfigMap>().read("a").await.uid();
    assert_ne!(before, after);
}

/// Changes the text of a `ConfigMap` as a manager.
async fn change(rig: &Shop, manager: &str, text: &str) {
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({ "data": { "text": text } }));
    let changed = rig.of::<ConfigMap>().patch("a", &params, &patch).await;
    changed.expect("it is changed");
}

#[tokio::test(start_paused = true)]
async fn a_repair_is_an_event_that_names_who_changed_the_object() {
    let resources = Resources::new().apply(map("a", "x")).apply(map("b", "x"));
    let rig = open(resources).await;
    let repairs = async || {
        rig.pass(Duration::from_mins(10)).await;
        let notes = rig.notes().await.into_iter();
        let of_map = notes.filter(|note| note.starts_with("ConfigMap"));
        of_map.collect::<Vec<_>>()
    };
    change(&rig, "sidekick", "x").await;
    assert_eq!(
        repairs().await,
        [""; 0],
        "the same value is shared, not taken"
    );
    change(&rig, "kubectl-edit", "spoilt").await;
    let changed = "ConfigMap a was changed by kubectl-edit: it is applied again";
    assert_eq!(repairs().await, [changed]);
    rig.of::<ConfigMap>().remove("a").await;
    let deleted = "ConfigMap a was deleted: it is created again";
    assert_eq!(repairs().await, [changed, deleted]);
    // What the operator itself deletes and makes again is no repair.
    redeclare(&rig, Resources::new().apply(map("a", "x")));
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("b").await, None);
    let again = Resources::new().apply(map("a", "x")).apply(map("b", "x"));
    redeclare(&rig, again);
    assert_eq!(repairs().await, [changed, deleted]);
    assert_eq!(rig.text("b").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_not_repaired() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.pause("shop").await;
    rig.pass(Duration::from_secs(1)).await;
    edit(&rig, "a", json!({ "data": { "text": "spoilt" } })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("spoilt"));
    rig.unpause("shop").await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_client_keeps_stripping_is_applied_with_a_backoff() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    spoil(&rig, async || {
        edit(&rig, "a", json!({ "metadata": { "annotations": null } })).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_client_keeps_deleting_is_created_with_a_backoff() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    spoil(&rig, async || {
        let map = rig.of::<ConfigMap>();
        // It may be gone already.
        let _ = map.delete("a", &DeleteParams::default()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unready_object_that_is_paused_is_not_made_ready_by_a_restart() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let theirs = map("b", "theirs");
    rig.of::<ConfigMap>().make(json!(&theirs)).await;
    redeclare(&rig, Resources::new().apply(map("b", "ours")));
    let before = rig.until_reason("shop", "Ready", "NotOwned").await;
    rig.pause("shop").await;
    rig.pass(Duration::from_mins(1)).await;
    rig.wire.clear();
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    let after = rig.condition("shop", "Ready").await.expect("it says so");
    assert_eq!(
        (after.reason, after.message),
        (before.reason, before.message)
    );
    assert_eq!(rig.wire.writes(), [""; 0]);
    rig.unpause("shop").await;
    rig.of::<ConfigMap>().remove("b").await;
    rig.until_ready("shop", Open).await;
}

#[tokio::test(start_paused = true)]
async fn an_unready_object_that_is_paused_causes_no_requests() {
    let rig = Shop::without_operator_of().await;
    let theirs = map("a", "theirs");
    rig.of::<ConfigMap>().make(json!(&theirs)).await;
    rig.app.declare(Resources::new().apply(map("a", "ours")));
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_reason("shop", "Ready", "NotOwned").await;
    rig.pause("shop").await;
    rig.pass(Duration::from_secs(1)).await;
    let mark = rig.server.mark();
    let before = rig.app.asked();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.asked(), before);
    let asked = rig.server.requests_since(mark).into_iter();
    let of_maps = asked
        .filter(|it| it.client == OPERATOR && it.resource == "configmaps" && it.verb == Verb::Get);
    assert_eq!(of_maps.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_secret_with_string_data_is_repaired_like_one_with_data() {
    let secret: Secret =
        of(json!({ "metadata": { "name": "s" }, "stringData": { "key": "ours" } }));
    let rig = open(Resources::new().apply(secret)).await;
    let secrets = rig.of::<Secret>();
    secrets
        .edit("s", json!({ "data": { "key": "dGhlaXJz" } }))
        .await;
    rig.pass(Duration::from_mins(1)).await;
    let data = secrets.read("s").await.data.expect("data");
    assert_eq!(data["key"].0, b"ours");
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_whose_spec_comes_back_to_what_it_was_is_ready_again() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.pause("shop").await;
    rig.pass(Duration::from_mins(1)).await;
    rig.patch(
        "shop",
        json!({ "spec": { "lifecycle": { "state": "Closed" } } }),
    )
    .await;
    rig.pass(Duration::from_mins(1)).await;
    assert!(rig.shows("shop", "Ready").await.starts_with("False"));
    rig.patch(
        "shop",
        json!({ "spec": { "lifecycle": { "state": null } } }),
    )
    .await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
}
