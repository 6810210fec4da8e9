//! Work waits until the resources that it needs are ready.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use okt::{Resources, Which};
use okt_tests::{
    Objects, Rig,
    ShopState::{Open, Opening},
    StallState, Stalls,
};
use serde_json::{Value, json};

use super::{Shop, deployment, of};

#[tokio::test(start_paused = true)]
async fn work_waits_until_its_resources_are_ready_and_the_conditions_name_them() {
    let rig = Shop::prepared("shop", |app| {
        app.declare(Resources::new().apply_ready(deployment("web")));
    })
    .await;
    let ready = rig
        .until_reason("shop", "Ready", "WaitingForResources")
        .await;
    assert_eq!(
        ready.message,
        "Deployment web: its controller has not observed it yet"
    );
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran(), [""; 0]);
    // Items of a list have no kind.
    rig.restart().await;
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.app.ran(), [""; 0]);
    let status = json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    });
    rig.of::<Deployment>().edit_status("web", status).await;
    rig.until_ready("shop", Open).await;
    assert_eq!(rig.app.ran(), ["Opening with 1", "Open with 1"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_work_continues_when_the_referred_object_is_created() {
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
    let secrets = rig.of::<Secret>();
    let key: Secret = of(json!({ "metadata": { "name": "door" } }));
    secrets.make(json!(&key)).await;
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(rig.app.ran(), ["Opening with 0", "Open with 0"]);
}

#[tokio::test(start_paused = true)]
async fn the_reason_for_waiting_is_reported_again_when_it_changes() {
    let rig = Shop::prepared("shop", |app| {
        app.declare(Resources::new().apply_ready(deployment("web")));
    })
    .await;
    rig.until_reason("shop", "Ready", "WaitingForResources")
        .await;
    let deployments = rig.of::<Deployment>();
    let shown = async |status: Value, message: &str| {
        deployments.edit_status("web", json!(status)).await;
        rig.pass(Duration::from_secs(30)).await;
        let ready = rig.condition("shop", "Ready").await.expect("a condition");
        assert_eq!(ready.message, message);
    };
    let one = json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 1 });
    shown(one, "Deployment web: 1 of 2 replicas are updated").await;
    let stuck = json!({ "conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow",
    }] });
    shown(stuck, "Deployment web: ProgressDeadlineExceeded: too slow").await;
    assert_eq!(rig.shows("shop", "Stalled").await, "True ResourceNotReady");
}

fn chosen() -> Resources {
    (Resources::new().apply(deployment("a"))).apply(deployment("b"))
}

async fn building(which: impl IntoIterator<Item = Which>) -> Rig<Stalls> {
    let rig = Rig::<Stalls>::without_operator_of().await;
    rig.app.declare(chosen());
    rig.app.wait_for(which);
    rig.start();
    rig.create_in("stall", StallState::Building).await;
    rig.pass(Duration::from_mins(1)).await;
    rig
}

async fn report(rig: &Rig<Stalls>, name: &str, status: Value) {
    let deployments = rig.of::<Deployment>();
    deployments.edit_status(name, json!(status)).await;
    rig.pass(Duration::from_secs(30)).await;
}

fn available() -> Value {
    json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "conditions": null,
    })
}

#[tokio::test(start_paused = true)]
async fn work_waits_only_for_the_resources_that_it_names() {
    let rig = building([Which::of::<Deployment>().named("b")]).await;
    let waits = "Deployment b: its controller has not observed it yet";
    assert_eq!(rig.app.seen().unready, [waits]);
    let action = rig.position("stall").await.action.expect("an action");
    assert_eq!(action.message, waits);
    report(&rig, "a", available()).await;
    assert_eq!(rig.position("stall").await.state.as_str(), "Building");
    report(&rig, "b", available()).await;
    rig.until_ready("stall", StallState::Open).await;
    assert_eq!(rig.app.seen().unready, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn work_waits_for_all_resources_and_reports_the_pending_ones() {
    let rig = building([Which::all()]).await;
    assert_eq!(rig.app.seen().unready.len(), 2);
    report(&rig, "b", available()).await;
    assert_eq!(
        rig.app.seen().unready,
        ["Deployment a: its controller has not observed it yet"]
    );
    report(&rig, "a", available()).await;
    rig.until_ready("stall", StallState::Open).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_object_is_awaited_and_an_unreadable_one_is_reported() {
    let elsewhere = Which::of::<Deployment>().named("c").within("elsewhere");
    let rig = building([Which::of::<Deployment>().named("c").within("default")]).await;
    assert_eq!(
        rig.app.seen().unready,
        ["Deployment default/c: it does not exist"]
    );
    rig.app.wait_for([elsewhere]);
    rig.request("stall");
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(
        rig.app.seen().unready,
        ["Deployment elsewhere/c: it does not exist"]
    );
    rig.app.declare(Resources::new());
    rig.app.wait_for([Which::of::<Deployment>()]);
    rig.request("stall");
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.app.seen().unready, ["Deployment (any): none exists"]);
    rig.app.wait_for([Which::of::<Deployment>().named("c")]);
    rig.app.declare(chosen().apply(deployment("c")));
    rig.request("stall");
    rig.pass(Duration::from_secs(30)).await;
    report(&rig, "c", available()).await;
    rig.until_ready("stall", StallState::Open).await;
    for (which, why) in [
        (
            Which::of::<Secret>(),
            "Secret (any): `watches` does not declare its kind as owned",
        ),
        (
            Which::of::<ConfigMap>(),
            "ConfigMap (any): only the metadata of its kind is watched",
        ),
        (
            Which::of::<Deployment>().named("default/c"),
            "Deployment default/c: no object can have this name",
        ),
    ] {
        let rig = building([which]).await;
        let stalled = rig.position("stall").await.action.expect("an action");
        let failure = stalled.failure.expect("it has failed");
        assert_eq!(
            (&*failure.reason, &*failure.message),
            ("ResourceNotReady", why)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_work_fails_if_a_resource_cannot_become_ready_and_is_retried() {
    let rig = building([Which::all()]).await;
    let stuck = json!({ "conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow",
    }] });
    report(&rig, "a", stuck).await;
    let action = rig.position("stall").await.action.expect("an action");
    let failure = action.failure.expect("it has failed");
    assert_eq!(failure.reason, "ResourceNotReady");
    assert_eq!(
        failure.message,
        "Deployment a: ProgressDeadlineExceeded: too slow"
    );
    report(&rig, "a", available()).await;
    report(&rig, "b", available()).await;
    rig.until_ready("stall", StallState::Open).await;
}
