//! Ids of traces, and references to objects: what events, deliveries and spans have in common.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

use crate::wire::object::LifecycleObject;
use crate::wire::read::hex;

/// Returns the id of the trace that a generation of an object's spec is, as 32 hexadecimal digits, and the id of its
/// first span, as 16.
pub(crate) fn trace_ids(uid: &str, generation: i64) -> (String, String) {
    let mut trace = digits(&format!("{uid}/{generation}"), 24);
    let first = trace.split_off(32);
    (trace, first)
}

/// Returns a hash of a text, as many bytes of it in hexadecimal digits.
pub(crate) fn digits(text: &str, bytes: usize) -> String {
    hex(&Sha256::digest(text)[..bytes])
}

/// Returns a full reference to an object.
pub(crate) fn reference<K: LifecycleObject>(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}
