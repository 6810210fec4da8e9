//! What keeps a namespace that is being deleted, in its conditions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::object;
use crate::store::{Store, StorePlace};

/// The conditions of a namespace that nothing keeps: the type, the reason and the message of each.
const FREE: &str = "\
NamespaceDeletionDiscoveryFailure ResourcesDiscovered All resources successfully discovered
NamespaceDeletionGroupVersionParsingFailure ParsedGroupVersions All legacy kube types successfully parsed
NamespaceDeletionContentFailure ContentDeleted All content successfully deleted, may be waiting on finalization
NamespaceContentRemaining ContentRemoved All content successfully removed
NamespaceFinalizersRemaining ContentHasNoFinalizers All content-preserving finalizers finished";

/// Says in the conditions of a namespace which objects and which finalizers keep it.
pub(super) fn explain(store: &Store, content: &[StorePlace], namespace: &mut Value) {
    let (mut kinds, mut finalizers) = (BTreeMap::new(), BTreeMap::new());
    for place in content {
        let kind = format!("{}.{} has", place.kind.plural, place.kind.group);
        *kinds.entry(kind).or_insert(0) += 1;
        let object = store.at(place).map(|object| object.read());
        for finalizer in object.iter().flat_map(object::finalizers) {
            *finalizers.entry(format!("{finalizer} in")).or_insert(0) += 1;
        }
    }
    for line in FREE.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (kind, reason, message) = (part(), part(), part());
        let kept = match kind {
            "NamespaceContentRemaining" => list(&kinds).map(|list| {
                (
                    "SomeResourcesRemain",
                    format!("Some resources are remaining: {list}"),
                )
            }),
            "NamespaceFinalizersRemaining" => list(&finalizers).map(|list| {
                (
                    "SomeFinalizersRemain",
                    format!("Some content in the namespace has finalizers remaining: {list}"),
                )
            }),
            _ => None,
        };
        let status = if kept.is_some() { "True" } else { "False" };
        let (reason, message) = kept.unwrap_or_else(|| (reason, message.to_owned()));
        let condition = json!({
            "type": kind, "status": status, "lastTransitionTime": store.clock.text(),
            "reason": reason, "message": message,
        });
        object::set_condition(namespace, condition);
    }
}

fn list(counts: &BTreeMap<String, u32>) -> Option<String> {
    let counts = counts.iter();
    let texts: Vec<_> = counts
        .map(|(of, count)| format!("{of} {count} resource instances"))
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
