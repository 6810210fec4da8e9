//! The effects that a reconciliation asks for: requests, and the work of a state.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams};
use okt_core::decide::{Verdict, Why};
use okt_core::record::Recorded;
use okt_wire::object::{LifecycleObject, StatusOf, position_of};
use okt_wire::read;
use okt_wire::scope::merge_by;
use serde_json::Value;

use crate::reconcile::report::StatusPatch;

/// What a [`Reconciliation`](super::Reconciliation) asks for next.
///
/// It is complete: a new effect would be a breaking change, because nothing may be left undone.
#[derive(Debug)]
pub enum Effect<K: LifecycleObject> {
    /// Write the object: send the patch, and pass the answer to [`patched`](super::Reconciliation::patched).
    Write(Write<K>),
    /// Observe the application, and pass the observation to [`observed`](super::Reconciliation::observed).
    ///
    /// Where nothing can be observed, pass [`Observation::unobserved`](crate::Observation::unobserved).
    Observe,
    /// Do the work of the state on record, and pass its result to [`ended`](super::Reconciliation::ended).
    Work(Work<K>),
    /// Return: there is nothing to do before this time, unless an event comes; without a time, before an event.
    Rest(Option<Duration>),
}

/// A write of an object: of its finalizers, or of its status with the decision that led to it.
///
/// ```
/// # use kube::Api;
/// # use okt::LifecycleObject;
/// # use okt::lifecycle::{Reconciliation, Verdict, Write};
/// # async fn example<K: LifecycleObject>(api: Api<K>, widget: &mut Reconciliation<K>, write: Write<K>) -> kube::Result<()> {
/// let answer = write.send(&api, "widgets").await?;
/// if let Some(Verdict::Go(go)) = write.verdict() {
///     println!("{:?}, because {}", go.by, go.why.as_str());
/// }
/// widget.patched(answer)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Write<K: LifecycleObject> {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) content: WriteContent<K>,
}

#[derive(Debug)]
pub(super) enum WriteContent<K: LifecycleObject> {
    /// The finalizers.
    Finalizers(Value),
    /// The status, to be applied.
    Status {
        status: Box<StatusOf<K>>,
        record: Recorded,
        verdict: Verdict,
    },
    /// A merge patch that removes what others left in OKT's part of the status.
    Removal(Value),
}

impl<K: LifecycleObject> Write<K> {
    pub(super) fn of(meta: &ObjectMeta, content: WriteContent<K>) -> Self {
        Self {
            name: meta.name.clone().unwrap_or_default(),
            version: meta.resource_version.clone(),
            content,
        }
    }

    /// Sends the patch, for a field manager: the name of your controller. Returns the object in the answer.
    ///
    /// A status is applied (server-side apply) with force: OKT's fields belong to your controller, also where another
    /// manager had them before. Conditions of other types and other fields of the status stay.
    ///
    /// # Errors
    ///
    /// 409 if the object was changed since, and a retry helps with the newer version; 422 if the CRD does not have the
    /// transition, and 500 if it lacks a field of the status: then apply the CRD that [`crd`](crate::crd()) returns. The
    /// request is not sent if your extra fields are no struct.
    pub async fn send(&self, api: &Api<K>, field_manager: &str) -> kube::Result<K> {
        let merge = merge_by(field_manager);
        let name = &*self.name;
        match &self.content {
            WriteContent::Finalizers(patch) => api.patch(name, &merge, &Patch::Merge(patch)).await,
            WriteContent::Removal(patch) => {
                api.patch_status(name, &merge, &Patch::Merge(patch)).await
            }
            WriteContent::Status { status, .. } => {
                let apply = PatchParams::apply(field_manager).force();
                let patch = StatusPatch::of::<K>(self.version.as_deref(), &**status);
                api.patch_status(name, &apply, &Patch::Apply(patch)).await
            }
        }
    }

    /// Returns the status: position, trail, history, conditions and extra fields. None for a write of the finalizers,
    /// and for one that only removes what others left in the status.
    pub fn status(&self) -> Option<&StatusOf<K>> {
        match &self.content {
            WriteContent::Status { status, .. } => Some(status),
            WriteContent::Finalizers(_) | WriteContent::Removal(_) => None,
        }
    }

    /// Returns the decision that led to this status.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.content {
            WriteContent::Status { verdict, .. } => Some(verdict),
            WriteContent::Finalizers(_) | WriteContent::Removal(_) => None,
        }
    }

    /// Returns the record that this status stores.
    pub fn record(&self) -> Option<&Recorded> {
        match &self.content {
            WriteContent::Status { record, .. } => Some(record),
            WriteContent::Finalizers(_) | WriteContent::Removal(_) => None,
        }
    }
}

/// The work of the state on record; the context of your handlers.
///
/// The work may be repeated under one id (after a crash, or when its result was lost), so it must be idempotent by
/// [`id`](Self::id).
///
/// `work.state().dispatch(&handlers, &work).await` calls the method of the state, for handlers that implement the
/// generated trait with `type Context = Work<..>`.
#[derive(Clone, Debug)]
pub struct Work<K: LifecycleObject> {
    pub(super) object: Arc<K>,
    pub(super) state: K::State,
    pub(super) id: String,
    pub(super) attempt: u32,
    pub(super) resumed: bool,
}

impl<K: LifecycleObject> Work<K> {
    /// Returns the object as it is stored, with the status that records this work.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// Returns the state whose work this is.
    pub fn state(&self) -> K::State {
        self.state
    }

    /// Returns the id of this piece of work, the same after every restart; see [`Action::id`](crate::Action::id).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of this attempt, starting at 1; a hint, not part of the id.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns whether another process may have begun the work before.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Returns the cause of the move into this state; none if another writer wrote the history.
    pub fn cause(&self) -> Option<Why> {
        read::cause(position_of(&*self.object)?)
    }

    /// Returns whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }
}
