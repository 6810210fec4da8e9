//! Names that belong to others, and servers that refuse.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use okt::{Declared, Resources};
use okt_testing::{Fault, Verb};
use okt_tests::{Objects, ShopState::Open};
use serde_json::json;

use super::{Shop, deployment, map, of, open, redeclare};

#[tokio::test(start_paused = true)]
async fn an_object_of_another_owner_with_the_same_name_is_not_taken_over() {
    let rig = Shop::without_operator_of().await;
    let maps = rig.of::<ConfigMap>();
    let theirs = map("a", "theirs");
    maps.make(json!(&theirs)).await;
    rig.app.declare(
        Resources::new()
            .apply(map("a", "ours"))
            .apply(map("b", "ours")),
    );
    rig.start();
    rig.create("shop", json!({})).await;
    let ready = rig.until_reason("shop", "Ready", "NotOwned").await;
    assert_eq!(
        ready.message,
        "ConfigMap a exists and was not made for this object: delete or rename one of them"
    );
    assert_eq!(rig.text("a").await.as_deref(), Some("theirs"));
    assert_eq!(
        rig.text("b").await.as_deref(),
        Some("ours"),
        "other resources are created"
    );
    assert_eq!(rig.app.ran(), [""; 0]);
    assert_eq!(rig.events().await, ["Warning NotOwned"]);
    maps.remove("a").await;
    rig.until_ready("shop", Open).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("ours"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_resource_is_retried_and_the_work_waits() {
    let rig = Shop::without_operator_of().await;
    rig.app.declare(Resources::new().apply(map("a", "x")));
    rig.inject(
        Fault::forbidden()
            .on(Verb::Apply)
            .resource("configmaps")
            .times(5),
    );
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_reason("shop", "Ready", "ResourceForbidden").await;
    assert_eq!(rig.app.ran(), [""; 0]);
    rig.until_ready("shop", Open).await;
    assert_eq!(rig.app.ran(), ["Opening with 1", "Open with 1"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_took_the_name_of_a_deleted_one_is_not_overwritten() {
    let rig = open(Resources::new().apply(map("a", "ours"))).await;
    rig.server.set_watch_lag(Duration::from_secs(20));
    rig.of::<ConfigMap>().remove("a").await;
    rig.of::<ConfigMap>().make(json!(&map("a", "theirs"))).await;
    redeclare(&rig, Resources::new().apply(map("a", "ours, changed")));
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("theirs"));
    assert_eq!(rig.shows("shop", "Ready").await, "False NotOwned");
    rig.app
        .declare(Resources::new().with(Declared::of(map("a", "ours")).adopting()));
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("ours"));
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
    // Nobody had changed what OKT had not applied.
    let events = rig.events().await;
    assert!(
        !events.contains(&"Normal ResourceChanged".to_owned()),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_listed_does_not_block_the_others() {
    let rig = Shop::without_operator_of().await;
    rig.app.declare(Resources::new().apply(map("a", "x")));
    let fault = rig.inject(Fault::forbidden().on(Verb::List).resource("deployments"));
    rig.start();
    rig.create_ready("shop", Open).await;
    redeclare(
        &rig,
        Resources::new()
            .apply(map("a", "x"))
            .apply(deployment("web")),
    );
    rig.until_reason("shop", "Ready", "ResourceNotWatched")
        .await;
    fault.end();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_server_never_lists_is_a_condition_of_what_it_affects() {
    for fault in [
        Fault::answer(501, "NotImplemented", "this server does not serve it"),
        Fault::answer(500, "InternalError", "etcd is broken"),
        Fault::answer(404, "NotFound", "no such kind"),
    ] {
        let rig = Shop::without_operator_of().await;
        rig.app.declare(Resources::new().apply(deployment("web")));
        let fault = rig.inject(fault.on(Verb::List).resource("deployments"));
        rig.start();
        rig.create("shop", json!({ "state": "Open" })).await;
        rig.until_reason("shop", "Ready", "ResourceNotWatched")
            .await;
        fault.end();
        rig.pass(Duration::from_mins(10)).await;
        assert!(rig.of::<Deployment>().has("web").await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_resource_that_is_refused_is_not_pruned() {
    let rig = open(Resources::new().apply(map("a", "x")).apply(map("b", "x"))).await;
    let fault = rig.inject(Fault::forbidden().on(Verb::Apply).resource("configmaps"));
    redeclare(
        &rig,
        Resources::new().apply(map("a", "y")).apply(map("b", "x")),
    );
    rig.until_reason("shop", "Ready", "ResourceForbidden").await;
    // Reconciliations during the backoff.
    for _ in 0..20 {
        rig.request("shop");
        rig.pass(Duration::from_millis(100)).await;
        assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    }
    fault.end();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("y"));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_quotes_of_a_secret_is_not_reported() {
    let secret: Secret = of(json!({ "metadata": { "name": "a" } }));
    let map = map("a", "x");
    let resources = Resources::new();
    for (kind, resources, expected) in [
        (
            "secrets",
            resources.clone().apply(secret),
            "Secret a: 422 Invalid",
        ),
        (
            "configmaps",
            resources.apply(map),
            "ConfigMap a: 422 data.password: Invalid value: \"hunter2\"",
        ),
    ] {
        let rig = Shop::without_operator_of().await;
        rig.app.declare(resources);
        let quoted = "data.password: Invalid value: \"hunter2\"";
        rig.inject(
            Fault::answer(422, "Invalid", quoted)
                .on_writes()
                .resource(kind),
        );
        rig.start();
        rig.create("shop", json!({})).await;
        let ready = rig.until_reason("shop", "Ready", "ResourceRefused").await;
        assert_eq!(ready.message, expected);
        let events: Api<Event> = Api::all(rig.client.clone());
        let events = events.list(&ListParams::default()).await.expect("events");
        let text = format!("{events:?} {:?}", rig.get("shop").await);
        assert_eq!(text.contains("hunter2"), kind != "secrets", "{text}");
    }
}
