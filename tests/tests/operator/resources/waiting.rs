//! Work waits until what it needs is ready.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use okt_runtime::{Resources, Which};
use okt_tests::{
    Rig,
    ShopState::{Open, Opening},
    StallState, Stalls,
};
use serde_json::{Value, json};

use super::{Shop, deployment, of};

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

fn chosen() -> Resources {
    (Resources::new().apply(deployment("a"))).apply(deployment("b"))
}

async fn building(which: impl IntoIterator<Item = Which>) -> Rig<Stalls> {
    let rig = Rig::<Stalls>::without_operator_of().await;
    rig.app.declare(chosen());
    rig.app.wait_for(which);
    rig.start();
    rig.create("stall", json!({})).await;
    rig.until_in("stall", StallState::Building).await;
    rig.pass(Duration::from_mins(1)).await;
    rig
}

async fn report(rig: &Rig<Stalls>, name: &str, status: Value) {
    let deployments: Api<Deployment> = Api::namespaced(rig.client.clone(), "default");
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = deployments
        .patch_status(name, &PatchParams::default(), &patch)
        .await;
    patched.expect("the status is accepted");
    rig.pass(Duration::from_secs(30)).await;
}

fn available() -> Value {
    json!({
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "conditions": null,
    })
}

#[tokio::test(start_paused = true)]
async fn work_waits_for_what_it_chooses_and_for_nothing_else() {
    let rig = building([Which::of::<Deployment>().named("b")]).await;
    let waits = "Deployment b: its controller has not seen it yet";
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
async fn work_waits_for_all_and_says_for_which() {
    let rig = building([Which::all()]).await;
    assert_eq!(rig.app.seen().unready.len(), 2);
    report(&rig, "b", available()).await;
    assert_eq!(
        rig.app.seen().unready,
        ["Deployment a: its controller has not seen it yet"]
    );
    report(&rig, "a", available()).await;
    rig.until_ready("stall", StallState::Open).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_waited_for_and_what_cannot_be_judged_is_said() {
    let elsewhere = Which::of::<Deployment>().named("c").within("elsewhere");
    let rig = building([Which::of::<Deployment>().named("c").within("default")]).await;
    assert_eq!(
        rig.app.seen().unready,
        ["Deployment default/c: it is not there"]
    );
    rig.app.wait_for([elsewhere]);
    rig.request("stall");
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(
        rig.app.seen().unready,
        ["Deployment elsewhere/c: it is not there"]
    );
    rig.app.wait_for([Which::of::<Deployment>().named("c")]);
    rig.app.declare(chosen().apply(deployment("c")));
    rig.request("stall");
    rig.pass(Duration::from_secs(30)).await;
    report(&rig, "c", available()).await;
    rig.until_ready("stall", StallState::Open).await;
    for (which, why) in [
        (
            Which::of::<Secret>(),
            "Secret of any name: `watches` does not say that its kind is owned",
        ),
        (
            Which::of::<ConfigMap>(),
            "ConfigMap of any name: only the metadata of its kind is watched",
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
async fn work_that_waits_fails_where_something_will_not_become_ready_and_tries_again() {
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
