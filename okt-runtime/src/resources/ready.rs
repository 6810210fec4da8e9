//! Decides whether an object of the cluster is ready, from its status.
//!
//! The rules are those of kstatus (<https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus>), with three
//! differences: a Job is ready when it is complete, not when it runs; a condition counts only if it is about the present
//! generation; and an object of a kind with a status is not ready before it has one.

use okt_wire::keys::READY_WHEN_ANNOTATION;
use serde_json::{Map, Value};

use super::kind::ResourceKind;

/// Why an object is not ready, in a few words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lack {
    /// The object may still become ready.
    Pending(String),
    /// The object does not become ready without intervention.
    Failed(String),
}

/// How a Job or a Pod ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Complete,
    Failed,
}

impl End {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }
}

/// Why an object is not ready whose controller has not written its status since its last change.
const UNSEEN: &str = "its controller has not observed it yet";

/// Returns why an object is not ready; none if it is.
///
/// The kind is a parameter because objects from a list lack it. `has_status` is whether the kind has the status
/// subresource, if that is known.
pub(super) fn lack(kind: &ResourceKind, has_status: bool, object: &Value) -> Option<Lack> {
    if object["metadata"].get("deletionTimestamp").is_some() {
        return Some(Lack::Pending("is being deleted".to_owned()));
    }
    let status = &object["status"];
    if let Some(seen) = status["observedGeneration"].as_i64()
        && let Some(generation) = object["metadata"]["generation"].as_i64()
        && seen < generation
    {
        return Some(Lack::Pending(UNSEEN.to_owned()));
    }
    let (group, kind) = (&*kind.api.group, &*kind.api.kind);
    if let Some(why) = failed(group, kind, object) {
        return Some(Lack::Failed(why));
    }
    let wanted = object["metadata"]["annotations"][READY_WHEN_ANNOTATION].as_str();
    let why = match wanted {
        Some(wanted) => by_condition(object, wanted),
        None => pending(group, kind, has_status, object),
    };
    why.map(Lack::Pending)
}

/// Returns whether only the conditions of a kind's objects show whether they are ready, if they have any.
pub(super) fn is_judged_by_conditions(kind: &ResourceKind) -> bool {
    // Their other kinds have rules of their own, or nothing to wait for.
    const BUILT_IN: [&str; 5] = [
        "",
        "apps",
        "batch",
        "apiextensions.k8s.io",
        "rbac.authorization.k8s.io",
    ];
    !BUILT_IN.contains(&&*kind.api.group)
}

/// Returns why an object cannot become ready without intervention.
fn failed(group: &str, kind: &str, object: &Value) -> Option<String> {
    let status = &object["status"];
    let is = |name: &str, wanted: &str| {
        condition(object, name).and_then(|it| (it.status == wanted).then_some(it.text))
    };
    match (group, kind) {
        ("apps", "Deployment") => {
            is("Progressing", "False").filter(|text| text.starts_with("ProgressDeadlineExceeded"))
        }
        ("batch", "Job") => is("Failed", "True"),
        ("", "Pod") => (status["phase"] == "Failed").then(|| {
            let texts = [&status["reason"], &status["message"]];
            let text = texts
                .iter()
                .filter_map(|it| it.as_str())
                .collect::<Vec<_>>()
                .join(": ");
            if text.is_empty() {
                "it has failed".to_owned()
            } else {
                format!("it has failed: {text}")
            }
        }),
        ("", "PersistentVolumeClaim") => {
            (status["phase"] == "Lost").then(|| "its volume is lost".to_owned())
        }
        ("" | "apps" | "batch", _) => None,
        _ => is("Stalled", "True"),
    }
}

/// Returns how a Job or a Pod has ended, by its status; none if it has not, or for other kinds.
pub(super) fn ended(kind: &ResourceKind, status: &Value) -> Option<End> {
    let conditions = status["conditions"].as_array();
    let is = |name: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == name && it["status"] == "True")
    };
    match (&*kind.api.group, &*kind.api.kind) {
        ("batch", "Job") if is("Complete") => Some(End::Complete),
        ("batch", "Job") if is("Failed") => Some(End::Failed),
        ("", "Pod") if status["phase"] == "Succeeded" => Some(End::Complete),
        ("", "Pod") if status["phase"] == "Failed" => Some(End::Failed),
        _ => None,
    }
}

fn pending(group: &str, kind: &str, has_status: bool, object: &Value) -> Option<String> {
    let status = &object["status"];
    match (group, kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(status),
        ("apps", "ReplicaSet") => replica_set(object),
        ("batch", "Job") => job(object),
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => phase(status, "Bound"),
        ("", "Service") => service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ if has_status && object["status"].as_object().is_none_or(Map::is_empty) => {
            Some("its controller has not written a status yet".to_owned())
        }
        _ => by_conditions(object),
    }
}

/// A condition of an object; one that is about an earlier generation of the object is unknown.
struct ReadyCondition<'a> {
    status: &'a str,
    /// Its reason and its message as one text.
    text: String,
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<ReadyCondition<'a>> {
    let all = object["status"]["conditions"].as_array()?;
    let it = all.iter().find(|it| it["type"] == name)?;
    let generation = |value: &Value, name: &str| value[name].as_i64();
    let is_old = generation(it, "observedGeneration")
        .zip(generation(&object["metadata"], "generation"))
        .is_some_and(|(seen, now)| seen < now);
    let reason = it["reason"].as_str().unwrap_or_default();
    let text = match it["message"].as_str() {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        Some(_) | None if reason.is_empty() => name.to_owned(),
        Some(_) | None => reason.to_owned(),
    };
    Some(if is_old {
        ReadyCondition {
            status: "Unknown",
            text: UNSEEN.to_owned(),
        }
    } else {
        ReadyCondition {
            status: it["status"].as_str().unwrap_or_default(),
            text,
        }
    })
}

/// Judges an object by the one condition that its declaration names, as `kubectl wait` does: `Name`, or `Name=Status`.
fn by_condition(object: &Value, wanted: &str) -> Option<String> {
    let (name, status) = wanted.split_once('=').unwrap_or((wanted, "True"));
    match condition(object, name) {
        None => Some(format!("its condition {name} is not there yet")),
        Some(condition) if condition.status.eq_ignore_ascii_case(status) => None,
        Some(condition) => Some(format!(
            "its condition {name} is {}: {}",
            condition.status, condition.text
        )),
    }
}

fn number(value: &Value, otherwise: i64) -> i64 {
    value.as_i64().unwrap_or(otherwise)
}

fn count(have: &Value, want: i64, what: &str) -> Option<String> {
    let have = number(have, 0);
    (have < want).then(|| format!("{have} of {want} replicas are {what}"))
}

/// Returns a text if the status has no `observedGeneration`: the controller has not written it yet.
fn unseen(status: &Value) -> Option<String> {
    let seen = status.get("observedGeneration").is_some();
    (!seen).then(|| UNSEEN.to_owned())
}

fn deployment(object: &Value) -> Option<String> {
    let status = &object["status"];
    let want = number(&object["spec"]["replicas"], 1);
    unseen(status)
        .or_else(|| count(&status["updatedReplicas"], want, "updated"))
        .or_else(|| old(status))
        .or_else(|| surplus(status, want))
        .or_else(|| count(&status["availableReplicas"], want, "available"))
}

/// Counts replicas of an earlier version that still exist.
fn old(status: &Value) -> Option<String> {
    let old = number(&status["replicas"], 0) - number(&status["updatedReplicas"], 0);
    (old > 0).then(|| format!("{old} replicas of an earlier version are not gone yet"))
}

/// Counts replicas above the wanted number that still exist.
fn surplus(status: &Value, want: i64) -> Option<String> {
    let surplus = number(&status["replicas"], 0) - want;
    (surplus > 0).then(|| format!("{surplus} replicas too many are not gone yet"))
}

fn stateful_set(object: &Value) -> Option<String> {
    let status = &object["status"];
    let strategy = &object["spec"]["updateStrategy"];
    let want = number(&object["spec"]["replicas"], 1);
    if strategy["type"] == "OnDelete" {
        return unseen(status).or_else(|| count(&status["readyReplicas"], want, "ready"));
    }
    let kept = number(&strategy["rollingUpdate"]["partition"], 0);
    if let Some(behind) = behind_old_pods(object) {
        return Some(behind);
    }
    unseen(status)
        .or_else(|| count(&status["readyReplicas"], want, "ready"))
        .or_else(|| surplus(status, want))
        .or_else(|| count(&status["updatedReplicas"], want - kept, "updated"))
}

/// Returns what a rollout of a `StatefulSet` waits for whose Pods of an earlier revision are not ready: the controller makes
/// none of the new revision before they are, so if one of them never can, a correct template does not help.
///
/// <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback>
pub(super) fn behind_old_pods(object: &Value) -> Option<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let old = status["currentRevision"].as_str()?;
    let new = status["updateRevision"].as_str()?;
    let in_order = spec["podManagementPolicy"] != "Parallel";
    let rolls = spec["updateStrategy"]["type"] != "OnDelete";
    let count = |name: &str| number(&status[name], 0);
    let (unready, earlier) = (
        count("replicas") - count("readyReplicas"),
        count("replicas") - count("updatedReplicas"),
    );
    // A Pod that is not ready may be a new one, unless there is none, or the template is the former one again.
    let is_old = count("updatedReplicas") == 0 || old == new;
    let is_behind = in_order && rolls && unready > 0 && earlier > 0 && is_old;
    is_behind.then(|| {
        format!(
            "the rollout of revision {new} waits until Pods of another revision are ready, of which {unready} are not: delete such a Pod if it cannot become ready"
        )
    })
}

fn daemon_set(status: &Value) -> Option<String> {
    let want = number(&status["desiredNumberScheduled"], 0);
    unseen(status)
        .or_else(|| count(&status["updatedNumberScheduled"], want, "updated"))
        .or_else(|| count(&status["numberAvailable"], want, "available"))
}

fn replica_set(object: &Value) -> Option<String> {
    let status = &object["status"];
    let want = number(&object["spec"]["replicas"], 1);
    unseen(status)
        .or_else(|| count(&status["availableReplicas"], want, "available"))
        .or_else(|| surplus(status, want))
}

fn job(object: &Value) -> Option<String> {
    let complete = condition(object, "Complete").is_some_and(|it| it.status == "True");
    (!complete).then(|| "it is not complete yet".to_owned())
}

fn definition(object: &Value) -> Option<String> {
    let served = condition(object, "Established").is_some_and(|it| it.status == "True");
    (!served).then(|| "its kind is not served yet".to_owned())
}

fn pod(object: &Value) -> Option<String> {
    let phase = object["status"]["phase"].as_str();
    match (phase, condition(object, "Ready")) {
        (Some("Succeeded"), _) | (_, Some(ReadyCondition { status: "True", .. })) => None,
        (_, Some(condition)) => Some(condition.text),
        (phase, None) => Some(format!("it is {}", phase.unwrap_or("not scheduled yet"))),
    }
}

fn phase(status: &Value, wanted: &str) -> Option<String> {
    let phase = status["phase"].as_str().unwrap_or("Pending");
    (phase != wanted).then(|| format!("it is {phase}, not {wanted}"))
}

fn service(object: &Value) -> Option<String> {
    let waits = object["spec"]["type"] == "LoadBalancer"
        && object["status"]["loadBalancer"]["ingress"]
            .as_array()
            .is_none_or(Vec::is_empty);
    waits.then(|| "it has no address outside yet".to_owned())
}

/// Judges any other kind by the conditions `Reconciling` and `Ready`; without them it is ready.
fn by_conditions(object: &Value) -> Option<String> {
    let (reconciling, ready) = (condition(object, "Reconciling"), condition(object, "Ready"));
    // Whether it has seen the object is unknown.
    let reconciling = reconciling.filter(|it| it.status != "False");
    let not_ready = || ready.filter(|it| it.status != "True");
    reconciling.or_else(not_ready).map(|it| it.text)
}

#[cfg(test)]
mod tests;
