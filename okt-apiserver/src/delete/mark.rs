//! Marks objects as deleting.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::kind::ServedKind;
use crate::{crd, object};

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";
pub(super) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What happens to the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How an object is deleted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// `None` if the request sets none; then the existing finalizers decide.
    pub(crate) propagation: Option<Propagation>,
    /// The seconds that a Pod has to end; by default those of its spec.
    pub(crate) grace_period: Option<i64>,
}

/// Returns the object marked as deleting; `None` if it is removed without a mark.
pub(super) fn mark(kind: &ServedKind, old: &Value, manner: Manner, now: &str) -> Option<Value> {
    let (is_namespace, is_pod) = (kind.is("", "namespaces"), kind.is("", "pods"));
    let is_deleting = object::is_deleting(old);
    if kind.is(crd::GROUP, crd::PLURAL) && !is_deleting {
        return Some(mark_crd(old, now));
    }
    if is_deleting && object::grace_period(old) > 0 {
        return Some(hasten(old, manner.grace_period, now));
    }
    let finalizers = finalizers(kind, old, manner.propagation);
    if finalizers.is_empty() && !is_namespace && !is_pod {
        return None;
    }
    let mut marked = old.clone();
    let metadata = object::metadata(&mut marked);
    if !finalizers.is_empty() {
        metadata.insert("finalizers".to_owned(), finalizers.into());
    }
    if is_deleting {
        return Some(marked);
    }
    let grace_period = if is_pod {
        grace_period(old, manner.grace_period)
    } else {
        0
    };
    let end = later(now, grace_period);
    metadata.insert("deletionTimestamp".to_owned(), end.into());
    if is_namespace {
        object::put(&mut marked, &["status", "phase"], "Terminating".into());
    } else {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), grace_period.into());
    }
    if object::at(&marked, &["metadata", "generation"]).is_some() {
        object::raise_generation(&mut marked);
    }
    Some(marked)
}

/// Returns the finalizers after a deletion: those of Kubernetes itself follow the propagation.
fn finalizers(kind: &ServedKind, old: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let mut finalizers: Vec<_> = object::finalizers(old);
    let asked = match propagation {
        None if orphans(kind) && !finalizers.contains(&FOREGROUND) => Some(ORPHAN),
        None => return finalizers.into_iter().map(str::to_owned).collect(),
        Some(Propagation::Background) => None,
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
    };
    let is_asked = |finalizer: &&str| Some(*finalizer) == asked;
    finalizers.retain(|one| is_asked(one) || !matches!(*one, FOREGROUND | ORPHAN));
    if !finalizers.iter().any(is_asked) {
        finalizers.extend(asked);
    }
    finalizers.into_iter().map(str::to_owned).collect()
}

/// Whether dependents stay if a deletion does not say what becomes of them.
fn orphans(kind: &ServedKind) -> bool {
    kind.is("batch", "jobs") || kind.is("", "replicationcontrollers")
}

/// Marks a CRD, which waits for the end of its objects whatever the propagation is.
fn mark_crd(old: &Value, now: &str) -> Value {
    let mut marked = old.clone();
    let mut finalizers = object::finalizers(old);
    if !finalizers.contains(&CRD_CLEANUP) {
        finalizers.push(CRD_CLEANUP);
    }
    let metadata = object::metadata(&mut marked);
    metadata.insert("finalizers".to_owned(), finalizers.into());
    metadata.insert("deletionTimestamp".to_owned(), now.into());
    let explained = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    crd::terminate(&mut marked, explained, now);
    marked
}

/// Returns the seconds that a Pod has to end: it has some if it runs on a node, until its kubelet deletes it with none.
fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let phase = object::text(pod, &["status", "phase"]);
    if object::text(pod, &["spec", "nodeName"]).is_empty()
        || matches!(phase, "Succeeded" | "Failed")
    {
        return 0;
    }
    let own = object::at(pod, &["spec", "terminationGracePeriodSeconds"]);
    not_negative(asked.or(own.and_then(Value::as_i64)).unwrap_or(0))
}

/// A negative grace period counts as the shortest.
fn not_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Returns a Pod that is ending with the time that it still has: another deletion can only make it shorter.
fn hasten(pod: &Value, asked: Option<i64>, now: &str) -> Value {
    let mut pod = pod.clone();
    let left = object::grace_period(&pod);
    let asked = asked.map(not_negative);
    let Some(mut seconds) = asked.filter(|asked| *asked < left) else {
        return pod;
    };
    let before = object::text(&pod, &["metadata", "deletionTimestamp"]);
    let mut end = later(before, seconds - left);
    // Times of one form are in the order of their texts.
    if end.as_str() < now {
        now.clone_into(&mut end);
        // It still ends by itself, in the shortest time.
        seconds = seconds.min(1);
    }
    let metadata = object::metadata(&mut pod);
    metadata.insert("deletionTimestamp".to_owned(), end.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
    pod
}

/// Returns the time so many seconds later.
fn later(time: &str, seconds: i64) -> String {
    let moved = time.parse::<Timestamp>().ok();
    let moved = moved.and_then(|time| time.checked_add(SignedDuration::from_secs(seconds)).ok());
    moved.map_or_else(|| time.to_owned(), |time| time.to_string())
}
