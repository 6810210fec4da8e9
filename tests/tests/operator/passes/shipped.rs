//! The Stepper as shipped, run by an operator: its paths, the resulting status, and deletion in waves.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams};
use okt::{Declared, Failure, Operations};
use okt_testing::{Fault, Verb};
use okt_tests::{Ladders, Objects, Rig, Scripted, definition};
use serde_json::{Value, json};

use super::map;

type Ladder = Rig<Ladders>;

/// Creates a ladder and waits until its pass has run once.
async fn climbed(script: impl FnOnce(&Ladders)) -> Ladder {
    let rig = Ladder::without_operator_of().await;
    script(&rig.app);
    rig.start();
    rig.pass(Duration::from_secs(1)).await;
    rig.create("ladder", json!({})).await;
    rig.pass(Duration::from_millis(500)).await;
    rig
}

fn fails(reason: &str) -> Scripted {
    Scripted::Fail(Failure::retry(reason, "it failed"))
}

fn fails_permanently(reason: &str) -> Scripted {
    Scripted::Fail(Failure::permanent(reason, "it failed permanently"))
}

/// The title of a row, the replies of the steps, the path that they cause, and the status and reason of `Ready`.
type Row = (
    &'static str,
    Vec<(&'static str, Scripted)>,
    &'static str,
    &'static str,
);

#[tokio::test(start_paused = true)]
async fn each_path_of_the_stepper_and_its_ready_condition() {
    let quiet = || Scripted::GiveUp("not mine");
    let rows: [Row; 8] = [
        (
            "nothing wrong",
            vec![],
            "CRChecker ObjectsGetter Mutator Updater SuccessManager",
            "True Complete",
        ),
        (
            "an object that is not sound",
            vec![("CRChecker", fails_permanently("Invalid"))],
            "CRChecker ErrorManager GiveupManager",
            "False Invalid",
        ),
        (
            "an error in ObjectsGetter",
            vec![("ObjectsGetter", fails("Unreachable"))],
            "CRChecker ObjectsGetter ErrorManager",
            "False Unreachable",
        ),
        (
            "a quiet give-up in Mutator",
            vec![("Mutator", quiet())],
            "CRChecker ObjectsGetter Mutator GiveupManager",
            "False GaveUp",
        ),
        (
            "an alarming give-up in Updater",
            vec![("Updater", fails_permanently("Refused"))],
            "CRChecker ObjectsGetter Mutator Updater ErrorManager GiveupManager",
            "False Refused",
        ),
        (
            "an error in SuccessManager",
            vec![("SuccessManager", fails("Late"))],
            "CRChecker ObjectsGetter Mutator Updater SuccessManager ErrorManager",
            "False Late",
        ),
        (
            "a give-up in SuccessManager",
            vec![("SuccessManager", quiet())],
            "CRChecker ObjectsGetter Mutator Updater SuccessManager GiveupManager",
            "False GaveUp",
        ),
        (
            "a give-up raised inside ErrorManager",
            vec![("ObjectsGetter", fails("Gone")), ("ErrorManager", quiet())],
            "CRChecker ObjectsGetter ErrorManager GiveupManager",
            "False Gone",
        ),
    ];
    for (what, results, path, ready) in rows {
        let rig = climbed(|app| {
            for (step, result) in results {
                app.script.set(step, result);
            }
        })
        .await;
        assert_eq!(rig.app.script.taken().join(" "), path, "{what}");
        assert_eq!(rig.shows("ladder", "Ready").await, ready, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_object_is_stalled_without_changes_and_retried_with_another_spec() {
    let rig = climbed(|app| {
        app.script.set("CRChecker", fails_permanently("Invalid"));
        app.script.put("Mutator", [map("a", "x")]);
    })
    .await;
    assert_eq!(rig.shows("ladder", "Stalled").await, "True Invalid");
    assert_eq!(rig.shows("ladder", "Valid").await, "False Invalid");
    let writes = rig.wire.writes();
    assert!(
        writes.iter().all(|it| it.contains("/ladders/ladder")),
        "{writes:#?}"
    );
    rig.app.script.taken();
    rig.pass(Duration::from_hours(3)).await;
    assert_eq!(rig.app.script.taken(), [""; 0], "it is not retried");
    rig.app.script.set("CRChecker", Scripted::Done);
    rig.patch("ladder", json!({ "spec": { "rungs": 3 } })).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.shows("ladder", "Ready").await, "True Complete");
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_the_schema_or_a_cel_rule_forbids_is_never_stored() {
    let rig = climbed(|_| {}).await;
    for (rungs, why) in [(13, "13 rungs bring bad luck"), (1001, "spec.rungs")] {
        let patch = Patch::Merge(json!({ "spec": { "rungs": rungs } }));
        let params = PatchParams::default();
        let refused = rig.raw().patch("ladder", &params, &patch).await;
        let refused = refused.expect_err("it is refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_stalled_and_no_step_runs() {
    let rig = Ladder::bare();
    let lenient = definition::with_schema::<okt_tests::Ladder>(definition::any_spec);
    rig.define(lenient).await;
    rig.start();
    rig.create_with("ladder", json!({ "rungs": "many" })).await;
    rig.pass(Duration::from_hours(1)).await;
    let conditions = rig.raw().read("ladder").await.data;
    let conditions = conditions["status"]["conditions"].clone();
    let stalled = (conditions.as_array().into_iter().flatten())
        .find(|it| it["type"] == "Stalled")
        .expect("it says so");
    assert_eq!(stalled["reason"], "Undecodable");
    let message = stalled["message"].as_str().expect("a message");
    assert!(message.contains("spec.rungs"), "{message}");
    assert_eq!(rig.app.script.taken(), [""; 0]);
    rig.patch("ladder", json!({ "spec": { "rungs": 3 } })).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.shows("ladder", "Ready").await, "True Complete");
}

#[tokio::test(start_paused = true)]
async fn deletion_reaches_the_finalizer_step_of_an_invalid_object_too() {
    for (result, path) in [
        (Scripted::Done, "CRChecker CRFinalizer"),
        (fails_permanently("Invalid"), "CRChecker CRFinalizer"),
    ] {
        let rig = climbed(|_| {}).await;
        rig.app.script.set("CRChecker", result);
        rig.app.script.taken();
        rig.delete("ladder").await;
        rig.pass(Duration::from_secs(1)).await;
        assert_eq!(rig.app.script.taken().join(" "), path);
        assert!(rig.get("ladder").await.is_none());
    }
    let rig = climbed(|app| app.script.set("CRFinalizer", fails("Held"))).await;
    rig.app.script.taken();
    rig.delete("ladder").await;
    rig.pass(Duration::from_millis(500)).await;
    let path = "CRChecker CRFinalizer ErrorManager";
    assert_eq!(rig.app.script.taken().join(" "), path);
    rig.pass(Duration::from_hours(1)).await;
    assert!(
        rig.get("ladder").await.is_some(),
        "a failed finalizer step keeps the object"
    );
}

#[tokio::test(start_paused = true)]
async fn results_count_the_operations_in_the_cluster() {
    let rig = climbed(|app| {
        app.script.put("Mutator", [map("a", "x"), map("b", "x")]);
        app.script.set("Updater", Scripted::Commit);
    })
    .await;
    let counted = |rig: &Ladder| rig.app.script.results().expect("a result").operations;
    let applied = Operations {
        applied: 2,
        ..Operations::default()
    };
    assert_eq!(counted(&rig), applied);
    rig.request("ladder");
    rig.pass(Duration::from_secs(1)).await;
    assert!(counted(&rig).is_none(), "nothing has changed");
}

fn deployment(name: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "a", "image": "a" }] },
            },
        },
    }))
}

async fn is_ready(rig: &Ladder, name: &str) {
    let status = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
    });
    rig.of::<Deployment>().edit_status(name, status).await;
    rig.pass(Duration::from_secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_waits_for_what_has_to_be_ready_and_for_nothing_else() {
    let rig = climbed(|app| {
        let (a, b, c) = (deployment("a"), deployment("b"), deployment("c"));
        app.script.put("Mutator", [a.ready(), b.ready(), c]);
        app.script.set("Updater", Scripted::Commit);
    })
    .await;
    let waits = rig.condition("ladder", "Ready").await.expect("it says so");
    assert_eq!(waits.reason, "WaitingForResources");
    assert_eq!(
        waits.message,
        "Deployment a: its controller has not observed it yet; Deployment b: its controller has not observed it yet"
    );
    assert_eq!(
        rig.shows("ladder", "UpToDate").await,
        "False WaitingForResources"
    );
    is_ready(&rig, "a").await;
    assert_eq!(
        rig.shows("ladder", "Ready").await,
        "False WaitingForResources"
    );
    is_ready(&rig, "b").await;
    assert_eq!(rig.shows("ladder", "Ready").await, "True Complete");
}

fn held(name: &str) -> Declared {
    Declared::dynamic(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "finalizers": ["test.okt.dev/hold"] },
    }))
    .wave(1)
}

async fn free(rig: &Ladder, name: &str) {
    let maps = rig.of::<ConfigMap>();
    maps.edit(name, json!({ "metadata": { "finalizers": Value::Null } }))
        .await;
    rig.pass(Duration::from_secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn owned_objects_are_deleted_first_and_the_conditions_name_the_remaining_ones() {
    let rig = climbed(|app| app.script.put("Mutator", [held("a"), held("b")])).await;
    rig.delete("ladder").await;
    rig.pass(Duration::from_mins(5)).await;
    let waits = rig.condition("ladder", "Ready").await.expect("it says so");
    assert_eq!(waits.reason, "WaitingForResources");
    assert!(
        waits.message.contains("ConfigMap a is not gone yet")
            && waits.message.contains("ConfigMap b is not gone yet"),
        "{}",
        waits.message
    );
    free(&rig, "a").await;
    let waits = rig.condition("ladder", "Ready").await.expect("it says so");
    assert!(!waits.message.contains("ConfigMap a"), "{}", waits.message);
    free(&rig, "b").await;
    assert!(rig.get("ladder").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn resources_that_the_finalizer_step_keeps_outlive_their_object() {
    let unowned = |name| {
        Declared::dynamic(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        }))
        .unowned()
    };
    let rig = climbed(|app| {
        app.script
            .put("Mutator", [unowned("kept"), unowned("gone")]);
        app.script.keep(["kept"]);
    })
    .await;
    rig.delete("ladder").await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(rig.get("ladder").await.is_none());
    let maps = rig.of::<ConfigMap>();
    assert!(maps.has("kept").await);
    assert!(!maps.has("gone").await);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_resource_of_a_namespaced_owner_is_deleted_by_the_operator() {
    let role = || {
        Declared::dynamic(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "climb" },
        }))
    };
    let roles = |rig: &Ladder| Api::<ClusterRole>::all(rig.client.clone());
    let rig = climbed(|app| app.script.put("Mutator", [role()])).await;
    assert_eq!(rig.shows("ladder", "Ready").await, "False BadResource");
    assert!(!roles(&rig).has("climb").await);
    rig.app.script.put("Mutator", [role().unowned()]);
    rig.request("ladder");
    rig.pass(Duration::from_secs(3)).await;
    assert_eq!(rig.shows("ladder", "Ready").await, "True Complete");
    assert!(roles(&rig).has("climb").await);
    rig.delete("ladder").await;
    rig.pass(Duration::from_secs(10)).await;
    assert!(!roles(&rig).has("climb").await);
    assert!(rig.get("ladder").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_is_reported_even_while_resources_are_not_ready() {
    let rig = climbed(|app| {
        let all = [deployment("a").ready(), map("b", "x")];
        app.script.put("Mutator", all);
    })
    .await;
    assert_eq!(
        rig.shows("ladder", "Ready").await,
        "False WaitingForResources"
    );
    rig.inject(Fault::forbidden().on(Verb::Delete).resource("configmaps"));
    rig.app.script.put("Mutator", [deployment("a").ready()]);
    rig.request("ladder");
    rig.pass(Duration::from_secs(1)).await;
    let ready = rig.shows("ladder", "Ready").await;
    assert_eq!(ready, "False ResourceForbidden");
    assert_ne!(rig.shows("ladder", "UpToDate").await, "");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_finalizer_step_is_not_called_in_a_hot_loop_while_resources_are_deleted() {
    let rig = climbed(|app| app.script.put("Mutator", [held("a")])).await;
    rig.delete("ladder").await;
    rig.pass(Duration::from_secs(5)).await;
    let wait = Scripted::Wait("Draining", Duration::from_mins(1), "connections");
    rig.app.script.set("CRFinalizer", wait);
    rig.request("ladder");
    rig.pass(Duration::from_mins(1)).await;
    rig.app.script.taken();
    rig.pass(Duration::from_mins(10)).await;
    let taken = rig.app.script.taken();
    let runs = taken.iter().filter(|step| **step == "CRFinalizer").count();
    assert!((9..=11).contains(&runs), "{runs}");
    rig.app.script.set("CRFinalizer", Scripted::Done);
    rig.pass(Duration::from_mins(2)).await;
    free(&rig, "a").await;
    assert!(rig.get("ladder").await.is_none());
}
