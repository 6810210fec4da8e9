//! What people say to the operator by annotations: pause, and give up.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Pauses an object: `okt.dev/paused: "true"`.
pub const PAUSED_ANNOTATION: &str = "okt.dev/paused";

/// Gives an object up while it is being deleted: `okt.dev/abandon: <its uid>`.
pub const ABANDON_ANNOTATION: &str = "okt.dev/abandon";

/// Whether somebody has paused the object; deletion goes on all the same.
pub(crate) fn is_paused(meta: &ObjectMeta) -> bool {
    annotation(meta, PAUSED_ANNOTATION) == Some("true")
}

/// Whether somebody has given the object up, by its own uid.
pub(crate) fn is_abandoned(meta: &ObjectMeta) -> bool {
    let named = annotation(meta, ABANDON_ANNOTATION);
    named.is_some() && named == meta.uid.as_deref()
}

fn annotation<'m>(meta: &'m ObjectMeta, name: &str) -> Option<&'m str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}
