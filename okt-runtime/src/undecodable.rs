//! An object that does not decode: it is that object's failure, said in its conditions.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use okt_core::conditions::bounded;
use okt_core::pass::Walk;
use okt_core::reasons;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::again::Again;
use crate::annotations;
use crate::application::{Application, StateOf};
use crate::cached::Cached;
use crate::finalizer;
use crate::guarded::api;
use crate::memory::{Inner, Trouble};
use crate::object::has_lifecycle;
use crate::patience::answer;
use crate::pruned;
use crate::refusal::{stalled, unwritten};
use crate::report::{AppliedMetadata, FIELD_MANAGER};
use crate::shared::Shared;

/// Says in the conditions of an object that it does not decode, once.
///
/// Where it is being deleted it can still be given up, and goes by itself if nothing was begun for it.
pub(crate) async fn undecodable<A: Application>(
    shared: &Arc<Shared<A>>,
    stored: &Cached<A::Resource>,
    error: &str,
    inner: &mut Inner,
) -> Again {
    let text = stored.text();
    // It was read from there before.
    let meta = &pruned::metadata(&text).unwrap_or_else(|_| stored.meta().clone());
    if let Some(wait) = inner.trouble.wait(meta) {
        return Again::after(wait);
    }
    let deleting = meta.deletion_timestamp.is_some();
    let abandoned = deleting && annotations::is_abandoned(meta);
    if abandoned || (deleting && is_untouched(shared, meta, &text)) {
        let released = finalizer::release(shared, meta, inner, "", abandoned).await;
        return match released {
            Ok(()) => Again::on_change(),
            Err(error) => unwritten(shared, meta, inner, &error),
        };
    }
    let news = Box::new((error.to_owned(), meta.generation));
    if inner.undecodable.as_ref() == Some(&news) {
        return Again::on_change();
    }
    let object = meta.name.as_deref().unwrap_or_default();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    tracing::error!(object, namespace, "cannot decode the object: {error}");
    match say(shared, meta, &text, error).await {
        Ok(version) => {
            inner.undecodable = Some(news);
            inner.seen = version;
            inner.trouble = Trouble::default();
            Again::on_change()
        }
        Err(error) => unwritten(shared, meta, inner, &error),
    }
}

/// Whether nothing was begun for an object: nothing is recorded of it, and it has nothing in the cluster.
fn is_untouched<A: Application>(shared: &Shared<A>, meta: &ObjectMeta, text: &str) -> bool {
    // A pass records nothing of what it has begun.
    let leaves_no_trace = shared.pass_graph().is_some_and(Walk::finalizes);
    has_lifecycle::<A::Resource>()
        && !leaves_no_trace
        && !shared.cluster.owns_anything(meta)
        && pruned::field(text, &["status", "recordedResources"]).is_none()
        && pruned::field(text, &["status", "lifecycle"]).is_none()
}

/// A status of which only the conditions are written: the position and the record of what is owned stay as they are.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: AppliedMetadata<'a>,
    status: SaidStatus<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SaidStatus<'a> {
    observed_generation: Option<i64>,
    conditions: &'a [Condition],
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_resources: Option<&'a RawValue>,
}

/// Writes the conditions; returns the version of the object that says so.
async fn say<A: Application>(
    shared: &Shared<A>,
    meta: &ObjectMeta,
    text: &str,
    error: &str,
) -> Result<Option<String>, kube::Error> {
    let conditions: Vec<Condition> = pruned::field(text, &["status", "conditions"])
        .and_then(|conditions| serde_json::from_str(conditions).ok())
        .unwrap_or_default();
    let way_out = if meta.deletion_timestamp.is_some() {
        " and cannot end it; to drop the finalizer all the same, annotate it with okt.dev/abandon: <its uid>"
    } else {
        ""
    };
    let message = bounded(format!(
        "the operator cannot read this object{way_out}: {error}"
    ));
    let is_said = conditions.iter().any(|c| {
        c.type_ == "Stalled"
            && c.reason == reasons::UNDECODABLE
            && c.message == message
            && c.observed_generation == meta.generation
    });
    if is_said {
        return Ok(meta.resource_version.clone());
    }
    let (now, why) = (shared.clock.now(), (reasons::UNDECODABLE, message.as_str()));
    let conditions = stalled::<StateOf<A>>(meta, why, &conditions, now, shared.pass_graph());
    let kept = |name: &str| {
        let text = pruned::field(text, &["status", name])?;
        serde_json::from_str(text).ok()
    };
    let said = Said {
        api_version: &A::Resource::api_version(&()),
        kind: &A::Resource::kind(&()),
        metadata: AppliedMetadata {
            resource_version: meta.resource_version.as_deref(),
        },
        status: SaidStatus {
            observed_generation: meta.generation,
            conditions: &conditions,
            lifecycle: kept("lifecycle"),
            recorded_resources: kept("recordedResources"),
        },
    };
    let api = api::<Cached<A::Resource>>(&shared.client, meta.namespace.as_deref());
    let name = meta.name.as_deref().unwrap_or_default();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let written = answer(api.patch_status(name, &params, &Patch::Apply(said))).await?;
    Ok(written.meta().resource_version.clone())
}
