//! What an object owns in the cluster: made, repaired, deleted, waited for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use okt_runtime::{Declared, Failure, OWNER_LABEL, Resources};
use okt_testing::{Fault, Verb};
use okt_tests::{OPERATOR, Rig, ShopState::*, Shops};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Shop = Rig<Shops>;

fn map(name: &str, text: &str) -> ConfigMap {
    of(json!({ "metadata": { "name": name }, "data": { "text": text } }))
}

fn of<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object")
}

fn deployment(name: &str) -> Deployment {
    of(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "web",
                    "image": "web:1",
                    "ports": [{ "containerPort": 80 }],
                    "resources": { "limits": { "cpu": "1000m" } },
                }] },
            },
        },
    }))
}

fn maps(rig: &Shop) -> Api<ConfigMap> {
    Api::namespaced(rig.client.clone(), "default")
}

async fn text(rig: &Shop, name: &str) -> Option<String> {
    let map = maps(rig).get_opt(name).await.expect("a read")?;
    map.data?.get("text").cloned()
}

async fn edit(rig: &Shop, name: &str, patch: Value) {
    let patch = Patch::Merge(patch);
    let patched = maps(rig).patch(name, &PatchParams::default(), &patch).await;
    patched.expect("the patch is accepted");
}

/// What was written beside the shop itself.
fn writes(rig: &Shop) -> Vec<String> {
    let all = rig.wire.writes().into_iter();
    all.filter(|write| !write.contains("/shops/")).collect()
}

/// A shop that is open, with what it declares.
async fn open(resources: Resources) -> Shop {
    let rig = Shop::without_operator_of().await;
    rig.app.declare(resources);
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_ready("shop", Open).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn what_is_declared_is_there_before_the_work_begins_and_says_whose_it_is() {
    let rig = open(Resources::new().apply(map("a", "x")).apply(map("b", "y"))).await;
    assert_eq!(rig.app.ran(), ["Opening with 2", "Open with 2"]);
    let shop = rig.get("shop").await.expect("it is there");
    let map = maps(&rig).get("a").await.expect("it is there");
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
async fn each_object_is_written_once_and_nothing_when_nothing_changed_or_after_a_restart() {
    let resources = (0..20).fold(Resources::new().apply(deployment("web")), |all, number| {
        all.apply(map(&format!("map-{number}"), "x"))
    });
    let rig = open(resources).await;
    assert_eq!(writes(&rig).len(), 21, "{:#?}", writes(&rig));
    rig.wire.clear();
    rig.poke("shop");
    rig.pass(Duration::from_mins(10)).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.wire.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn another_declaration_is_one_write_for_what_changed() {
    let rig = open(Resources::new().apply(map("a", "x")).apply(map("b", "y"))).await;
    rig.wire.clear();
    rig.app
        .declare(Resources::new().apply(map("a", "x")).apply(map("b", "z")));
    rig.poke("shop");
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(text(&rig, "b").await.as_deref(), Some("z"));
    assert_eq!(
        writes(&rig),
        ["PATCH /api/v1/namespaces/default/configmaps/b"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_of_it_is_changed_back_and_what_they_add_is_left_alone() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    edit(
        &rig,
        "a",
        json!({ "data": { "text": "spoilt", "more": "of theirs" } }),
    )
    .await;
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
    let map = maps(&rig).get("a").await.expect("it is there");
    assert_eq!(map.data.expect("data")["more"], "of theirs");
    edit(&rig, "a", json!({ "metadata": { "labels": null } })).await;
    rig.pass(Duration::from_mins(1)).await;
    let map = maps(&rig).get("a").await.expect("it is there");
    assert!(
        map.labels().contains_key(OWNER_LABEL),
        "whose it is comes back too"
    );
}

#[tokio::test(start_paused = true)]
async fn who_changes_it_again_and_again_is_not_fought_at_full_speed() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.wire.clear();
    for _ in 0..600 {
        edit(&rig, "a", json!({ "data": { "text": "spoilt" } })).await;
        rig.pass(Duration::from_secs(1)).await;
    }
    let repairs = writes(&rig).len();
    assert!(
        (3..=15).contains(&repairs),
        "{repairs} repairs in 10 minutes"
    );
    assert_eq!(rig.says("shop", "Ready").await, "False WaitingForResources");
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
    assert_eq!(rig.says("shop", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_deletes_is_made_anew() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let before = maps(&rig).get("a").await.expect("it is there").uid();
    let deleted = maps(&rig).delete("a", &DeleteParams::default()).await;
    deleted.expect("it is deleted");
    rig.pass(Duration::from_secs(5)).await;
    let after = maps(&rig).get("a").await.expect("it is there").uid();
    assert_ne!(before, after);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_declared_goes_but_for_what_holds_data_and_what_is_kept() {
    let secret = |name: &str| -> Secret { of(json!({ "metadata": { "name": name } })) };
    let rig = open(
        (Resources::new().apply(map("a", "x")).apply(map("b", "y")))
            .apply(secret("precious"))
            .with(Declared::of(secret("cheap")).prunable()),
    )
    .await;
    rig.app.declare(Resources::new().keep::<ConfigMap>("b"));
    rig.poke("shop");
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(text(&rig, "a").await, None);
    assert_eq!(text(&rig, "b").await.as_deref(), Some("y"));
    let secrets: Api<Secret> = Api::namespaced(rig.client.clone(), "default");
    assert!(secrets.get_opt("precious").await.expect("a read").is_some());
    assert!(secrets.get_opt("cheap").await.expect("a read").is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_where_it_cannot_be_said_what_is_declared_or_after_a_jump() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let failure = Failure::retry("NoPlan", "the plan cannot be read");
    rig.app.fail_to_declare(Some(failure));
    rig.poke("shop");
    rig.until_reason("shop", "Ready", "NoPlan").await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
    rig.app.fail_to_declare(None);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.says("shop", "Ready").await, "True Open");
    let broken = Resources::new().apply(map("", "x"));
    rig.app.declare(broken);
    rig.poke("shop");
    rig.until_reason("shop", "Stalled", "BadResource").await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn work_waits_until_what_it_needs_is_ready_and_the_conditions_say_for_what() {
    let rig = Shop::without_operator_of().await;
    rig.app
        .declare(Resources::new().apply_ready(deployment("web")));
    rig.start();
    rig.create("shop", json!({})).await;
    let ready = rig
        .until_reason("shop", "Ready", "WaitingForResources")
        .await;
    assert_eq!(
        ready.message,
        "Deployment web: its controller has not seen it yet"
    );
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran(), [""; 0]);
    let deployments: Api<Deployment> = Api::namespaced(rig.client.clone(), "default");
    let status = json!({ "status": {
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    } });
    let patched = deployments
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await;
    patched.expect("the status is accepted");
    rig.until_ready("shop", Open).await;
    assert_eq!(rig.app.ran(), ["Opening with 1", "Open with 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_is_not_taken() {
    let rig = Shop::without_operator_of().await;
    let maps = maps(&rig);
    let theirs = map("a", "theirs");
    let made = maps.create(&PostParams::default(), &theirs).await;
    made.expect("it is made");
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
    assert_eq!(text(&rig, "a").await.as_deref(), Some("theirs"));
    assert_eq!(
        text(&rig, "b").await.as_deref(),
        Some("ours"),
        "others are made"
    );
    assert_eq!(rig.app.ran(), [""; 0]);
    let deleted = maps.delete("a", &DeleteParams::default()).await;
    deleted.expect("it is deleted");
    rig.until_ready("shop", Open).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("ours"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_made_is_said_and_touches_nothing() {
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
            "a ConfigMap has no name; what has none cannot be found again",
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
        let rig = Shop::without_operator_of().await;
        rig.app
            .declare(Resources::new().with(Declared::dynamic(object)));
        rig.start();
        rig.create("shop", json!({})).await;
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
async fn what_is_declared_twice_is_an_error() {
    let rig = Shop::without_operator_of().await;
    rig.app
        .declare(Resources::new().apply(map("a", "x")).apply(map("a", "y")));
    rig.start();
    rig.create("shop", json!({})).await;
    let stalled = rig.until_reason("shop", "Stalled", "BadResource").await;
    assert!(stalled.message.starts_with("ConfigMap a is declared twice"));
}

#[tokio::test(start_paused = true)]
async fn what_kubernetes_does_not_delete_with_the_object_goes_before_the_finalizer() {
    let role: ClusterRole = of(json!({ "metadata": { "name": "shop" } }));
    let rig = open(Resources::new().with(Declared::of(role).unowned())).await;
    let roles: Api<ClusterRole> = Api::all(rig.client.clone());
    let finalizers = async |finalizers: Value| {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        let patched = roles.patch("shop", &PatchParams::default(), &patch).await;
        patched.expect("the patch is accepted");
    };
    finalizers(json!(["test.okt.dev/hold"])).await;
    rig.delete("shop").await;
    let ready = rig
        .until_reason("shop", "Ready", "WaitingForResources")
        .await;
    assert_eq!(ready.message, "ClusterRole shop is not gone yet");
    rig.pass(Duration::from_hours(1)).await;
    let role = roles.get("shop").await.expect("it is held");
    assert!(role.metadata.deletion_timestamp.is_some());
    finalizers(json!(null)).await;
    rig.until_gone("shop").await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_for_an_object_that_is_being_deleted() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.app
        .declare(Resources::new().apply(map("a", "y")).apply(map("b", "y")));
    rig.wire.clear();
    rig.delete("shop").await;
    rig.until_gone("shop").await;
    let made = writes(&rig).iter().any(|write| write.ends_with("/b"));
    assert!(!made, "{:#?}", writes(&rig));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_asked_again_and_the_work_waits() {
    let rig = Shop::without_operator_of().await;
    rig.app.declare(Resources::new().apply(map("a", "x")));
    let fault = Fault::forbidden()
        .matching(|request| request.verb == Verb::Apply)
        .resource("configmaps")
        .client(OPERATOR)
        .times(5);
    rig.server.inject(fault);
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_reason("shop", "Ready", "ResourceForbidden").await;
    assert_eq!(rig.app.ran(), [""; 0]);
    rig.until_ready("shop", Open).await;
    assert_eq!(rig.app.ran(), ["Opening with 1", "Open with 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_not_repaired() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.annotate("shop", "okt.dev/paused", Some("true")).await;
    rig.pass(Duration::from_secs(1)).await;
    edit(&rig, "a", json!({ "data": { "text": "spoilt" } })).await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("spoilt"));
    rig.annotate("shop", "okt.dev/paused", None).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_is_asked_again_when_what_it_refers_to_comes() {
    let rig = Shop::without_operator_of().await;
    rig.start();
    let shop = json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Shop",
        "metadata": { "name": "shop", "namespace": "default" },
        "spec": { "key": "door" },
    });
    rig.create_raw(shop).await;
    rig.until_in("shop", Opening).await;
    rig.pass(Duration::from_secs(10)).await;
    assert_eq!(rig.app.ran(), [""; 0]);
    let secrets: Api<Secret> = Api::namespaced(rig.client.clone(), "default");
    let key: Secret = of(json!({ "metadata": { "name": "door" } }));
    let made = secrets.create(&PostParams::default(), &key).await;
    made.expect("it is made");
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(rig.app.ran(), ["Opening with 0", "Open with 0"]);
}
