//! Marks objects as deleting.

use serde_json::Value;

use crate::api::kind::ServedKind;
use crate::api::{crd, object};

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

/// Returns the object marked as deleting; `None` if it can be removed at once.
pub(super) fn mark(
    kind: &ServedKind,
    old: &Value,
    propagation: Option<Propagation>,
    now: &str,
) -> Option<Value> {
    let before: Vec<String> = object::finalizers(old)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut finalizers = before.clone();
    if propagation.is_some() {
        finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    }
    let asked = match propagation {
        None | Some(Propagation::Background) => None,
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
    };
    let is_crd = kind.is(crd::GROUP, crd::PLURAL);
    let own = asked.or(is_crd.then_some(CRD_CLEANUP));
    if let Some(own) = own
        && !finalizers.iter().any(|finalizer| finalizer == own)
    {
        finalizers.push(own.to_owned());
    }
    if finalizers.len() == before.len() && finalizers.iter().all(|one| before.contains(one)) {
        finalizers = before;
    }
    let is_namespace = kind.is("", "namespaces");
    if finalizers.is_empty() && !is_namespace {
        return None;
    }
    let mut marked = old.clone();
    let metadata = object::metadata(&mut marked);
    if !finalizers.is_empty() {
        metadata.insert("finalizers".to_owned(), finalizers.into());
    }
    if object::is_deleting(old) {
        return Some(marked);
    }
    metadata.insert("deletionTimestamp".to_owned(), now.into());
    if !is_namespace {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
    }
    if metadata.contains_key("generation") {
        object::raise_generation(&mut marked);
    }
    if is_namespace {
        object::put(&mut marked, &["status", "phase"], "Terminating".into());
    }
    Some(marked)
}
