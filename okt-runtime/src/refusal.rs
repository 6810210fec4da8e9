//! What becomes of an object when the API server says no, or when the object does not decode.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::controller::Action as Again;
use kube::{Resource, ResourceExt};
use okt_core::conditions::bounded;
use okt_core::names::RESERVED;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::application::Application;
use crate::failure::chain;
use crate::guarded::Guarded;
use crate::memory::{Inner, Trouble};
use crate::object::LifecycleObject;
use crate::operator::Shared;
use crate::read;
use crate::report::{self, FIELD_MANAGER, Report};

/// How long after a conflict to look again, if the event that caused it has not come by then.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

impl Inner {
    /// How long a refused write still waits; not at all once the spec has changed.
    pub(crate) fn refused_for(&self, generation: Option<i64>) -> Option<Duration> {
        let (until, refused) = self.trouble.refused?;
        let left = until.saturating_duration_since(Instant::now());
        (Some(refused) == generation && !left.is_zero()).then_some(left)
    }
}

/// A write of metadata failed: try again later, the sooner the fewer went wrong.
pub(crate) fn unwritten<A: Application>(
    shared: &Shared<A>,
    object: &impl LifecycleObject,
    inner: &mut Inner,
    error: &kube::Error,
) -> Again {
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    match error {
        kube::Error::Api(status) if status.is_conflict() => Again::requeue(AFTER_CONFLICT),
        kube::Error::Api(status) if status.is_not_found() => Again::await_change(),
        _ => {
            inner.trouble.times = inner.trouble.times.saturating_add(1);
            let wait = shared.backoff.wait(inner.trouble.times, read::seed(uid));
            tracing::warn!(object = %object.name_any(), ?wait, "cannot write: {}", chain(error));
            Again::requeue(wait)
        }
    }
}

/// A write of the status failed; where the server refuses what it says, the conditions say so.
pub(crate) async fn of_status<A: Application>(
    shared: &Shared<A>,
    object: &A::Resource,
    inner: &mut Inner,
    report: &Report<'_, A::Resource>,
    error: &kube::Error,
) -> Again {
    let refused = match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 422 | 500) => {
            status.message.clone()
        }
        _ => return unwritten(shared, object, inner, error),
    };
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    inner.trouble.times = inner.trouble.times.saturating_add(1);
    let wait = shared.backoff.wait(inner.trouble.times, read::seed(uid));
    tracing::error!(object = %object.name_any(), ?wait, "the API server refuses a status: {refused}");
    inner.trouble.refused = Some((Instant::now() + wait, report.facts.generation));
    let mut status = object.status_of().cloned().unwrap_or_default();
    status.observed_generation = Some(report.facts.generation);
    let message = bounded(format!(
        "the API server refuses what the operator would write: {refused}; apply the CRD of this operator"
    ));
    status.conditions = stalled(
        "Refused",
        &message,
        &own(&status.conditions),
        report.now,
        Some(report.facts.generation),
    );
    match report::write(&shared.client, object, &status).await {
        Ok(written) => inner.seen = written.meta().resource_version.clone(),
        Err(error) => {
            tracing::warn!(object = %object.name_any(), "cannot show the refusal: {}", chain(&error));
        }
    }
    Again::requeue(wait)
}

/// The conditions that OKT itself writes on every object.
fn own(conditions: &[Condition]) -> Vec<Condition> {
    conditions
        .iter()
        .filter(|condition| RESERVED.contains(&condition.type_.as_str()))
        .cloned()
        .collect()
}

/// The conditions of an object that stands still: `Ready` False and `Stalled` True, the others as they were.
fn stalled(
    reason: &str,
    message: &str,
    before: &[Condition],
    now: Timestamp,
    generation: Option<i64>,
) -> Vec<Condition> {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let condition = |name: &str, status: &str| Condition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: before
            .iter()
            .find(|c| c.type_ == name && c.status == status)
            .map_or(Time(now), |c| c.last_transition_time.clone()),
    };
    let mut conditions = vec![condition("Ready", "False"), condition("Stalled", "True")];
    let kept = before
        .iter()
        .filter(|c| !matches!(c.type_.as_str(), "Ready" | "Stalled" | "Reconciling"));
    conditions.extend(kept.cloned());
    conditions
}

/// An object that does not decode is that object's failure: said in its conditions, once.
pub(crate) async fn undecodable<A: Application>(
    shared: &Arc<Shared<A>>,
    stored: &Guarded<A::Resource>,
    error: &str,
    inner: &mut Inner,
) -> Again {
    if inner.undecodable.as_deref() == Some(error) {
        return Again::await_change();
    }
    let name = stored.name_any();
    tracing::error!(object = %name, "cannot decode the object: {error}");
    match say_undecodable(shared, stored, error).await {
        Ok(version) => {
            inner.undecodable = Some(error.to_owned());
            inner.seen = version;
            inner.trouble = Trouble::default();
            Again::await_change()
        }
        Err(error) => {
            inner.trouble.times = inner.trouble.times.saturating_add(1);
            let uid = stored.meta().uid.as_deref().unwrap_or_default();
            tracing::warn!(object = %name, "cannot say so in its status: {}", chain(&error));
            Again::requeue(shared.backoff.wait(inner.trouble.times, read::seed(uid)))
        }
    }
}

/// Writes the conditions of an object that is only known as JSON; its position stays as it is.
async fn say_undecodable<A: Application>(
    shared: &Shared<A>,
    stored: &Guarded<A::Resource>,
    error: &str,
) -> Result<Option<String>, kube::Error> {
    let resource = ApiResource::erase::<A::Resource>(&());
    let api: Api<DynamicObject> = match stored.namespace() {
        Some(namespace) => Api::namespaced_with(shared.client.clone(), &namespace, &resource),
        None => Api::all_with(shared.client.clone(), &resource),
    };
    let name = stored.name_any();
    let raw = api.get(&name).await?;
    let conditions = raw
        .data
        .pointer("/status/conditions")
        .cloned()
        .and_then(|conditions| serde_json::from_value::<Vec<Condition>>(conditions).ok())
        .unwrap_or_default();
    let message = bounded(format!("the operator cannot read this object: {error}"));
    let generation = raw.metadata.generation;
    let said = conditions.iter().any(|c| {
        c.type_ == "Stalled"
            && c.reason == "Undecodable"
            && c.message == message
            && c.observed_generation == generation
    });
    if said {
        return Ok(raw.metadata.resource_version);
    }
    let conditions = stalled(
        "Undecodable",
        &message,
        &own(&conditions),
        shared.clock.now(),
        generation,
    );
    let mut status = json!({ "observedGeneration": generation, "conditions": conditions });
    if let Some(lifecycle) = raw.data.pointer("/status/lifecycle")
        && let Value::Object(status) = &mut status
    {
        status.insert("lifecycle".to_owned(), lifecycle.clone());
    }
    let body = json!({
        "apiVersion": A::Resource::api_version(&()),
        "kind": A::Resource::kind(&()),
        "metadata": { "name": name, "resourceVersion": raw.metadata.resource_version },
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let written = api
        .patch_status(&name, &params, &Patch::Apply(body))
        .await?;
    Ok(written.metadata.resource_version)
}
