//! The effects that a reconciliation asks for: requests, and the work of a state.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use okt_core::decide::{Verdict, Why};
use okt_core::record::Recorded;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::reconcile::report::StatusPatch;
use crate::wire::object::LifecycleObject;
use crate::wire::read;
use crate::wire::status::Status;

/// What a [`Reconciliation`](super::Reconciliation) asks for next.
///
/// It is complete: a new effect would be a breaking change, because nothing may be left undone.
#[derive(Debug)]
pub enum Effect<K: LifecycleObject> {
    /// Add the finalizer: send the patch to the object, and pass the answer to
    /// [`patched`](super::Reconciliation::patched).
    AddFinalizer(Patch<Value>),
    /// Observe the application, and pass the observation to [`observed`](super::Reconciliation::observed).
    ///
    /// Where nothing can be observed, pass [`Observation::unobserved`](crate::Observation::unobserved).
    Observe,
    /// Write the status: send the patch to the subresource `status`, and pass the answer to
    /// [`patched`](super::Reconciliation::patched).
    WriteStatus(StatusWrite<K>),
    /// Do the work of the state on record, and pass its result to [`ended`](super::Reconciliation::ended).
    Work(Work<K>),
    /// Remove the finalizer, because the application is gone: send the patch to the object, and pass the answer to
    /// [`patched`](super::Reconciliation::patched).
    RemoveFinalizer(Patch<Value>),
    /// Return: there is nothing to do before this time, unless an event comes; without a time, before an event.
    Rest(Option<Duration>),
}

/// A status to write, and the decision that led to it.
///
/// ```
/// # use kube::Api;
/// # use okt::LifecycleObject;
/// # use okt::lifecycle::{Reconciliation, StatusWrite, Verdict};
/// # async fn example<K: LifecycleObject>(api: Api<K>, name: &str, widget: &mut Reconciliation<K>, write: StatusWrite<K>) -> Result<(), Box<dyn std::error::Error>> {
/// let answer = api.patch_status(name, &write.params("widgets"), &write.patch()).await?;
/// if let Some(Verdict::Go(go)) = write.verdict() {
///     println!("{name}: {:?}, because {}", go.by, go.why.as_str());
/// }
/// widget.patched(answer)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StatusWrite<K: LifecycleObject> {
    pub(super) version: Option<String>,
    pub(super) content: Content<K>,
}

#[derive(Debug)]
pub(super) enum Content<K: LifecycleObject> {
    /// The status, to be applied.
    Status {
        status: Box<Status<K::State, K::Extra>>,
        record: Recorded,
        verdict: Verdict,
    },
    /// A merge patch that removes what others left in OKT's part of the status.
    Removal(Value),
}

impl<K: LifecycleObject> StatusWrite<K> {
    pub(super) fn removal(patch: Value) -> Self {
        Self {
            version: None,
            content: Content::Removal(patch),
        }
    }

    /// Returns the parameters of the request, for a field manager: the name of your controller.
    ///
    /// A status is applied (server-side apply) with force: OKT's fields belong to your controller, also where another
    /// manager had them before. Conditions of other types and other fields of the status stay.
    pub fn params(&self, field_manager: &str) -> PatchParams {
        match self.content {
            Content::Status { .. } => PatchParams::apply(field_manager).force(),
            Content::Removal(_) => PatchParams {
                field_manager: Some(field_manager.to_owned()),
                ..PatchParams::default()
            },
        }
    }

    /// Returns the patch.
    ///
    /// # Errors
    ///
    /// The request fails with 409 if the object was changed since, and a retry helps with the newer version; with 422 if
    /// the CRD does not have the transition, and with 500 if it lacks a field of the status: then apply the CRD that
    /// [`crd`](crate::crd()) returns. It fails before it is sent if your extra fields are no struct.
    pub fn patch(&self) -> Patch<impl Serialize + Debug> {
        match self.content {
            Content::Status { .. } => Patch::Apply(Body(self)),
            Content::Removal(_) => Patch::Merge(Body(self)),
        }
    }

    /// Returns the status: position, trail, history, conditions and extra fields. None if the patch only removes what
    /// others left in the status.
    pub fn status(&self) -> Option<&Status<K::State, K::Extra>> {
        match &self.content {
            Content::Status { status, .. } => Some(status),
            Content::Removal(_) => None,
        }
    }

    /// Returns the decision that led to this status.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.content {
            Content::Status { verdict, .. } => Some(verdict),
            Content::Removal(_) => None,
        }
    }

    /// Returns the record that this status stores.
    pub fn record(&self) -> Option<&Recorded> {
        match &self.content {
            Content::Status { record, .. } => Some(record),
            Content::Removal(_) => None,
        }
    }
}

/// The body of a patch.
#[derive(Debug)]
struct Body<'a, K: LifecycleObject>(&'a StatusWrite<K>);

impl<K: LifecycleObject> Serialize for Body<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.content {
            Content::Status { status, .. } => {
                let version = self.0.version.as_deref();
                StatusPatch::of::<K>(version, &**status).serialize(serializer)
            }
            Content::Removal(patch) => patch.serialize(serializer),
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
        read::cause(self.object.status_of()?.lifecycle.as_ref()?)
    }

    /// Returns whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }
}
