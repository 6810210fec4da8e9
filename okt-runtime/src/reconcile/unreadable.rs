//! An object that is not acted upon, because it does not decode or the application refuses it: its conditions report it,
//! and it can still be abandoned.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use kube::core::ApiResource;
use okt_core::conditions::bounded;
use okt_core::machine::{Decision, Effect, Object, Readable, Requeue, ShowUnreadable};
use okt_core::pass::PassRun;
use okt_core::reasons;
use okt_telemetry::Written;
use okt_telemetry::event::Occurrence;
use okt_wire::api_timeout::answer;
use okt_wire::clock::moment;
use okt_wire::object::has_lifecycle;
use okt_wire::pruned;
use okt_wire::read;
use okt_wire::scope::api;
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::stalled;
use super::reading;
use crate::author::application::{Application, StateOf};
use crate::cache::arrived::Arrived;
use crate::cache::cached::Cached;
use crate::reconcile::finalizer;
use crate::reconcile::memory::{Known, Remembered};
use crate::reconcile::report::{FIELD_MANAGER, StatusPatch};
use crate::reconcile::shared::Shared;

/// An object that is not acted upon.
struct Unreadable<'a> {
    meta: ObjectMeta,
    text: String,
    reason: &'static str,
    error: &'a str,
}

/// Reconciles an object that is not acted upon; returns when to requeue it.
pub(super) async fn reconcile<A: Application>(
    shared: &Shared<A>,
    cached: &Cached<A::Resource>,
    (reason, error): (&'static str, &str),
    known: &Known,
    memory: &mut Remembered,
) -> Requeue {
    let text = cached.text();
    let meta = pruned::field(&text, &["metadata"]).and_then(|it| serde_json::from_str(it).ok());
    let object = Unreadable {
        // The cache has read it from this text before.
        meta: meta.unwrap_or_else(|| cached.meta().clone()),
        text,
        reason,
        error,
    };
    let (setup, uid) = (
        shared.setup(),
        object.meta.uid.as_deref().unwrap_or_default(),
    );
    let read = Object {
        readable: Readable::No {
            error: read::hash(error),
            untouched: object.is_untouched(shared),
        },
        ..reading::read_meta(&object.meta)
    };
    memory.machine.read(&read, moment());
    loop {
        known.catch_up(memory);
        let operator = shared.operator(uid);
        let effect = match memory.machine.decide(&setup, operator, moment()) {
            Decision::Rest(requeue) => return requeue,
            Decision::Do(effect) => effect,
        };
        match effect {
            Effect::DropFinalizer(effect) => {
                let abandoned = effect.abandoned;
                match finalizer::release(shared, &object.meta, None, abandoned).await {
                    Ok(()) => memory.machine.finalizer_dropped(effect),
                    Err(error) => memory.write_failed(&setup, effect, &error),
                }
            }
            Effect::ShowUnreadable(effect) => object.report(shared, effect, memory).await,
            Effect::Cancel(effect) => {
                memory.work.cancel(effect.task);
                memory.machine.cancelled(effect);
            }
            // The machine asks for no other effect for an object that is not acted upon.
            other => {
                memory.machine.not_done(other);
                return Requeue::soon();
            }
        }
    }
}

impl Unreadable<'_> {
    /// Returns whether nothing was begun for the object: it has no record, and owns nothing in the cluster.
    fn is_untouched<A: Application>(&self, shared: &Shared<A>) -> bool {
        // A pass does not record what it has begun.
        let leaves_no_trace = shared.pass_graph().is_some_and(PassRun::finalizes);
        has_lifecycle::<A::Resource>()
            && !leaves_no_trace
            && !shared.cluster.owns_anything(&self.meta)
            && pruned::field(&self.text, &["status", "recordedResources"]).is_none()
            && pruned::field(&self.text, &["status", "lifecycle"]).is_none()
    }

    /// Reports in the conditions that the object is not acted upon.
    async fn report<A: Application>(
        &self,
        shared: &Shared<A>,
        effect: ShowUnreadable,
        memory: &mut Remembered,
    ) {
        tracing::error!(reason = self.reason, "not acted upon: {}", self.error);
        match self.write(shared).await {
            Ok(meta) => memory
                .machine
                .unreadable_shown(effect, read::version(&meta)),
            Err(error) => memory.write_failed(&shared.setup(), effect, &error),
        }
    }

    /// Writes the conditions, unless the object has them; returns the metadata of the object that has them.
    async fn write<A: Application>(&self, shared: &Shared<A>) -> Result<ObjectMeta, kube::Error> {
        let Self {
            meta,
            text,
            reason,
            error,
        } = self;
        let conditions: Vec<Condition> = pruned::field(text, &["status", "conditions"])
            .and_then(|conditions| serde_json::from_str(conditions).ok())
            .unwrap_or_default();
        let way_out = if meta.deletion_timestamp.is_some() {
            " and cannot delete it; to remove the finalizer anyway, annotate it with okt.dev/abandon: <its uid>"
        } else {
            ""
        };
        let what = if *reason == reasons::INVALID {
            "the operator does not act upon this object"
        } else {
            "the operator cannot read this object"
        };
        let message = bounded(format!("{what}{way_out}: {error}"));
        let is_reported = conditions.iter().any(|c| {
            c.type_ == "Stalled"
                && c.reason == *reason
                && c.message == message
                && c.observed_generation == meta.generation
        });
        if is_reported {
            return Ok(meta.clone());
        }
        let (now, why) = (shared.clock.now(), (*reason, message.as_str()));
        let conditions = stalled::<StateOf<A>>(meta, why, &conditions, now, shared.pass_graph());
        let kept = |name: &str| {
            let text = pruned::field(text, &["status", name])?;
            serde_json::from_str(text).ok()
        };
        let status = AppliedStatus {
            observed_generation: meta.generation,
            conditions: &conditions,
            lifecycle: kept("lifecycle"),
            recorded_resources: kept("recordedResources"),
        };
        let version = meta.resource_version.as_deref();
        let patch = StatusPatch::of::<A::Resource>(version, &status);
        let direct = &shared.connection.direct;
        let kind = ApiResource::erase::<A::Resource>(&());
        let api = api::<Arrived>(direct, meta.namespace.as_deref(), &kind);
        let name = meta.name.as_deref().unwrap_or_default();
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let written = answer(api.patch_status(name, &params, &Patch::Apply(patch))).await?;
        shared.telemetry.wrote(Written::Status);
        let trouble = Occurrence::Trouble {
            reason: (*reason).to_owned(),
            message: error.to_string(),
        };
        shared.telemetry.record::<A::Resource>(meta, trouble);
        Ok(written.meta().clone())
    }
}

/// A status with new conditions: the position and the record of the owned resources stay as they are.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppliedStatus<'a> {
    observed_generation: Option<i64>,
    conditions: &'a [Condition],
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_resources: Option<&'a RawValue>,
}
