//! Claims and volumes are kept while they are used.

use serde_json::Value;

use crate::kind::{KindId, ServedKind};
use crate::object::{self, items, text};
use crate::store::{Key, Store, StorePlace};

/// Returns the places of the claims that a Pod mounts; none for another kind.
pub(super) fn claims_of(kind: &ServedKind, object: &Value) -> Vec<StorePlace> {
    if !kind.is("", "pods") {
        return Vec::new();
    }
    let claims = KindId::new("", "persistentvolumeclaims");
    let place = |claim| StorePlace::new(&claims, &Key::new(object::namespace(object), claim));
    claims_in(object).map(place).collect()
}

/// Whether a claim is mounted by a Pod on a node, or a volume is bound to a claim.
pub(super) fn is_used(store: &Store, kind: &ServedKind, object: &Value) -> bool {
    if kind.is("", "persistentvolumes") {
        return text(object, &["status", "phase"]) == "Bound";
    }
    let id = KindId::new("", "pods");
    let mut pods = store.list(&id, Some(object::namespace(object)));
    pods.any(|(_, pod)| {
        let pod = pod.read();
        // A Pod without a node does not start with a claim that is being deleted.
        !text(&pod, &["spec", "nodeName"]).is_empty()
            && claims_in(&pod).any(|claim| claim == object::name(object))
    })
}

fn claims_in(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = items(pod, &["spec", "volumes"]).iter();
    let claims = volumes.map(|volume| text(volume, &["persistentVolumeClaim", "claimName"]));
    claims.filter(|claim| !claim.is_empty())
}
