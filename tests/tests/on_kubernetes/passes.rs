//! These tests run passes on a real API server with garbage collection: creation, repair, waits, reports and deletion.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use okt::{Declared, Failure};
use okt_tests::rollout::Place;
use okt_tests::{Ladders, Objects, Scripted, until};
use serde_json::{Value, json};

use crate::{Scene, on_kubernetes};

/// The time for which a server must get no requests.
const QUIET: Duration = Duration::from_secs(3);

/// Creates a ladder whose steps have this script.
async fn climb(place: &Place, script: impl FnOnce(&Ladders)) -> Scene<Ladders> {
    let scene = Scene::set(place, script).await;
    scene.create("ladder", json!({})).await;
    scene
}

impl Scene<Ladders> {
    /// Changes the spec, which causes a pass run.
    async fn touch(&self, rungs: u32) {
        let spec = json!({ "spec": { "rungs": rungs } });
        self.patch("ladder", spec).await;
    }

    /// Waits until `Ready` has this reason, for the current spec.
    async fn until_ready_reason(&self, reason: &str) -> String {
        let mut message = String::new();
        until(reason, async || {
            let Some(ladder) = self.get("ladder").await else {
                return false;
            };
            let generation = ladder.metadata.generation;
            let status = ladder.status.unwrap_or_default();
            let ready = status.conditions.into_iter().find(|it| it.type_ == "Ready");
            let Some(ready) = ready.filter(|it| it.reason == reason) else {
                return false;
            };
            message = ready.message;
            ready.observed_generation == generation
        })
        .await;
        message
    }

    fn writes(&self) -> Vec<String> {
        let all = self.working.tap.writes().into_iter();
        all.map(|write| format!("{} {}", write.method, write.path))
            .collect()
    }
}

fn map(name: &str, text: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "text": text },
    }))
}

const STATUS: &str = "PATCH /apis/demo.okt.dev/v1/namespaces/default/ladders/ladder/status";
const FINALIZER: &str = "PATCH /apis/demo.okt.dev/v1/namespaces/default/ladders/ladder";

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_pass_writes_the_status_and_each_object_once_and_nothing_at_rest() {
    on_kubernetes("a pass", async |place| {
        let mut scene = climb(&place, |app| {
            app.script
                .put("Mutator", [map("a", "x"), map("b", "x"), map("c", "x")]);
            app.script.set("Updater", Scripted::Commit);
        })
        .await;
        scene.until_ready_reason("Complete").await;
        tokio::time::sleep(QUIET).await;
        let made = ["a", "b", "c"]
            .map(|name| format!("PATCH /api/v1/namespaces/default/configmaps/{name}"));
        let mut expected = vec![FINALIZER.to_owned()];
        expected.extend(made);
        expected.push(STATUS.to_owned());
        assert_eq!(scene.writes(), expected);

        scene.restart().await;
        scene.app.script.taken();
        until("it is walked through again, to its end", async || {
            scene.app.script.taken().contains(&"SuccessManager")
        })
        .await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(
            scene.writes(),
            [""; 0],
            "nothing is written after a restart"
        );

        // Drift of declared fields and of other fields, and an object that is no longer declared.
        scene
            .of::<ConfigMap>()
            .edit(
                "a",
                json!({ "data": { "text": "theirs", "more": "theirs" } }),
            )
            .await;
        scene.of::<ConfigMap>().remove("b").await;
        until("both are repaired", async || {
            scene.text("a").await.as_deref() == Some("x")
                && scene.text("b").await.as_deref() == Some("x")
        })
        .await;
        let data = scene.of::<ConfigMap>().read("a").await.data;
        assert_eq!(data.expect("data")["more"], "theirs");
        scene
            .app
            .script
            .put("Mutator", [map("a", "x"), map("b", "x")]);
        scene.touch(1).await;
        until("what is put no more is gone", async || {
            scene.text("c").await.is_none()
        })
        .await;
        scene.until_ready_reason("Complete").await;

        scene.delete_until_gone("ladder").await;
        until("the rest is collected", async || {
            scene.text("a").await.is_none()
        })
        .await;
    })
    .await;
}

/// Returns a Deployment whose container has these arguments.
fn with_arguments(arguments: &[&str]) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "climber" },
        "spec": {
            "selector": { "matchLabels": { "app": "climber" } },
            "template": {
                "metadata": { "labels": { "app": "climber" } },
                "spec": { "containers": [{ "name": "a", "image": "a", "args": arguments }] },
            },
        },
    }))
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn owned_resources_and_the_object_itself_cause_pass_runs_and_an_emptied_list_is_applied() {
    on_kubernetes("what has a pass walked through", async |place| {
        let scene = climb(&place, |app| {
            app.script
                .put("Mutator", [map("a", "x"), with_arguments(&["-v"])]);
        })
        .await;
        scene.until_ready_reason("Complete").await;
        tokio::time::sleep(QUIET).await;
        let walks = async |some: bool, done: &dyn Fn() -> BoxFuture<'static, ()>| {
            scene.app.script.taken();
            let mut taken = Vec::new();
            done().await;
            if some {
                until("it is walked through", async || {
                    taken.extend(scene.app.script.taken());
                    taken.contains(&"SuccessManager")
                })
                .await;
            }
            tokio::time::sleep(QUIET).await;
            taken.extend(scene.app.script.taken());
            taken.iter().filter(|step| **step == "CRChecker").count()
        };
        let maps = scene.of::<ConfigMap>();
        let stranger = || {
            let maps = maps.clone();
            async move {
                maps.make(json!({ "metadata": { "name": "stranger" } }))
                    .await;
            }
            .boxed()
        };
        assert_eq!(walks(false, &stranger).await, 0, "it has no owner");
        let gone = || {
            let maps = maps.clone();
            async move {
                maps.remove("a").await;
            }
            .boxed()
        };
        // One pass run after the deletion, and one after the creation.
        assert!((1..=2).contains(&walks(true, &gone).await));
        let ladders = scene.raw();
        let label = || {
            let ladders = ladders.clone();
            async move {
                ladders
                    .edit("ladder", json!({ "metadata": { "labels": { "a": "b" } } }))
                    .await;
            }
            .boxed()
        };
        assert_eq!(walks(true, &label).await, 1, "it is the object itself");

        scene
            .app
            .script
            .put("Mutator", [map("a", "x"), with_arguments(&[])]);
        scene.touch(1).await;
        let deployments = scene.of::<Deployment>();
        until("the list is empty", async || {
            let climber = deployments.read("climber").await;
            let pod = climber.spec.template.spec.expect("a pod");
            pod.containers[0].args.as_ref().is_none_or(Vec::is_empty)
        })
        .await;
        maps.remove("stranger").await;
        scene.delete_until_gone("ladder").await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn the_object_reports_the_results_of_steps_and_waits_for_a_deployment() {
    on_kubernetes("what steps say", async |place| {
        let wait = Scripted::Wait("FooNamespaceNotFound", Duration::from_millis(300), "foo namespace not found");
        let scene = climb(&place, |app| {
            app.script.set("CRChecker", wait);
            app.script.put("Mutator", [with_arguments(&[]).ready()]);
            app.script.set("Updater", Scripted::Commit);
        })
        .await;
        let waits = scene.until_ready_reason("FooNamespaceNotFound").await;
        assert_eq!(waits, "foo namespace not found");
        scene.app.script.set("CRChecker", Scripted::Fail(Failure::permanent("Invalid", "no rungs")));
        let message = scene.until_ready_reason("Invalid").await;
        assert!(message.starts_with("no rungs; "), "{message}");
        assert_eq!(scene.shows("ladder", "Stalled").await, "True Invalid");
        scene.app.script.set("CRChecker", Scripted::Done);
        scene.touch(1).await;
        let waits = scene.until_ready_reason("WaitingForResources").await;
        assert_eq!(waits, "Deployment climber: its controller has not observed it yet");
        assert_eq!(scene.shows("ladder", "UpToDate").await, "False WaitingForResources");
        let deployments = scene.of::<Deployment>();
        deployments.edit_status("climber", json!({
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        })).await;
        scene.until_ready_reason("Complete").await;

        // A paused object stays unchanged, and catches up later.
        scene.pause("ladder").await;
        until("it says that it is paused", async || {
            scene.shows("ladder", "Paused").await == "True Paused"
        })
        .await;
        scene.app.script.taken();
        scene.touch(2).await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(scene.app.script.taken(), [""; 0]);
        scene.unpause("ladder").await;
        scene.until_ready_reason("Complete").await;
        scene.delete_until_gone("ladder").await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn an_object_of_another_owner_is_not_taken_and_a_waiting_finalizer_keeps_the_object() {
    on_kubernetes("what another has", async |place| {
        let theirs: ConfigMap = serde_json::from_value(json!({
            "metadata": { "name": "a" }, "data": { "text": "theirs" },
        }))
        .expect("a map");
        let maps: Api<ConfigMap> = Api::namespaced(place.client.clone(), "default");
        maps.make(json!(&theirs)).await;
        let scene = climb(&place, |app| {
            app.script
                .put("Mutator", [map("a", "x"), map("b", "x").wave(1)]);
            app.script.set("Updater", Scripted::Commit);
        })
        .await;
        let message = scene.until_ready_reason("NotOwned").await;
        assert_eq!(
            message,
            "ConfigMap a exists and was not made for this object: delete or rename one of them"
        );
        assert_eq!(scene.text("a").await.as_deref(), Some("theirs"));
        assert_eq!(
            scene.text("b").await.as_deref(),
            Some("x"),
            "it keeps no other from being made"
        );
        maps.remove("a").await;
        scene.touch(1).await;
        scene.until_ready_reason("Complete").await;
        assert_eq!(scene.text("a").await.as_deref(), Some("x"));

        // First the finalizer step waits, then an owned object that a foreign finalizer holds.
        maps.edit(
            "b",
            json!({ "metadata": { "finalizers": ["test.okt.dev/hold"] } }),
        )
        .await;
        let wait = Scripted::Wait(
            "FooNamespace",
            Duration::from_millis(300),
            "foo namespace missing two annotations",
        );
        scene.app.script.set("CRFinalizer", wait);
        scene.delete("ladder").await;
        let message = scene.until_ready_reason("FooNamespace").await;
        assert_eq!(message, "foo namespace missing two annotations");
        tokio::time::sleep(QUIET).await;
        assert!(scene.get("ladder").await.is_some());
        scene.app.script.set("CRFinalizer", Scripted::Done);
        let message = scene.until_ready_reason("WaitingForResources").await;
        assert!(
            message.starts_with("ConfigMap b is not gone yet"),
            "{message}"
        );
        tokio::time::sleep(QUIET).await;
        assert!(scene.get("ladder").await.is_some());
        maps.edit("b", json!({ "metadata": { "finalizers": Value::Null } }))
            .await;
        scene.until_gone("ladder").await;
        until("the rest is collected", async || {
            scene.text("a").await.is_none()
        })
        .await;
    })
    .await;
}
