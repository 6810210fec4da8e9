//! What becomes of an object when the API server says no, or when the object does not decode.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use okt_core::Lifecycle;
use okt_core::conditions::bounded;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::again::Again;
use crate::annotations;
use crate::application::{Application, StateOf};
use crate::cached::Cached;
use crate::change::{Change, PassOf, change};
use crate::failure::chain;
use crate::finalizer;
use crate::memory::{Inner, Trouble};
use crate::no_lifecycle::has_lifecycle;
use crate::object::LifecycleObject;
use crate::patience::answer;
use crate::read;
use crate::report::{self, FIELD_MANAGER};
use crate::shared::Shared;

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

/// A write failed: try again later, the sooner the fewer went wrong.
pub(crate) fn unwritten<A: Application>(
    shared: &Shared<A>,
    meta: &ObjectMeta,
    inner: &mut Inner,
    error: &kube::Error,
) -> Again {
    match error {
        kube::Error::Api(status) if status.is_conflict() => Again::after(AFTER_CONFLICT),
        kube::Error::Api(status) if status.is_not_found() => Again::on_change(),
        _ => {
            let wait = next_wait(shared, meta, inner);
            let object = meta.name.as_deref().unwrap_or_default();
            tracing::warn!(object, ?wait, "cannot write: {}", said(error));
            Again::after(wait)
        }
    }
}

/// What went wrong, without all that comes with an answer of the API.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        error => chain(error),
    }
}

fn next_wait<A: Application>(shared: &Shared<A>, meta: &ObjectMeta, inner: &mut Inner) -> Duration {
    inner.trouble.times = inner.trouble.times.saturating_add(1);
    let seed = read::seed(meta.uid.as_deref().unwrap_or_default());
    shared.backoff.wait(inner.trouble.times, seed)
}

/// A write of the status failed; where the server refuses what it says, the conditions say so, once.
pub(crate) async fn of_status<A: Application>(
    shared: &Shared<A>,
    inner: &mut Inner,
    object: &A::Resource,
    error: &kube::Error,
) -> Again {
    let generation = object.meta().generation.unwrap_or(0);
    let refused = match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 422 | 500) => &status.message,
        _ => return unwritten(shared, object.meta(), inner, error),
    };
    let wait = next_wait(shared, object.meta(), inner);
    tracing::error!(object = %object.name_any(), ?wait, "the API server refuses a status: {refused}");
    inner.trouble.refused = Some((Instant::now() + wait, generation));
    let mut status = object.status_of().cloned().unwrap_or_default();
    status.observed_generation = Some(generation);
    let message = bounded(format!(
        "the API server refuses what the operator would write: {refused}; apply the CRD of this operator"
    ));
    let before = std::mem::take(&mut status.conditions);
    let why = ("Refused", message.as_str());
    let now = shared.clock.now();
    let pass = shared.pass_graph();
    status.conditions = stalled::<StateOf<A>>(object.meta(), why, &before, now, pass);
    if change(object, &status, pass) == Change::None {
        return Again::after(wait);
    }
    match report::write(&shared.client, object, &status, &shared.backdoor).await {
        Ok(written) => inner.seen.clone_from(&written.meta().resource_version),
        Err(error) => {
            tracing::warn!(object = %object.name_any(), "cannot show the refusal: {}", said(&error));
        }
    }
    Again::after(wait)
}

/// The conditions of an object that stands still for a reason outside its graph: `Ready` False and
/// `Stalled` True, the declared ones as they were.
fn stalled<S: Lifecycle>(
    meta: &ObjectMeta,
    (reason, message): (&str, &str),
    before: &[Condition],
    now: Timestamp,
    pass: PassOf,
) -> Vec<Condition> {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let condition = |name: &str, status: &str, reason: &str, message: &str| Condition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: meta.generation,
        last_transition_time: (before.iter())
            .find(|c| c.type_ == name && c.status == status)
            .map_or(Time(now), |c| c.last_transition_time.clone()),
    };
    let (deleting, paused) = (
        match meta.deletion_timestamp {
            Some(_) => ("True", "Deleting"),
            None => ("False", "NotDeleting"),
        },
        if annotations::is_paused(meta) {
            ("True", "Paused")
        } else {
            ("False", "NotPaused")
        },
    );
    let mut conditions = vec![
        condition("Ready", "False", reason, message),
        condition("Stalled", "True", reason, message),
        condition("Deleting", deleting.0, deleting.1, ""),
        condition("Paused", paused.0, paused.1, ""),
    ];
    let states = S::GRAPH.states.iter();
    let states = states.chain(pass.iter().flat_map(|pass| pass.states));
    for declared in states.flat_map(|state| state.conditions) {
        if conditions.iter().any(|c| c.type_ == declared.name) {
            continue;
        }
        conditions.push(match before.iter().find(|c| c.type_ == declared.name) {
            Some(before) => Condition {
                observed_generation: meta.generation,
                ..before.clone()
            },
            None => condition(declared.name, "Unknown", reason, ""),
        });
    }
    conditions
}

/// An object that does not decode is that object's failure: said in its conditions, once.
///
/// Where it is being deleted, it can still be given up, and goes by itself if nothing was recorded of it.
pub(crate) async fn undecodable<A: Application>(
    shared: &Arc<Shared<A>>,
    stored: &Cached<A::Resource>,
    error: &str,
    inner: &mut Inner,
) -> Again {
    let meta = &stored.metadata();
    let deleting = meta.deletion_timestamp.is_some();
    if deleting && annotations::is_abandoned(meta) {
        return finalizer::release(shared, meta, inner, "", true).await;
    }
    let news = Box::new((error.to_owned(), meta.generation));
    if inner.undecodable.as_ref() == Some(&news) {
        return Again::on_change();
    }
    let name = stored.name_any();
    tracing::error!(object = %name, "cannot decode the object: {error}");
    let api = untyped(shared, stored);
    let raw = match answer(api.get(&name)).await {
        Ok(raw) => raw,
        Err(error) => return unwritten(shared, meta, inner, &error),
    };
    // A pass records nothing, and only an object that decoded has a finalizer for it.
    let unrecorded = raw.data.pointer("/status/lifecycle").is_none();
    if deleting && unrecorded && has_lifecycle::<A::Resource>() {
        return finalizer::release(shared, meta, inner, "", false).await;
    }
    match say_undecodable(shared, &api, &raw, error).await {
        Ok(version) => {
            inner.undecodable = Some(news);
            inner.seen = version;
            inner.trouble = Trouble::default();
            Again::on_change()
        }
        Err(error) => unwritten(shared, meta, inner, &error),
    }
}

/// The API for an object that is only known as JSON.
fn untyped<A: Application>(shared: &Shared<A>, stored: &Cached<A::Resource>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<A::Resource>(&());
    match stored.namespace() {
        Some(namespace) => Api::namespaced_with(shared.client.clone(), &namespace, &resource),
        None => Api::all_with(shared.client.clone(), &resource),
    }
}

/// Writes the conditions of an object that is only known as JSON; its position stays as it is.
async fn say_undecodable<A: Application>(
    shared: &Shared<A>,
    api: &Api<DynamicObject>,
    raw: &DynamicObject,
    error: &str,
) -> Result<Option<String>, kube::Error> {
    let conditions = raw
        .data
        .pointer("/status/conditions")
        .cloned()
        .and_then(|conditions| serde_json::from_value::<Vec<Condition>>(conditions).ok())
        .unwrap_or_default();
    let way_out = if raw.metadata.deletion_timestamp.is_some() {
        " and cannot end it; to drop the finalizer all the same, annotate it with okt.dev/abandon: <its uid>"
    } else {
        ""
    };
    let message = bounded(format!(
        "the operator cannot read this object{way_out}: {error}"
    ));
    let generation = raw.metadata.generation;
    let said = conditions.iter().any(|c| {
        c.type_ == "Stalled"
            && c.reason == "Undecodable"
            && c.message == message
            && c.observed_generation == generation
    });
    if said {
        return Ok(raw.metadata.resource_version.clone());
    }
    let (now, why) = (shared.clock.now(), ("Undecodable", message.as_str()));
    let conditions =
        stalled::<StateOf<A>>(&raw.metadata, why, &conditions, now, shared.pass_graph());
    let mut status = json!({ "observedGeneration": generation, "conditions": conditions });
    if let Some(lifecycle) = raw.data.pointer("/status/lifecycle")
        && let Value::Object(status) = &mut status
    {
        status.insert("lifecycle".to_owned(), lifecycle.clone());
    }
    let body = json!({
        "apiVersion": A::Resource::api_version(&()),
        "kind": A::Resource::kind(&()),
        "metadata": {
            "name": raw.metadata.name,
            "resourceVersion": raw.metadata.resource_version,
        },
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let name = raw.name_any();
    let written = answer(api.patch_status(&name, &params, &Patch::Apply(body))).await?;
    Ok(written.metadata.resource_version)
}
