//! The annotations with which users control the operator: pause and abandon.

use crate::keys::{ABANDON_ANNOTATION, PAUSED_ANNOTATION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Returns whether a user paused the object; its deletion continues nevertheless.
pub fn is_paused(meta: &ObjectMeta) -> bool {
    annotation(meta, PAUSED_ANNOTATION) == Some("true")
}

/// Returns whether a user abandoned the object, by its own uid.
pub fn is_abandoned(meta: &ObjectMeta) -> bool {
    let named = annotation(meta, ABANDON_ANNOTATION);
    named.is_some() && named == meta.uid.as_deref()
}

fn annotation<'m>(meta: &'m ObjectMeta, name: &str) -> Option<&'m str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}
