//! Pruning of resources that are no longer declared, and deletion of resources before their object.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt};
use okt::{Declared, Failure, Resources};
use okt_testing::{Fault, Verb};
use okt_tests::{Objects, ShopState::Open, ShopState::Opening, assert_contains, assert_within};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Shop, deployment, edit, map, of, open, redeclare};

#[tokio::test(start_paused = true)]
async fn undeclared_resources_are_pruned_except_data_and_kept_ones() {
    let secret = |name: &str| -> Secret { of(json!({ "metadata": { "name": name } })) };
    let rig = open(
        (Resources::new().apply(map("a", "x")).apply(map("b", "y")))
            .apply(secret("precious"))
            .with(Declared::of(secret("cheap")).prunable()),
    )
    .await;
    redeclare(&rig, Resources::new().keep::<ConfigMap>("b"));
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("a").await, None);
    assert_eq!(rig.text("b").await.as_deref(), Some("y"));
    let secrets = rig.of::<Secret>();
    assert!(secrets.has("precious").await);
    assert!(!secrets.has("cheap").await);
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_another_namespace_is_kept_by_keep_across_only() {
    let elsewhere = |name: &str| {
        let mut map = map(name, "x");
        map.metadata.namespace = Some("elsewhere".to_owned());
        Declared::of(map).unowned()
    };
    let rig = Shop::without_operator_of().await;
    rig.create_namespace("elsewhere").await;
    let declared = ["a", "b", "c"].into_iter().map(elsewhere);
    let declared = declared.fold(Resources::new(), Resources::with);
    rig.app.declare(declared.apply(map("c", "x")));
    rig.start();
    rig.create_ready("shop", Open).await;
    let across = ObjectRef::<ConfigMap>::new("b").within("elsewhere");
    let kept = Resources::new().keep::<ConfigMap>("elsewhere/a");
    let kept = kept.keep::<ConfigMap>("c").keep_across(&across);
    redeclare(&rig, kept);
    rig.pass(Duration::from_mins(1)).await;
    let maps: Api<ConfigMap> = Api::all(rig.client.clone());
    let left = maps.list(&ListParams::default()).await.expect("a list");
    let left: Vec<_> = (left.iter())
        .map(|map| (map.namespace().unwrap_or_default(), map.name_any()))
        .collect();
    let named = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
    assert_eq!(left, [named("default", "c"), named("elsewhere", "b")]);
}

/// Declares this many maps that have no owner reference.
fn unowned_maps(number: usize) -> Resources {
    let all = (0..number).map(|it| Declared::of(map(&format!("map-{it}"), "x")).unowned());
    all.fold(Resources::new(), Resources::with)
}

async fn number_of_maps(rig: &Shop) -> usize {
    let maps: Api<ConfigMap> = Api::all(rig.client.clone());
    maps.list(&ListParams::default())
        .await
        .expect("a list")
        .items
        .len()
}

#[tokio::test(start_paused = true)]
async fn many_unowned_resources_are_made_and_go_with_their_object() {
    for number in [64, 65, 300] {
        let rig = open(unowned_maps(number)).await;
        assert_eq!(number_of_maps(&rig).await, number);
        rig.delete_until_gone("shop").await;
        rig.pass(Duration::from_secs(1)).await;
        assert_eq!(number_of_maps(&rig).await, 0);
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "takes a minute; run with --include-ignored"]
async fn unowned_resources_beyond_the_limit_are_refused_by_name_and_the_others_made() {
    let rig = Shop::prepared("shop", |app| app.declare(unowned_maps(4_097))).await;
    let ready = rig.until_reason("shop", "Stalled", "BadResource").await;
    let message = "ConfigMap map-4096 has no owner reference, as 4096 others";
    assert_contains(&ready.message, message);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(number_of_maps(&rig).await, 4_096);
    // All others are declared: they have to wait for room.
    let others = (5_000..5_100).map(|it| Declared::of(map(&format!("map-{it}"), "x")).unowned());
    redeclare(&rig, others.fold(Resources::new(), Resources::with));
    rig.pass(Duration::from_mins(10)).await;
    rig.until_ready("shop", Open).await;
    assert_eq!(number_of_maps(&rig).await, 100);
    rig.delete_until_gone("shop").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(number_of_maps(&rig).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_work_on_the_way_out_needs_outlives_a_deletion_in_the_foreground_if_it_is_unowned() {
    let (web, settings) = (Declared::of(deployment("web")), Declared::of(map("a", "x")));
    let declared = Resources::new().with(web.unowned().wave(1));
    let rig = open(declared.with(settings.unowned())).await;
    let shops = rig.api();
    let deleted = shops.delete("shop", &DeleteParams::foreground()).await;
    deleted.expect("it is accepted");
    rig.until_gone("shop").await;
    let closed = rig.app.ran().last().cloned();
    assert_eq!(closed.as_deref(), Some("Closing with 2"));
    rig.pass(Duration::from_secs(1)).await;
    let deployments = rig.of::<Deployment>();
    assert!(!deployments.has("web").await);
    assert_eq!(rig.text("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pruned_while_the_declaration_fails() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let failure = Failure::retry("NoPlan", "the plan cannot be read");
    rig.app.fail_to_declare(Some(failure));
    rig.request("shop");
    rig.until_reason("shop", "Ready", "NoPlan").await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    rig.app.fail_to_declare(None);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
    let broken = Resources::new().apply(map("", "x"));
    redeclare(&rig, broken);
    rig.until_reason("shop", "Stalled", "BadResource").await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pruned_after_a_jump_until_the_work_of_the_state_succeeded() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.app.declare(Resources::new().apply(map("b", "x")));
    let shut = Failure::permanent("DoorJammed", "the door does not move");
    rig.app.fail_to_open(Some(shut));
    rig.app.sees(Some(Opening));
    rig.until_reason("shop", "Stalled", "DoorJammed").await;
    assert_eq!(rig.position("shop").await.jumps, 1);
    rig.pass(Duration::from_hours(1)).await;
    rig.restart().await;
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    assert_eq!(rig.text("b").await.as_deref(), Some("x"));
    rig.app.fail_to_open(None);
    rig.app.sees(None);
    rig.ask_for("shop", json!({ "request": "mended" })).await;
    rig.until_ready("shop", Open).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn unowned_resources_are_deleted_before_the_finalizer_is_removed() {
    let role: ClusterRole = of(json!({ "metadata": { "name": "shop" } }));
    let rig = open(Resources::new().with(Declared::of(role).unowned())).await;
    let roles = rig.of::<ClusterRole>();
    let finalizers = async |finalizers: Value| {
        roles
            .edit("shop", json!({ "metadata": { "finalizers": finalizers } }))
            .await;
    };
    finalizers(json!(["test.okt.dev/hold"])).await;
    rig.delete("shop").await;
    let ready = rig
        .until_reason("shop", "Ready", "WaitingForResources")
        .await;
    assert!(
        ready
            .message
            .starts_with("ClusterRole shop is not gone yet; to abandon it, ")
    );
    rig.pass(Duration::from_hours(1)).await;
    let role = roles.read("shop").await;
    assert!(role.metadata.deletion_timestamp.is_some());
    finalizers(json!(null)).await;
    rig.until_gone("shop").await;
}

#[tokio::test(start_paused = true)]
async fn a_copy_with_the_labels_of_what_is_owned_is_not_deleted() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let mut copy = rig.of::<ConfigMap>().read("a").await;
    copy.metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        name: Some("copy".to_owned()),
        labels: copy.metadata.labels,
        annotations: copy.metadata.annotations,
        ..Default::default()
    };
    rig.of::<ConfigMap>().make(json!(&copy)).await;
    rig.request("shop");
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("copy").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn data_goes_only_where_that_is_allowed_explicitly() {
    let secret: Secret = of(
        json!({ "metadata": { "name": "precious", "annotations": { "okt.dev/prune": "false" } } }),
    );
    let rig = open(Resources::new().apply(secret)).await;
    redeclare(&rig, Resources::new());
    rig.pass(Duration::from_mins(1)).await;
    let secrets = rig.of::<Secret>();
    assert!(secrets.has("precious").await);
}

/// A shop with the maps `a` and `a-too` in wave 2, `b` in wave 1 and `c` in no wave, each held by a foreign finalizer.
async fn held_in_waves() -> Shop {
    let resources = Resources::new()
        .with(Declared::of(map("b", "x")).wave(1))
        .apply(map("c", "x"))
        .with(Declared::of(map("a", "x")).wave(2))
        .with(Declared::of(map("a-too", "x")).wave(2));
    let rig = open(resources).await;
    for name in ["a", "a-too", "b", "c"] {
        hold(&rig, name, json!(["test.okt.dev/hold"])).await;
    }
    rig
}

async fn hold(rig: &Shop, name: &str, finalizers: Value) {
    edit(
        rig,
        name,
        json!({ "metadata": { "finalizers": finalizers } }),
    )
    .await;
    rig.pass(Duration::from_secs(5)).await;
}

/// Returns the maps that have a deletion timestamp.
async fn going(rig: &Shop) -> Vec<String> {
    let all = rig
        .of::<ConfigMap>()
        .list(&ListParams::default())
        .await
        .expect("a list");
    let going = all
        .into_iter()
        .filter(|it| it.meta().deletion_timestamp.is_some());
    going.map(|it| it.name_any()).collect()
}

#[tokio::test(start_paused = true)]
async fn undeclared_resources_are_pruned_in_waves_and_the_conditions_name_the_pending_ones() {
    let rig = held_in_waves().await;
    redeclare(&rig, Resources::new());
    let ready = rig
        .until_reason("shop", "Ready", "WaitingForResources")
        .await;
    assert_eq!(
        ready.message,
        "ConfigMap a is not gone yet; ConfigMap a-too is not gone yet; 2 objects go after that"
    );
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(going(&rig).await, ["a", "a-too"]);
    hold(&rig, "a", json!(null)).await;
    assert_eq!(going(&rig).await, ["a-too"]);
    hold(&rig, "a-too", json!(null)).await;
    assert_eq!(going(&rig).await, ["b"]);
    let ready = rig.condition("shop", "Ready").await.expect("a condition");
    assert_eq!(
        ready.message,
        "ConfigMap b is not gone yet; 1 object goes after that"
    );
    hold(&rig, "b", json!(null)).await;
    // OKT does not wait for resources without a wave.
    assert_eq!(going(&rig).await, ["c"]);
    rig.until_ready("shop", Open).await;
}

#[tokio::test(start_paused = true)]
async fn resources_with_a_wave_are_deleted_before_the_finalizer_is_removed() {
    let rig = held_in_waves().await;
    rig.delete("shop").await;
    let ready = rig
        .until_reason("shop", "Ready", "WaitingForResources")
        .await;
    assert!(
        ready
            .message
            .starts_with("ConfigMap a is not gone yet; ConfigMap a-too is not gone yet"),
        "{}",
        ready.message
    );
    rig.pass(Duration::from_mins(10)).await;
    let going_now = going(&rig).await;
    assert!(!going_now.contains(&"b".to_owned()), "{going_now:?}");
    hold(&rig, "a", json!(null)).await;
    hold(&rig, "a-too", json!(null)).await;
    assert!(going(&rig).await.contains(&"b".to_owned()));
    assert!(rig.get("shop").await.is_some(), "it waits");
    hold(&rig, "b", json!(null)).await;
    rig.until_gone("shop").await;
    assert!(rig.text("c").await.is_some(), "it is left to Kubernetes");
}

#[tokio::test(start_paused = true)]
async fn orphan_deletion_leaves_resources_with_a_wave() {
    let rig = open(Resources::new().with(Declared::of(map("a", "x")).wave(1))).await;
    rig.app.declare_to_the_end();
    let orphans = json!({ "metadata": { "finalizers": ["okt.dev/lifecycle", "orphan"] } });
    rig.patch("shop", orphans).await;
    rig.delete_until_gone("shop").await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn a_wave_whose_deletion_is_refused_holds_back_the_next_one_and_is_retried() {
    let rig = open(
        Resources::new()
            .with(Declared::of(map("a", "x")).wave(1))
            .apply(map("b", "x")),
    )
    .await;
    let fault = rig.inject(Fault::forbidden().on(Verb::Delete).resource("configmaps"));
    redeclare(&rig, Resources::new());
    rig.until_reason("shop", "Ready", "ResourceForbidden").await;
    rig.pass(Duration::from_mins(1)).await;
    assert!(rig.text("b").await.is_some());
    fault.end();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!((rig.text("a").await, rig.text("b").await), (None, None));
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
}

fn role() -> Declared {
    let role = json!({ "metadata": { "name": "role" } });
    Declared::of(of::<ClusterRole>(role)).unowned()
}

async fn has_role(rig: &Shop) -> bool {
    let roles = rig.of::<ClusterRole>();
    roles.has("role").await
}

#[tokio::test(start_paused = true)]
async fn an_object_stays_while_its_unowned_resources_cannot_be_listed() {
    let rig = open(Resources::new().with(role())).await;
    rig.kill().await;
    let fault = rig.inject(Fault::forbidden().on(Verb::List).resource("clusterroles"));
    rig.start();
    rig.delete("shop").await;
    let waits = rig
        .until_reason("shop", "Ready", "ResourceNotWatched")
        .await;
    assert!(
        waits
            .message
            .starts_with("ClusterRole objects cannot be listed: "),
        "{}",
        waits.message
    );
    rig.pass(Duration::from_mins(10)).await;
    assert!(rig.get("shop").await.is_some() && has_role(&rig).await);
    fault.end();
    rig.until_gone("shop").await;
    assert!(!has_role(&rig).await);
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_before_the_finalizer_is_removed_does_not_hold_back_the_others() {
    let unowned = |name: &str| Declared::of(map(name, "x")).unowned();
    let rig = open((Resources::new().with(unowned("a"))).with(unowned("b"))).await;
    let fault = rig.inject(
        Fault::forbidden()
            .matching(|request| {
                request.verb == Verb::Delete && request.name.as_deref() == Some("a")
            })
            .resource("configmaps"),
    );
    rig.delete("shop").await;
    rig.until_reason("shop", "Ready", "ResourceForbidden").await;
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.text("b").await, None);
    fault.end();
    rig.until_gone("shop").await;
    assert_eq!(rig.text("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn after_a_deletion_without_an_answer_no_other_waits_as_long_in_vain() {
    let unowned = |name: &str| Declared::of(map(name, "x")).unowned();
    let rig = open((Resources::new().with(unowned("a"))).with(unowned("b"))).await;
    let fault = rig.inject(Fault::no_answer().on(Verb::Delete).resource("configmaps"));
    let begun = Instant::now();
    rig.delete("shop").await;
    rig.until_reason("shop", "Ready", "ResourceUnanswered")
        .await;
    // A request is given up after a minute.
    assert_within(begun, Duration::from_secs(100));
    fault.end();
    rig.until_gone("shop").await;
    assert_eq!((rig.text("a").await, rig.text("b").await), (None, None));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_the_last_state_cannot_declare_what_it_keeps() {
    let rig = open(Resources::new().with(role())).await;
    rig.app
        .declare(Resources::new().keep::<ClusterRole>("role"));
    rig.app.declare_to_the_end();
    rig.app
        .fail_to_declare(Some(Failure::retry("Unreachable", "no answer")));
    rig.delete("shop").await;
    rig.until_reason("shop", "Ready", "Unreachable").await;
    rig.pass(Duration::from_mins(5)).await;
    assert!(rig.get("shop").await.is_some());
    rig.app.fail_to_declare(None);
    rig.until_gone("shop").await;
    assert!(has_role(&rig).await, "it was kept");
}

#[tokio::test(start_paused = true)]
async fn a_resource_kind_that_is_not_served_does_not_block_deletion() {
    let rig = Shop::without_operator_of().await;
    let list = |fault: Fault| {
        let fault = fault.on(Verb::List);
        rig.inject(fault.resource("clusterroles"))
    };
    let forbidden = list(Fault::forbidden());
    rig.start();
    rig.create_ready("shop", Open).await;
    rig.delete("shop").await;
    rig.until_reason("shop", "Ready", "ResourceNotWatched")
        .await;
    // Now the role allows the list, but the kind does not exist.
    forbidden.end();
    let _ = list(Fault::answer(
        404,
        "NotFound",
        "the server could not find the requested resource",
    ));
    rig.until_gone("shop").await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_unowned_resources_is_deleted_even_if_its_last_state_cannot_declare() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.app
        .fail_to_declare(Some(Failure::permanent("Invalid", "no")));
    rig.delete_until_gone("shop").await;
}
