//! Declared resources are created once, with their owner.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;

use kube::{Resource, ResourceExt};
use okt::{Declared, OWNER_LABEL, Resources};
use okt_testing::Verb;
use okt_tests::{OPERATOR, Objects, ShopState::Open, assert_contains};
use serde_json::json;

use super::{Shop, deployment, edit, map, open, redeclare, writes};

#[tokio::test(start_paused = true)]
async fn declared_resources_exist_before_the_work_begins_and_name_their_owner() {
    let rig = open(Resources::new().apply(map("a", "x")).apply(map("b", "y"))).await;
    assert_eq!(rig.app.ran(), ["Opening with 2", "Open with 2"]);
    let shop = rig.object("shop").await;
    let map = rig.of::<ConfigMap>().read("a").await;
    assert_eq!(map.labels()[OWNER_LABEL], shop.uid().expect("a uid"));
    assert_eq!(map.labels()["okt.dev/owner-kind"], "Shop.demo.okt.dev");
    assert_eq!(map.annotations()["okt.dev/owner-name"], "default/shop");
    let owner = &map.owner_references()[0];
    assert_eq!((&*owner.kind, &*owner.name), ("Shop", "shop"));
    assert_eq!(owner.controller, Some(true));
    let managers: Vec<_> = (map.managed_fields().iter())
        .map(|entry| entry.manager.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(managers, ["okt/shops.demo.okt.dev"]);
}

#[tokio::test(start_paused = true)]
async fn each_resource_is_written_once_and_not_again_without_a_change_or_after_a_restart() {
    let resources = (0..20).fold(Resources::new().apply(deployment("web")), |all, number| {
        all.apply(map(&format!("map-{number}"), "x"))
    });
    let rig = open(resources).await;
    assert_eq!(writes(&rig).len(), 21, "{:#?}", writes(&rig));
    rig.wire.clear();
    rig.request("shop");
    rig.pass(Duration::from_mins(10)).await;
    rig.restart().await;
    // Every ten minutes the operator asks the server for its latest resource version.
    rig.pass(Duration::from_mins(11)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
    let mark = rig.server.mark();
    rig.request("shop");
    rig.pass(Duration::from_mins(4)).await;
    let asked = rig.server.requests_since(mark).into_iter();
    let asked: Vec<_> = asked.filter(|request| request.client == OPERATOR).collect();
    assert!(
        asked.iter().all(|request| request.verb == Verb::Watch),
        "{asked:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_declaration_writes_only_the_changed_resource() {
    let rig = open(Resources::new().apply(map("a", "x")).apply(map("b", "y"))).await;
    rig.wire.clear();
    redeclare(
        &rig,
        Resources::new().apply(map("a", "x")).apply(map("b", "z")),
    );
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("b").await.as_deref(), Some("z"));
    assert_eq!(
        writes(&rig),
        ["PATCH /api/v1/namespaces/default/configmaps/b"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_invalid_declaration_is_reported_and_writes_nothing() {
    for (object, message) in [
        (
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } }),
            "Pod (v1) is declared as a resource, but not among what `watches` says is owned",
        ),
        (
            json!({ "kind": "ConfigMap", "metadata": { "name": "a" } }),
            "a resource has no `apiVersion` or no `kind`",
        ),
        (json!(7), "a resource has no `apiVersion` or no `kind`"),
        (
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "a" } }),
            "a ConfigMap has no name; give it one",
        ),
        (
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": 7 }),
            "the metadata of a ConfigMap is no object",
        ),
        (
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "labels": [] } }),
            "the labels of ConfigMap a are no object",
        ),
        (
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "kube-system" } }),
            "ConfigMap a lives in the namespace kube-system; Kubernetes would take it for an orphan of its Shop in default and delete it: declare it `unowned`",
        ),
        (
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "a" } }),
            "ClusterRole a lives in no namespace; Kubernetes would take it for an orphan of its Shop in default and delete it: declare it `unowned`",
        ),
    ] {
        let rig = Shop::prepared("shop", |app| {
            app.declare(Resources::new().with(Declared::dynamic(object)));
        })
        .await;
        let stalled = rig.until_reason("shop", "Stalled", "BadResource").await;
        assert!(stalled.message.starts_with(message), "{}", stalled.message);
        rig.pass(Duration::from_mins(10)).await;
        assert_eq!(writes(&rig), [""; 0]);
        assert_eq!(rig.app.ran(), [""; 0]);
        rig.app.declare(Resources::new());
        rig.patch("shop", json!({ "spec": { "key": "" } })).await;
        rig.until_ready("shop", Open).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_declared_twice_is_an_error() {
    let rig = Shop::prepared("shop", |app| {
        app.declare(Resources::new().apply(map("a", "x")).apply(map("a", "y")));
    })
    .await;
    let stalled = rig.until_reason("shop", "Stalled", "BadResource").await;
    assert!(stalled.message.starts_with("ConfigMap a is declared twice"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_gets_no_new_resources() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.app
        .declare(Resources::new().apply(map("a", "y")).apply(map("b", "y")));
    rig.wire.clear();
    rig.delete_until_gone("shop").await;
    let made = writes(&rig).iter().any(|write| write.ends_with("/b"));
    assert!(!made, "{:#?}", writes(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_declaration_that_differs_each_time_is_no_hot_loop() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.wire.clear();
    for number in 0..600 {
        redeclare(&rig, Resources::new().apply(map("a", &number.to_string())));
        rig.pass(Duration::from_secs(1)).await;
    }
    let made = writes(&rig).len();
    assert!((3..=120).contains(&made), "{made} writes in 10 minutes");
}

#[tokio::test(start_paused = true)]
async fn a_create_only_resource_is_not_overwritten_when_its_labels_are_removed() {
    let rig = open(Resources::new().create_only(map("a", "first"))).await;
    redeclare(&rig, Resources::new().create_only(map("a", "second")));
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("first"));
    edit(&rig, "a", json!({ "metadata": { "labels": null } })).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.text("a").await.as_deref(), Some("first"));
    assert_eq!(rig.shows("shop", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn an_owner_written_by_hand_is_the_same_owner() {
    let rig = Shop::without_operator_of().await;
    let shop = rig.create("shop", json!({})).await;
    let mut map = map("a", "x");
    map.metadata.owner_references = shop.controller_owner_ref(&()).map(|owner| vec![owner]);
    rig.app.declare(Resources::new().apply(map));
    rig.start();
    rig.until_ready("shop", Open).await;
    let map = rig.of::<ConfigMap>().read("a").await;
    assert_eq!(map.owner_references().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_declaration_on_the_way_out_is_made_if_it_says_so_and_an_error_if_it_has_to_be_ready() {
    let made = |rig: &super::Shop, name: &str| {
        let versions = rig.server.versions().resource("configmaps").name(name);
        !versions.course("/metadata/name").is_empty()
    };
    for ready in [false, true] {
        let rig = open(Resources::new()).await;
        let farewell = || {
            let declared = Declared::of(map("farewell", "x"));
            if ready { declared.ready() } else { declared }
        };
        rig.app.declare(Resources::new().with(farewell()));
        rig.delete("shop").await;
        if ready {
            let condition = rig.until_reason("shop", "Ready", "BadResource").await;
            let message = "ConfigMap farewell has to be ready and is not there, and nothing is made while its object is being deleted: declare it with `during_deletion`, or let the deletion leave the state by `on_delete`";
            assert_contains(&condition.message, message);
            rig.app
                .declare(Resources::new().with(farewell().during_deletion()));
            rig.restart().await;
        }
        rig.until_gone("shop").await;
        assert_eq!(made(&rig, "farewell"), ready);
    }
    let rig = open(Resources::new()).await;
    rig.app
        .declare(Resources::new().with(Declared::of(map("farewell", "x")).during_deletion()));
    rig.delete_until_gone("shop").await;
    assert!(made(&rig, "farewell"));
}
