//! Decides which changes of an object lead to a reconciliation, if the operator has a predicate.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_wire::annotations::{is_abandoned, is_paused};
use okt_wire::pruned::field;

use crate::author::application::{Application, revision_of};
use crate::cache::cached::Cached;

/// A property of an object, as a hash; none if the object does not have it.
pub(crate) type Property<K> = Arc<dyn Fn(&K) -> Option<u64> + Send + Sync>;

/// Returns whether a new version of an object differs in something that OKT decides by, or in the property.
pub(super) fn is_news<A: Application>(
    property: &(dyn Fn(&A::Resource) -> Option<u64> + Send + Sync),
    before: &Cached<A::Resource>,
    after: &Cached<A::Resource>,
) -> bool {
    let essence = |meta: &ObjectMeta| {
        let ObjectMeta {
            uid,
            generation,
            deletion_timestamp,
            finalizers,
            ..
        } = meta.clone();
        (uid, generation, deletion_timestamp, finalizers)
    };
    if essence(before.meta()) != essence(after.meta()) {
        return true;
    }
    let (old, new) = (before.text(), after.text());
    if field(&old, &["status"]) != field(&new, &["status"]) {
        return true;
    }
    let (Ok(old), Ok(new)) = (before.read(), after.read()) else {
        return true;
    };
    let marks = |meta: &ObjectMeta| (is_paused(meta), is_abandoned(meta));
    if marks(old.meta()) != marks(new.meta()) {
        return true;
    }
    let differs = || {
        let value = property(&new);
        value.is_none()
            || value != property(&old)
            || revision_of::<A>(&old) != revision_of::<A>(&new)
    };
    // Code of the application that panics hides nothing; the reconciliation logs a `revision` that panics.
    std::panic::catch_unwind(AssertUnwindSafe(differs)).unwrap_or(true)
}
