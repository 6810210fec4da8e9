//! A decision about the lifecycle of an object, as data.

use core::time::Duration;

use crate::graph::StateId;

/// The next step of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The object stays as it is.
    Stay(StayReason),
    /// The object moves: record the position, then start the work of the new state.
    Go(Go),
    /// The work of the current state starts, without a move.
    Run(Run),
    /// An attempt failed; a retry follows after the backoff.
    Retry {
        /// A trigger counts attempts, so this one is recorded.
        counted: bool,
    },
    /// The action has ended, and the object stays.
    End(Ending),
    /// The operator removes its finalizer.
    Release,
}

/// A transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Go {
    /// The state that the object enters.
    pub to: StateId,
    /// The edge that the object moves along.
    pub by: By,
    /// The reason for the transition.
    pub why: Why,
}

/// The edge of a transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Into the entry: the object is new.
    Entry,
    /// A child edge.
    Child,
    /// A trigger edge.
    Trigger,
    /// No declared edge: a jump to where the application already is.
    Jump,
    /// From a leaf into the entry again.
    Reentry,
}

impl By {
    /// Returns the word for metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Child => "child",
            Self::Trigger => "trigger",
            Self::Jump => "jump",
            Self::Reentry => "reentry",
        }
    }
}

/// The reason for a transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// The object is new.
    Created,
    /// Nothing was recorded, and the application was already in this state.
    Adopted,
    /// The application was observed elsewhere, or the observation named an event.
    Observed,
    /// The handler named the state.
    Handler,
    /// The handler answered Next, and no desired state leads on.
    Next,
    /// The desired state.
    DesiredState,
    /// The visit.
    Visit,
    /// A request for a visit.
    Request,
    /// The object is being deleted.
    Deletion,
    /// The time in the state is over.
    After,
    /// The action failed often enough, or permanently.
    OnError,
    /// An `on_delete` trigger.
    OnDelete,
    /// The revision changed.
    OnChange,
    /// The request was deleted.
    OnAbort,
}

impl Why {
    /// Returns the word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Adopted => "Adopted",
            Self::Observed => "Observed",
            Self::Handler => "Handler",
            Self::Next => "Next",
            Self::DesiredState => "DesiredState",
            Self::Visit => "Visit",
            Self::Request => "Request",
            Self::Deletion => "Deletion",
            Self::After => "After",
            Self::OnError => "OnError",
            Self::OnDelete => "OnDelete",
            Self::OnChange => "OnChange",
            Self::OnAbort => "OnAbort",
        }
    }
}

/// The reason why an object stays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StayReason {
    /// There is nothing to do until something changes.
    Settled,
    /// The action failed permanently; nothing happens until the spec changes.
    Failed,
    /// The action is running.
    Running,
    /// The action waits for its next attempt or call.
    Waiting,
    /// The object is paused; its next step waits until the pause ends.
    Paused,
    /// The loop guard delays the next transition by this time.
    LoopGuard(Duration),
    /// Nothing is recorded, and it is not known whether an application exists.
    Unsure,
    /// The graph does not have the state on record, and no observation shows where the application is.
    UnknownState,
}

/// The reason for starting work without a move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Run {
    /// The work was in flight when this process started: it runs under the same id.
    Resume,
    /// This process has recorded the work and not started it: it runs under the same id.
    Begin,
    /// The wait is over: the work runs under the same id.
    Again,
    /// The revision changed: the work runs under a new id.
    Changed,
    /// The work failed permanently, and the generation has changed since: it runs under the same id.
    Amended,
}

/// The end of an action that leads to no other state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// The action succeeded.
    Well,
    /// The action failed permanently.
    Failed,
    /// The action named a state that no edge leads to; [`StateId::UNKNOWN`] for a Next without a child.
    Refused(StateId),
}
