//! Tests of readiness, kind by kind.

use okt_wire::keys::READY_WHEN_ANNOTATION;

use super::*;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

fn lack_of(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Option<Lack> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = ResourceKind {
        api: ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)),
        namespaced: true,
    };
    // As in a list: without `apiVersion` and `kind`.
    let object = json!({ "metadata": { "generation": 2 }, "spec": spec, "status": status });
    lack(&kind, false, &object)
}

fn of(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Option<String> {
    match lack_of(api_version, kind, spec, status)? {
        Lack::Pending(why) => Some(why),
        Lack::Failed(why) => Some(format!("failed: {why}")),
    }
}

#[test]
fn a_deployment_is_ready_when_all_replicas_are_new_and_available() {
    let deployment =
        |status: Value| of("apps/v1", "Deployment", &json!({ "replicas": 2 }), &status);
    let all = json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 });
    assert_eq!(deployment(all.clone()), None);
    let but = |name: &str, value: Value| {
        let mut status = all.clone();
        status[name] = value;
        deployment(status).expect("it is not ready")
    };
    assert_eq!(
        but("observedGeneration", json!(1)),
        "its controller has not observed it yet"
    );
    assert_eq!(
        but("updatedReplicas", json!(1)),
        "1 of 2 replicas are updated"
    );
    assert_eq!(
        but("replicas", json!(3)),
        "1 replicas of an earlier version are not gone yet"
    );
    assert_eq!(
        but("availableReplicas", json!(null)),
        "0 of 2 replicas are available"
    );
    assert_eq!(
        but(
            "conditions",
            json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow" }])
        ),
        "failed: ProgressDeadlineExceeded: too slow"
    );
    assert_eq!(
        deployment(json!({})).as_deref(),
        Some("its controller has not observed it yet")
    );
}

#[test]
fn a_workload_that_was_scaled_down_is_ready_when_surplus_replicas_are_gone() {
    let of_three = |kind: &str, replicas: i64| {
        let status = json!({
            "observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        });
        of("apps/v1", kind, &json!({ "replicas": 1 }), &status)
    };
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        let why = of_three(kind, 3).expect("two have to go");
        assert_eq!(why, "2 replicas too many are not gone yet", "{kind}");
        assert_eq!(of_three(kind, 1), None, "{kind}");
    }
}

#[test]
fn other_built_in_kinds_have_rules_of_their_own() {
    let stateful = |status: Value| of("apps/v1", "StatefulSet", &json!({ "replicas": 3 }), &status);
    assert_eq!(
        stateful(json!({ "observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3 })),
        None
    );
    assert_eq!(
        stateful(json!({ "observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 1 }))
            .as_deref(),
        Some("1 of 3 replicas are updated")
    );
    let job = |conditions: Value| {
        of(
            "batch/v1",
            "Job",
            &json!({}),
            &json!({ "conditions": conditions }),
        )
    };
    assert_eq!(job(json!([{ "type": "Complete", "status": "True" }])), None);
    assert_eq!(
        job(json!([{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }]))
            .as_deref(),
        Some("failed: BackoffLimitExceeded")
    );
    assert_eq!(job(json!([])).as_deref(), Some("it is not complete yet"));
    let volume = |phase: &str| {
        of(
            "v1",
            "PersistentVolumeClaim",
            &json!({}),
            &json!({ "phase": phase }),
        )
    };
    assert_eq!(volume("Bound"), None);
    assert_eq!(
        volume("Lost").as_deref(),
        Some("failed: its volume is lost")
    );
    assert_eq!(
        volume("Pending").as_deref(),
        Some("it is Pending, not Bound")
    );
    let service = |kind: &str| of("v1", "Service", &json!({ "type": kind }), &json!({}));
    assert_eq!(service("ClusterIP"), None);
    assert_eq!(
        service("LoadBalancer").as_deref(),
        Some("it has no address outside yet")
    );
    let pod = |status: Value| of("v1", "Pod", &json!({}), &status);
    assert_eq!(
        pod(json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] })),
        None
    );
    assert_eq!(pod(json!({})).as_deref(), Some("it is not scheduled yet"));
}

#[test]
fn a_kind_without_conditions_is_ready_and_conditions_count() {
    let other = |conditions: Value| {
        of(
            "demo.okt.dev/v1",
            "Kettle",
            &json!({}),
            &json!({ "conditions": conditions }),
        )
    };
    let said = |name: &str, status: &str| json!([{ "type": name, "status": status, "reason": "Why", "message": "so" }]);
    assert_eq!(of("v1", "ConfigMap", &json!({}), &json!({})), None);
    assert_eq!(other(said("Ready", "True")), None);
    assert_eq!(other(said("Ready", "Unknown")).as_deref(), Some("Why: so"));
    assert_eq!(
        other(said("Reconciling", "True")).as_deref(),
        Some("Why: so")
    );
    assert_eq!(
        other(said("Stalled", "True")).as_deref(),
        Some("failed: Why: so")
    );
}

#[test]
fn a_condition_about_an_earlier_generation_does_not_count() {
    let unseen = Some("its controller has not observed it yet".to_owned());
    for (kind, name, status) in [
        ("Certificate", "Ready", "True"),
        ("Certificate", "Reconciling", "False"),
        ("Certificate", "Stalled", "True"),
    ] {
        let of_generation = |generation: i64| {
            let condition = json!({
                "type": name, "status": status, "reason": "Why", "observedGeneration": generation,
            });
            let status = json!({ "conditions": [condition] });
            of("cert-manager.io/v1", kind, &json!({}), &status)
        };
        assert_ne!(of_generation(2), unseen, "{name}");
        let now = if name == "Stalled" {
            None
        } else {
            unseen.clone()
        };
        assert_eq!(of_generation(1), now, "{name}");
    }
    let ready = |generation: i64| {
        let ready = json!({ "type": "Ready", "status": "True", "observedGeneration": generation });
        let status = json!({ "phase": "Running", "conditions": [ready] });
        of("v1", "Pod", &json!({}), &status)
    };
    assert_eq!((ready(2), ready(1)), (None, unseen));
}

#[test]
fn an_object_without_a_status_is_ready_only_if_its_kind_has_none() {
    let kind = ResourceKind {
        api: ApiResource::from_gvk(&GroupVersionKind::gvk(
            "cert-manager.io",
            "v1",
            "Certificate",
        )),
        namespaced: true,
    };
    for object in [
        json!({}),
        json!({ "status": {} }),
        json!({ "status": null }),
    ] {
        let why = "its controller has not written a status yet".to_owned();
        assert_eq!(lack(&kind, true, &object), Some(Lack::Pending(why)));
        assert_eq!(lack(&kind, false, &object), None);
    }
    let phase = json!({ "status": { "phase": "Issued" } });
    assert_eq!(lack(&kind, true, &phase), None);
}

#[test]
fn a_declared_condition_decides_alone() {
    let kind = ResourceKind {
        api: ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment")),
        namespaced: true,
    };
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
    for (wanted, condition, why) in [
        (
            "Available",
            available("False", 2),
            "its condition Available is False: Why: so",
        ),
        (
            "Other",
            available("True", 2),
            "its condition Other is not there yet",
        ),
        (
            "Available",
            available("True", 1),
            "its condition Available is Unknown: its controller has not observed it yet",
        ),
    ] {
        assert_eq!(of(wanted, condition), why);
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
        of("apps/v1", "StatefulSet", &spec, &status)
    };
    let spec = |replicas: i64| json!({ "replicas": replicas });
    let is_behind = |why: Option<String>| why.is_some_and(|it| it.contains("of another revision"));
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
