//! Decides whether an object of the cluster is ready, from its status.
//!
//! The rules are those of kstatus (<https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus>), with one
//! difference: a Job is ready when it is complete, not when it runs.

use serde_json::Value;

use super::kind::Kind;

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

/// Returns why an object is not ready; none if it is.
///
/// The kind is a parameter because objects from a list lack it.
pub(crate) fn lack(kind: &Kind, object: &Value) -> Option<Lack> {
    if object["metadata"].get("deletionTimestamp").is_some() {
        return Some(Lack::Pending("is being deleted".to_owned()));
    }
    let status = &object["status"];
    if let Some(seen) = status["observedGeneration"].as_i64()
        && let Some(generation) = object["metadata"]["generation"].as_i64()
        && seen < generation
    {
        return Some(Lack::Pending(
            "its controller has not observed it yet".to_owned(),
        ));
    }
    let (group, kind) = (&*kind.api.group, &*kind.api.kind);
    if let Some(why) = failed(group, kind, status) {
        return Some(Lack::Failed(why));
    }
    pending(group, kind, object).map(Lack::Pending)
}

/// Returns why an object cannot become ready without intervention.
fn failed(group: &str, kind: &str, status: &Value) -> Option<String> {
    let is = |name: &str, wanted: &str| {
        condition(status, name).and_then(|(status, said)| (status == wanted).then_some(said))
    };
    match (group, kind) {
        ("apps", "Deployment") => {
            is("Progressing", "False").filter(|said| said.starts_with("ProgressDeadlineExceeded"))
        }
        ("batch", "Job") => is("Failed", "True"),
        ("", "Pod") => (status["phase"] == "Failed").then(|| {
            let said = [&status["reason"], &status["message"]];
            let said = said
                .iter()
                .filter_map(|it| it.as_str())
                .collect::<Vec<_>>()
                .join(": ");
            if said.is_empty() {
                "it has failed".to_owned()
            } else {
                format!("it has failed: {said}")
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
pub(super) fn ended(kind: &Kind, status: &Value) -> Option<End> {
    let is = |name: &str| condition(status, name).is_some_and(|(status, _)| status == "True");
    match (&*kind.api.group, &*kind.api.kind) {
        ("batch", "Job") if is("Complete") => Some(End::Complete),
        ("batch", "Job") if is("Failed") => Some(End::Failed),
        ("", "Pod") if status["phase"] == "Succeeded" => Some(End::Complete),
        ("", "Pod") if status["phase"] == "Failed" => Some(End::Failed),
        _ => None,
    }
}

fn pending(group: &str, kind: &str, object: &Value) -> Option<String> {
    let status = &object["status"];
    match (group, kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(status),
        ("apps", "ReplicaSet") => replica_set(object),
        ("batch", "Job") => job(status),
        ("", "Pod") => pod(status),
        ("", "PersistentVolumeClaim") => phase(status, "Bound"),
        ("", "Service") => service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(status),
        _ => by_conditions(status),
    }
}

/// Returns the status of a condition, and its reason and message as one text.
fn condition<'a>(status: &'a Value, name: &str) -> Option<(&'a str, String)> {
    let all = status["conditions"].as_array()?;
    let it = all.iter().find(|it| it["type"] == name)?;
    let reason = it["reason"].as_str().unwrap_or_default();
    let said = match it["message"].as_str() {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        Some(_) | None if reason.is_empty() => name.to_owned(),
        Some(_) | None => reason.to_owned(),
    };
    Some((it["status"].as_str().unwrap_or_default(), said))
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
    (!seen).then(|| "its controller has not observed it yet".to_owned())
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
    unseen(status)
        .or_else(|| count(&status["readyReplicas"], want, "ready"))
        .or_else(|| surplus(status, want))
        .or_else(|| count(&status["updatedReplicas"], want - kept, "updated"))
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

fn job(status: &Value) -> Option<String> {
    let complete = condition(status, "Complete").is_some_and(|(status, _)| status == "True");
    (!complete).then(|| "it is not complete yet".to_owned())
}

fn definition(status: &Value) -> Option<String> {
    let served = condition(status, "Established").is_some_and(|(status, _)| status == "True");
    (!served).then(|| "its kind is not served yet".to_owned())
}

fn pod(status: &Value) -> Option<String> {
    match (status["phase"].as_str(), condition(status, "Ready")) {
        (Some("Succeeded"), _) | (_, Some(("True", _))) => None,
        (_, Some((_, said))) => Some(said),
        (phase, None) => Some(format!("it is {}", phase.unwrap_or("not scheduled yet"))),
    }
}

fn phase(status: &Value, wanted: &str) -> Option<String> {
    let phase = status["phase"].as_str().unwrap_or("Pending");
    (phase != wanted).then(|| format!("it is {phase}, not {wanted}"))
}

fn service(object: &Value) -> Option<String> {
    let waits = object["spec"]["type"] == "LoadBalancer"
        && (object["status"]["loadBalancer"]["ingress"].as_array()).is_none_or(Vec::is_empty);
    waits.then(|| "it has no address outside yet".to_owned())
}

/// Judges any other kind by the conditions `Reconciling` and `Ready`; without them it is ready.
fn by_conditions(status: &Value) -> Option<String> {
    let reconciling = condition(status, "Reconciling").filter(|(status, _)| *status == "True");
    let not_ready = || condition(status, "Ready").filter(|(status, _)| *status != "True");
    reconciling.or_else(not_ready).map(|(_, said)| said)
}

#[cfg(test)]
mod tests;
