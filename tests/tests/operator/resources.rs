//! What an object owns in the cluster: made, repaired, deleted, waited for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
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
    let mark = rig.server.mark();
    rig.poke("shop");
    rig.pass(Duration::from_mins(4)).await;
    let asked = rig.server.requests_since(mark).into_iter();
    let asked: Vec<_> = asked.filter(|request| request.client == OPERATOR).collect();
    assert!(
        asked.iter().all(|request| request.verb == Verb::Watch),
        "{asked:#?}"
    );
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
async fn nothing_goes_where_it_cannot_be_said_what_is_declared() {
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
    // What comes out of a list does not say of which kind it is.
    rig.restart().await;
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
    assert!(
        ready
            .message
            .starts_with("ClusterRole shop is not gone yet; to give it up, ")
    );
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

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_is_told_anew_when_it_is_something_else() {
    let rig = Shop::without_operator_of().await;
    rig.app
        .declare(Resources::new().apply_ready(deployment("web")));
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_reason("shop", "Ready", "WaitingForResources")
        .await;
    let deployments: Api<Deployment> = Api::namespaced(rig.client.clone(), "default");
    let told = async |status: Value, message: &str| {
        let patch = Patch::Merge(json!({ "status": status }));
        let patched = deployments
            .patch_status("web", &PatchParams::default(), &patch)
            .await;
        patched.expect("the status is accepted");
        rig.pass(Duration::from_secs(30)).await;
        let ready = rig.condition("shop", "Ready").await.expect("it is told");
        assert_eq!(ready.message, message);
    };
    let one = json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 1 });
    told(one, "Deployment web: 1 of 2 replicas are updated").await;
    let stuck = json!({ "conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow",
    }] });
    told(stuck, "Deployment web: ProgressDeadlineExceeded: too slow").await;
    assert_eq!(rig.says("shop", "Stalled").await, "True ResourceNotReady");
}

#[tokio::test(start_paused = true)]
async fn who_strips_the_annotations_is_not_fought_at_full_speed_either() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.wire.clear();
    for _ in 0..600 {
        edit(&rig, "a", json!({ "metadata": { "annotations": null } })).await;
        rig.pass(Duration::from_secs(1)).await;
    }
    let repairs = writes(&rig).len();
    assert!(
        (3..=15).contains(&repairs),
        "{repairs} repairs in 10 minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn who_deletes_it_again_and_again_is_not_fought_at_full_speed_either() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.wire.clear();
    for _ in 0..600 {
        // It may be gone already.
        let _ = maps(&rig).delete("a", &DeleteParams::default()).await;
        rig.pass(Duration::from_secs(1)).await;
    }
    let made = writes(&rig).len();
    assert!((3..=15).contains(&made), "{made} times made in 10 minutes");
}

#[tokio::test(start_paused = true)]
async fn a_declaration_that_differs_each_time_is_no_hot_loop() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    rig.wire.clear();
    for number in 0..600 {
        rig.app
            .declare(Resources::new().apply(map("a", &number.to_string())));
        rig.poke("shop");
        rig.pass(Duration::from_secs(1)).await;
    }
    let made = writes(&rig).len();
    assert!((3..=120).contains(&made), "{made} writes in 10 minutes");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_paused_in_trouble_is_left_in_peace() {
    let rig = Shop::without_operator_of().await;
    let theirs = map("a", "theirs");
    let made = maps(&rig).create(&PostParams::default(), &theirs).await;
    made.expect("it is made");
    rig.app.declare(Resources::new().apply(map("a", "ours")));
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_reason("shop", "Ready", "NotOwned").await;
    rig.annotate("shop", "okt.dev/paused", Some("true")).await;
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
async fn what_is_made_once_is_not_written_over_when_its_labels_are_rubbed_out() {
    let rig = open(Resources::new().create_only(map("a", "first"))).await;
    rig.app
        .declare(Resources::new().create_only(map("a", "second")));
    rig.poke("shop");
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("first"));
    edit(&rig, "a", json!({ "metadata": { "labels": null } })).await;
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("first"));
    assert_eq!(rig.says("shop", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn a_copy_with_the_labels_of_what_is_owned_is_not_deleted() {
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    let mut copy = maps(&rig).get("a").await.expect("it is there");
    copy.metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        name: Some("copy".to_owned()),
        labels: copy.metadata.labels,
        annotations: copy.metadata.annotations,
        ..Default::default()
    };
    let made = maps(&rig).create(&PostParams::default(), &copy).await;
    made.expect("it is made");
    rig.poke("shop");
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(text(&rig, "copy").await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn one_that_took_the_name_of_what_was_deleted_is_not_written_over() {
    let rig = open(Resources::new().apply(map("a", "ours"))).await;
    rig.server.set_watch_lag(Duration::from_secs(20));
    let deleted = maps(&rig).delete("a", &DeleteParams::default()).await;
    deleted.expect("it is deleted");
    let made = maps(&rig)
        .create(&PostParams::default(), &map("a", "theirs"))
        .await;
    made.expect("it is made");
    rig.app
        .declare(Resources::new().apply(map("a", "ours, changed")));
    rig.poke("shop");
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("theirs"));
    assert_eq!(rig.says("shop", "Ready").await, "False NotOwned");
    rig.app
        .declare(Resources::new().with(Declared::of(map("a", "ours")).adopting()));
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(text(&rig, "a").await.as_deref(), Some("ours"));
    assert_eq!(rig.says("shop", "Ready").await, "True Open");
}

#[tokio::test(start_paused = true)]
async fn data_goes_only_where_that_is_allowed_in_so_many_words() {
    let secret: Secret = of(
        json!({ "metadata": { "name": "precious", "annotations": { "okt.dev/prune": "false" } } }),
    );
    let rig = open(Resources::new().apply(secret)).await;
    rig.app.declare(Resources::new());
    rig.poke("shop");
    rig.pass(Duration::from_mins(1)).await;
    let secrets: Api<Secret> = Api::namespaced(rig.client.clone(), "default");
    assert!(secrets.get_opt("precious").await.expect("a read").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_listed_keeps_nobody_from_the_rest() {
    let rig = Shop::without_operator_of().await;
    rig.app.declare(Resources::new().apply(map("a", "x")));
    let fault = Fault::forbidden().matching(|request| request.verb == Verb::List);
    let fault = rig
        .server
        .inject(fault.resource("deployments").client(OPERATOR));
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_ready("shop", Open).await;
    rig.app.declare(
        Resources::new()
            .apply(map("a", "x"))
            .apply(deployment("web")),
    );
    rig.poke("shop");
    rig.until_reason("shop", "Ready", "ResourceNotWatched")
        .await;
    fault.end();
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.says("shop", "Ready").await, "True Open");
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
    let map = maps(&rig).get("a").await.expect("it is there");
    assert_eq!(map.owner_references().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_texts_is_repaired_like_one_of_data() {
    let secret: Secret =
        of(json!({ "metadata": { "name": "s" }, "stringData": { "key": "ours" } }));
    let rig = open(Resources::new().apply(secret)).await;
    let secrets: Api<Secret> = Api::namespaced(rig.client.clone(), "default");
    let spoil = Patch::Merge(json!({ "data": { "key": "dGhlaXJz" } }));
    let spoilt = secrets.patch("s", &PatchParams::default(), &spoil).await;
    spoilt.expect("it is spoilt");
    rig.pass(Duration::from_mins(1)).await;
    let data = secrets
        .get("s")
        .await
        .expect("it is there")
        .data
        .expect("data");
    assert_eq!(data["key"].0, b"ours");
}
