//! `FreeStyle` as it is shipped, through an operator: one step, and no way for deletion.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use okt_runtime::Failure;
use okt_tests::{Rig, Say, Slates};
use serde_json::json;

use super::map;

type Slate = Rig<Slates>;

async fn written(script: impl FnOnce(&Slates)) -> Slate {
    let rig = Slate::without_operator_of().await;
    script(&rig.app);
    rig.start();
    let slate = json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Slate",
        "metadata": { "name": "slate" },
        "spec": {},
    });
    rig.create_raw(slate).await;
    rig.pass(Duration::from_secs(1)).await;
    rig
}

async fn is_there(rig: &Slate, name: &str) -> bool {
    let maps: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "default");
    maps.get_opt(name).await.expect("a read").is_some()
}

#[tokio::test(start_paused = true)]
async fn one_step_makes_what_it_puts_and_says_how_it_went() {
    let rig = written(|app| app.script.put("Reconcile", [map("a", "x")])).await;
    assert!(is_there(&rig, "a").await);
    assert_eq!(rig.says("slate", "Ready").await, "True Complete");
    let slate = rig.get("slate").await.expect("it is there");
    assert_eq!(slate.finalizers(), [""; 0], "nothing holds it");
    (rig.app.script).say("Reconcile", Say::Fail(Failure::retry("Broken", "no")));
    rig.request("slate");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.says("slate", "Ready").await, "False Broken");
    assert!(
        is_there(&rig, "a").await,
        "a walk that failed deletes nothing"
    );
    rig.app.script.say("Reconcile", Say::Done);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(rig.says("slate", "Ready").await, "True Complete");
    rig.delete("slate").await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("slate").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_would_delete_is_not_made() {
    for bad in [map("a", "x").unowned(), map("a", "x").wave(1)] {
        let rig = written(|app| app.script.put("Reconcile", [map("b", "x"), bad])).await;
        let ready = rig.condition("slate", "Ready").await.expect("it says so");
        assert_eq!(ready.reason, "BadResource");
        assert!(
            ready.message.contains("declare a trigger `on_delete`"),
            "{}",
            ready.message
        );
        assert!(!is_there(&rig, "a").await && !is_there(&rig, "b").await);
    }
}
