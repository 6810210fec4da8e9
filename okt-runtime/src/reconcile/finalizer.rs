//! The finalizer that keeps an object until its application has reached a leaf.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Patch, PatchParams};
use okt_telemetry::Written;
use okt_telemetry::event::Occurrence;
use okt_wire::api_timeout::answer;
use okt_wire::keys::FINALIZER;
use okt_wire::object::LifecycleObject;
use okt_wire::scope::api_of;
use serde_json::{Value, json};

use crate::author::application::Application;
use crate::cache::guarded::Guarded;
use crate::reconcile::shared::Shared;

/// Returns whether the object has the finalizer.
pub(crate) fn is_set(meta: &ObjectMeta) -> bool {
    all(meta).iter().any(|name| name == FINALIZER)
}

/// Drops the finalizer of an object whose application is gone, or that a user abandoned.
///
/// # Errors
///
/// Those of the write; a retry helps.
pub(crate) async fn release<A: Application>(
    shared: &Shared<A>,
    meta: &ObjectMeta,
    state: Option<&'static str>,
    abandoned: bool,
) -> Result<(), kube::Error> {
    set::<A::Resource>(&shared.connection.direct, meta, &removal(meta)).await?;
    shared.telemetry.wrote(Written::Finalizer);
    tracing::info!(state, abandoned, "released");
    if abandoned {
        shared
            .telemetry
            .record::<A::Resource>(meta, Occurrence::Abandoned { state });
    }
    Ok(())
}

/// Returns the merge patch that adds the finalizer to an object.
pub(crate) fn addition(meta: &ObjectMeta) -> Value {
    let mut finalizers = all(meta).to_vec();
    finalizers.push(FINALIZER.to_owned());
    patch(meta, &finalizers)
}

/// Returns the merge patch that removes the finalizer from an object.
pub(crate) fn removal(meta: &ObjectMeta) -> Value {
    let other_names = all(meta).iter().filter(|name| *name != FINALIZER);
    let others: Vec<String> = other_names.cloned().collect();
    patch(meta, &others)
}

/// Returns the merge patch that sets the finalizers. It replaces the list, so it names the version from which the list
/// was read.
fn patch(meta: &ObjectMeta, finalizers: &[String]) -> Value {
    json!({
        "metadata": {
            "finalizers": finalizers,
            "resourceVersion": meta.resource_version,
        },
    })
}

fn all(meta: &ObjectMeta) -> &[String] {
    meta.finalizers.as_deref().unwrap_or_default()
}

/// Writes the finalizers by a patch; returns the object in the answer.
///
/// # Errors
///
/// 409 if the object was changed since: a retry helps with the newer version. 404 does not prove that the object is
/// gone; the cache shows when it is.
pub(crate) async fn set<K: LifecycleObject>(
    client: &Client,
    meta: &ObjectMeta,
    patch: &Value,
) -> Result<Guarded<K>, kube::Error> {
    let (api, name) = api_of::<Guarded<K>>(client, meta);
    answer(api.patch(name, &PatchParams::default(), &Patch::Merge(patch))).await
}
