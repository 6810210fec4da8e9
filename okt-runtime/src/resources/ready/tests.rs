//! Tests of readiness, kind by kind.

use kube::core::{ApiResource, GroupVersionKind};
use okt_wire::keys::READY_WHEN_ANNOTATION;
use serde_json::json;

use super::*;

const UNSEEN_YET: &str = "its controller has not observed it yet";

fn kind_of(api_version: &str, kind: &str) -> ResourceKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ResourceKind {
        api: ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)),
        namespaced: true,
    }
}

/// Returns what an object of the second generation lacks; "" if it is ready.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the values are written in the calls"
)]
fn of(api_version: &str, kind: &str, spec: Value, status: Value) -> String {
    // As in a list: without `apiVersion` and `kind`.
    let object = json!({ "metadata": { "generation": 2 }, "spec": spec, "status": status });
    match lack(&kind_of(api_version, kind), false, &object) {
        None => String::new(),
        Some(Lack::Pending(why)) => why,
        Some(Lack::Failed(why)) => format!("failed: {why}"),
    }
}

#[test]
fn a_deployment_is_ready_when_all_replicas_are_new_and_available() {
    let deployment = |status: Value| of("apps/v1", "Deployment", json!({ "replicas": 2 }), status);
    let all = json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 });
    assert_eq!(deployment(all.clone()), "");
    let stuck = json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow" }]);
    for (name, value, why) in [
        ("observedGeneration", json!(1), UNSEEN_YET),
        ("updatedReplicas", json!(1), "1 of 2 replicas are updated"),
        (
            "replicas",
            json!(3),
            "1 replicas of an earlier version are not gone yet",
        ),
        (
            "availableReplicas",
            json!(null),
            "0 of 2 replicas are available",
        ),
        (
            "conditions",
            stuck,
            "failed: ProgressDeadlineExceeded: too slow",
        ),
    ] {
        let mut status = all.clone();
        status[name] = value;
        assert_eq!(deployment(status), why);
    }
    assert_eq!(deployment(json!({})), UNSEEN_YET);
}

#[test]
fn a_workload_that_was_scaled_down_is_ready_when_surplus_replicas_are_gone() {
    let of_three = |kind: &str, replicas: i64| {
        let status = json!({
            "observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        });
        of("apps/v1", kind, json!({ "replicas": 1 }), status)
    };
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        let why = "2 replicas too many are not gone yet";
        assert_eq!(
            (&*of_three(kind, 3), &*of_three(kind, 1)),
            (why, ""),
            "{kind}"
        );
    }
}

#[test]
fn other_built_in_kinds_have_rules_of_their_own() {
    let rollout = |updated: i64| json!({ "observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": updated });
    let conditions = |conditions: Value| json!({ "conditions": conditions });
    let complete = conditions(json!([{ "type": "Complete", "status": "True" }]));
    let failed = conditions(
        json!([{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }]),
    );
    let running =
        json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let (three, none) = (json!({ "replicas": 3 }), json!({}));
    let volume = "PersistentVolumeClaim";
    for (api_version, kind, spec, status, why) in [
        ("apps/v1", "StatefulSet", &three, rollout(3), ""),
        (
            "apps/v1",
            "StatefulSet",
            &three,
            rollout(1),
            "1 of 3 replicas are updated",
        ),
        ("batch/v1", "Job", &none, complete, ""),
        (
            "batch/v1",
            "Job",
            &none,
            failed,
            "failed: BackoffLimitExceeded",
        ),
        (
            "batch/v1",
            "Job",
            &none,
            conditions(json!([])),
            "it is not complete yet",
        ),
        ("v1", volume, &none, json!({ "phase": "Bound" }), ""),
        (
            "v1",
            volume,
            &none,
            json!({ "phase": "Lost" }),
            "failed: its volume is lost",
        ),
        (
            "v1",
            volume,
            &none,
            json!({ "phase": "Pending" }),
            "it is Pending, not Bound",
        ),
        (
            "v1",
            "Service",
            &json!({ "type": "ClusterIP" }),
            json!({}),
            "",
        ),
        (
            "v1",
            "Service",
            &json!({ "type": "LoadBalancer" }),
            json!({}),
            "it has no address outside yet",
        ),
        ("v1", "Pod", &none, running, ""),
        ("v1", "Pod", &none, json!({}), "it is not scheduled yet"),
        ("v1", "ConfigMap", &none, json!({}), ""),
    ] {
        assert_eq!(of(api_version, kind, spec.clone(), status), why);
    }
}

#[test]
fn the_conditions_of_other_kinds_count() {
    for (name, status, why) in [
        ("Ready", "True", ""),
        ("Ready", "Unknown", "Why: so"),
        ("Reconciling", "True", "Why: so"),
        ("Stalled", "True", "failed: Why: so"),
    ] {
        let condition = json!({ "type": name, "status": status, "reason": "Why", "message": "so" });
        let status = json!({ "conditions": [condition] });
        assert_eq!(of("demo.okt.dev/v1", "Kettle", json!({}), status), why);
    }
}

#[test]
fn a_condition_about_an_earlier_generation_does_not_count() {
    for (api_version, kind, name, status, now) in [
        (
            "cert-manager.io/v1",
            "Certificate",
            "Ready",
            "True",
            UNSEEN_YET,
        ),
        (
            "cert-manager.io/v1",
            "Certificate",
            "Reconciling",
            "False",
            UNSEEN_YET,
        ),
        ("cert-manager.io/v1", "Certificate", "Stalled", "True", ""),
        ("v1", "Pod", "Ready", "True", UNSEEN_YET),
    ] {
        let of_generation = |generation: i64| {
            let condition = json!({
                "type": name, "status": status, "reason": "Why", "observedGeneration": generation,
            });
            let status = json!({ "phase": "Running", "conditions": [condition] });
            of(api_version, kind, json!({}), status)
        };
        assert_ne!(of_generation(2), UNSEEN_YET, "{name}");
        assert_eq!(of_generation(1), now, "{name}");
    }
}

#[test]
fn an_object_without_a_status_is_ready_only_if_its_kind_has_none() {
    let kind = kind_of("cert-manager.io/v1", "Certificate");
    let null = json!({ "status": null });
    for object in [json!({}), json!({ "status": {} }), null] {
        let why = "its controller has not written a status yet".to_owned();
        assert_eq!(lack(&kind, true, &object), Some(Lack::Pending(why)));
        assert_eq!(lack(&kind, false, &object), None);
    }
    let phase = json!({ "status": { "phase": "Issued" } });
    assert_eq!(lack(&kind, true, &phase), None);
}

#[test]
fn a_declared_condition_decides_alone() {
    let kind = kind_of("apps/v1", "Deployment");
    let of = |wanted: &str, condition: Value| {
        let object = json!({
            "metadata": { "generation": 2, "annotations": { READY_WHEN_ANNOTATION: wanted } },
            "status": { "observedGeneration": 2, "conditions": [condition] },
        });
        match lack(&kind, true, &object) {
            None => "ready".to_owned(),
            Some(Lack::Pending(why) | Lack::Failed(why)) => why,
        }
    };
    let available = |status: &str, generation: i64| {
        json!({
            "type": "Available", "status": status, "reason": "Why", "message": "so",
            "observedGeneration": generation,
        })
    };
    assert_eq!(of("Available", available("True", 2)), "ready");
    assert_eq!(of("Available=false", available("False", 2)), "ready");
    let unseen = format!("its condition Available is Unknown: {UNSEEN_YET}");
    for (wanted, status, generation, why) in [
        (
            "Available",
            "False",
            2,
            "its condition Available is False: Why: so",
        ),
        ("Other", "True", 2, "its condition Other is not there yet"),
        ("Available", "True", 1, &*unseen),
    ] {
        assert_eq!(of(wanted, available(status, generation)), why);
    }
}

#[test]
fn a_rollout_behind_pods_of_another_revision_says_so() {
    let set = |old: &str, new: &str, counts: [i64; 3], spec: Value| {
        let [replicas, ready, updated] = counts;
        let status = json!({
            "observedGeneration": 2, "replicas": replicas, "readyReplicas": ready,
            "updatedReplicas": updated, "currentRevision": old, "updateRevision": new,
        });
        of("apps/v1", "StatefulSet", spec, status)
    };
    let spec = |replicas: i64| json!({ "replicas": replicas });
    let is_behind = |why: String| why.contains("of another revision");
    // A wrong template at the first Pod, then a correct one, or the former one.
    assert!(is_behind(set("a", "b", [1, 0, 0], spec(1))));
    assert!(is_behind(set("a", "c", [3, 2, 0], spec(3))));
    assert!(is_behind(set("a", "a", [3, 2, 2], spec(3))));
    // An ordinary rollout, a first start, and a controller that does not wait.
    assert!(!is_behind(set("a", "b", [3, 2, 1], spec(3))));
    assert!(!is_behind(set("a", "a", [1, 0, 1], spec(3))));
    let parallel = json!({ "replicas": 1, "podManagementPolicy": "Parallel" });
    assert!(!is_behind(set("a", "b", [1, 0, 0], parallel)));
    assert!(!is_behind(set("a", "b", [1, 1, 1], spec(1))));
}
