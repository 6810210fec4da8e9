//! `FreeStyle` as shipped, run by an operator: one step, and none for deletion.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use okt::Failure;
use okt_tests::{Objects, Rig, Scripted, Slates, assert_contains};
use serde_json::json;

use super::map;

type Slate = Rig<Slates>;

async fn written(script: impl FnOnce(&Slates)) -> Slate {
    let rig = Slate::without_operator_of().await;
    script(&rig.app);
    rig.start();
    rig.create("slate", json!({})).await;
    rig.pass(Duration::from_secs(1)).await;
    rig
}

async fn is_there(rig: &Slate, name: &str) -> bool {
    let maps = rig.of::<ConfigMap>();
    maps.has(name).await
}

#[tokio::test(start_paused = true)]
async fn one_step_applies_its_resources_and_reports_its_result() {
    let rig = written(|app| app.script.put("Reconcile", [map("a", "x")])).await;
    assert!(is_there(&rig, "a").await);
    assert_eq!(rig.shows("slate", "Ready").await, "True Complete");
    let slate = rig.object("slate").await;
    assert_eq!(slate.finalizers(), [""; 0], "no finalizer");
    (rig.app.script).set("Reconcile", Scripted::Fail(Failure::retry("Broken", "no")));
    rig.request("slate");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.shows("slate", "Ready").await, "False Broken");
    assert!(
        is_there(&rig, "a").await,
        "a failed pass run deletes nothing"
    );
    rig.app.script.set("Reconcile", Scripted::Done);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.shows("slate", "Ready").await, "True Complete");
    rig.delete("slate").await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("slate").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn resources_without_a_step_that_deletes_them_are_refused() {
    for bad in [map("a", "x").unowned(), map("a", "x").wave(1)] {
        let rig = written(|app| app.script.put("Reconcile", [map("b", "x"), bad])).await;
        let ready = rig.condition("slate", "Ready").await.expect("it says so");
        assert_eq!(ready.reason, "BadResource");
        assert_contains(&ready.message, "declare a trigger `on_delete`");
        assert!(!is_there(&rig, "a").await && !is_there(&rig, "b").await);
    }
}
