//! The finalizer that keeps an object until its application has reached a leaf.

use kube::api::{Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::guarded::{Guarded, api};
use crate::object::LifecycleObject;

/// The finalizer.
pub const FINALIZER: &str = "okt.dev/lifecycle";

/// Whether the object carries the finalizer.
pub(crate) fn is_set<K: LifecycleObject>(object: &K) -> bool {
    object.finalizers().iter().any(|name| name == FINALIZER)
}

/// Adds the finalizer, and gives the object as it is then.
///
/// # Errors
///
/// 409 where the object was changed since: look again.
pub(crate) async fn add<K: LifecycleObject>(client: &Client, object: &K) -> Result<K, kube::Error> {
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(FINALIZER.to_owned());
    let written = set(client, object, &finalizers).await?;
    // The object decoded before, and only its finalizers have changed.
    Ok(written.into_inner().unwrap_or_else(|_| object.clone()))
}

/// Removes the finalizer; an object that is gone already is fine.
///
/// # Errors
///
/// 409 where the object was changed since: look again.
pub(crate) async fn remove<K: LifecycleObject>(
    client: &Client,
    object: &K,
) -> Result<(), kube::Error> {
    let finalizers: Vec<String> = (object.finalizers().iter())
        .filter(|name| *name != FINALIZER)
        .cloned()
        .collect();
    match set(client, object, &finalizers).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// A merge patch replaces the list, so it names the version that the list was read from.
async fn set<K: LifecycleObject>(
    client: &Client,
    object: &K,
    finalizers: &[String],
) -> Result<Guarded<K>, kube::Error> {
    let patch = json!({
        "metadata": {
            "finalizers": finalizers,
            "resourceVersion": object.resource_version(),
        },
    });
    api::<K>(client, object.namespace().as_deref())
        .patch(
            &object.name_any(),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await
}
