//! The record of something that happened to an object.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;
pub use okt_core::decide::{By as Edge, Why as Cause};
use okt_wire::status::Transition;

use super::ids::trace_ids;

/// Something that happened to an object, for a [`Sink`](crate::sinks::Sink).
///
/// The operator makes one for each [`Occurrence`], in the order in which they happen to the object.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct LifecycleEvent {
    /// The object: its API version, kind, namespace, name and uid.
    pub object: ObjectReference,
    /// The generation of the object's spec.
    pub generation: i64,
    /// When it happened, by the operator's clock.
    pub at: Timestamp,
    /// What happened.
    pub occurrence: Occurrence,
}

impl LifecycleEvent {
    /// Returns the id of the trace that the event belongs to, as 32 hexadecimal digits: all that follows from one
    /// generation of the object's spec is one trace.
    ///
    /// It is computed from the uid and the generation, so it is the same after a restart and in every process.
    pub fn trace_id(&self) -> String {
        let uid = self.object.uid.as_deref().unwrap_or_default();
        trace_ids(uid, self.generation).0.to_string()
    }
}

/// What happened to an object.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Occurrence {
    /// The object has entered a state, and its status says so.
    Transition {
        /// The transition as the history has it; with the uid of the object its number is unique.
        transition: Transition,
        /// The kind of edge.
        edge: Edge,
        /// The cause.
        cause: Cause,
        /// How long the object was in the state before; none for the first transition.
        time_in_state: Option<Duration>,
        /// The reason of the [`Trouble`](Self::Trouble) that the status reports newly with this transition; that follows.
        trouble: Option<String>,
        /// The id of the work of the new state; none in an idle one.
        action: Option<String>,
    },
    /// An attempt of an action begins; the status has the id of the action. A handler that answered `Wait` is called
    /// again in the same attempt.
    AttemptStarted {
        /// The attempt.
        attempt: Attempt,
        /// Whether the action was in flight before this process, or before this replica got the object.
        resumed: bool,
    },
    /// An attempt has ended, and the operator has recorded what follows from it.
    ///
    /// There is none for an attempt that was in flight when the process ended: the action is resumed.
    AttemptEnded {
        /// The attempt.
        attempt: Attempt,
        /// The result.
        outcome: Outcome,
        /// How long the attempt took, with the time that the handler waited after it answered `Wait`.
        took: Duration,
    },
    /// The next attempt of an action is scheduled.
    AttemptScheduled {
        /// The next attempt.
        attempt: Attempt,
        /// When it begins: after this time, or earlier if something calls for it.
        after: Duration,
    },
    /// The status reports something that a person should look at: the object has stalled, an attempt has failed, a name
    /// belongs to another owner.
    ///
    /// It is reported once for each reason, until the reason changes.
    Trouble {
        /// The reason of the condition or failure: one word, from OKT (`docs/conditions.md`) or from your handler.
        reason: String,
        /// The details.
        message: String,
    },
    /// A Kubernetes [`Event`]: that of your code with [`Context::event`](https://docs.rs/okt/latest/okt/struct.Context.html#method.event),
    /// or a repair of a resource that another client had changed or deleted (reason `ResourceChanged` or
    /// `ResourceDeleted`).
    Published(Event),
    /// The object was released although its deletion had not ended, because a user abandoned it.
    Abandoned {
        /// The state that it was in; none if it was in no known state.
        state: Option<&'static str>,
    },
}

/// One attempt of an action.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The id of the action: the same for all its attempts.
    pub id: String,
    /// The number of the attempt, starting at 1.
    pub number: u32,
    /// The state whose action it is.
    pub state: &'static str,
}

impl Attempt {
    /// Creates an attempt, which a test of a sink needs too.
    pub fn new(id: impl Into<String>, number: u32, state: &'static str) -> Self {
        Self {
            id: id.into(),
            number,
            state,
        }
    }
}

/// The result of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The action is done.
    Succeeded,
    /// The attempt failed.
    Failed {
        /// The reason, one word.
        reason: String,
        /// The details.
        message: String,
        /// Whether a retry does not help.
        permanent: bool,
    },
    /// The handler named a state that no edge leads to.
    Refused {
        /// The state that it named; none for a Next without a child.
        to: Option<&'static str>,
    },
    /// The operator cancelled the attempt, because the object left the state or is gone.
    Cancelled,
}

impl Outcome {
    /// Returns the word of this outcome in metrics and logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Refused { .. } => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A Kubernetes Event about the object that your code acts upon, for [`Context::event`](https://docs.rs/okt/latest/okt/struct.Context.html#method.event).
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    pub(crate) type_: EventType,
    pub(crate) reason: String,
    pub(crate) action: String,
    pub(crate) note: String,
    pub(crate) related: Option<ObjectReference>,
}

impl Event {
    /// Creates an event about something that is as it should be.
    ///
    /// `reason` says why, as one word such as `BackupTaken`; `action` what your code did, such as `Backup`; each at most
    /// 128 bytes, the `note` at most 1,024: longer texts are cut.
    /// Kubernetes merges events of an object with the same reason, action and related object, whatever their notes say:
    /// the first note stays.
    pub fn normal(
        reason: impl Into<String>,
        action: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        Self {
            type_: EventType::Normal,
            reason: reason.into(),
            action: action.into(),
            note: note.into(),
            related: None,
        }
    }

    /// Creates an event about something that is not as it should be; otherwise as [`normal`](Self::normal).
    ///
    /// Return a [`Failure`](https://docs.rs/okt/latest/okt/struct.Failure.html) where your work fails: the operator publishes that itself.
    pub fn warning(
        reason: impl Into<String>,
        action: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        Self {
            type_: EventType::Warning,
            ..Self::normal(reason, action, note)
        }
    }

    /// Names another object that the event is about too.
    #[must_use]
    pub fn related(mut self, object: ObjectReference) -> Self {
        self.related = Some(object);
        self
    }
}
