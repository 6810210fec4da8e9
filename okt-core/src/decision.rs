//! What a lifecycle asks for: a decision, as data.

use core::time::Duration;

use crate::graph::StateId;

/// What is to be done with an object now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// It stays as it is.
    Stand(Stand),
    /// It moves: record the position, then start the work of the new state.
    Go(Go),
    /// The work of the state it is in is to be started, without a move.
    Run(Run),
    /// An attempt failed; the next one comes after a wait.
    Retry {
        /// A trigger counts attempts, so this one is recorded.
        counted: bool,
    },
    /// The action has ended, and the object stays.
    End(Ending),
    /// The object may be forgotten: its finalizer goes.
    Release {
        /// It did not reach a leaf: somebody gave it up.
        abandoned: bool,
    },
}

/// A transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Go {
    /// The state that is entered.
    pub to: StateId,
    /// Along what.
    pub by: By,
    /// What led there.
    pub why: Why,
}

/// What a transition moves along.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Into the entry: the object is new.
    Entry,
    /// A child edge.
    Child,
    /// A trigger edge.
    Trigger,
    /// No declared edge: to where the application already is.
    Jump,
    /// Out of a leaf, into the entry again.
    Reentry,
}

/// What led to a transition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// The object is new.
    Created,
    /// Nothing was recorded, and the application was there already.
    Adopted,
    /// The application was seen elsewhere, or named an event.
    Observed,
    /// The handler named the state.
    Handler,
    /// The handler said Next, and no wish leads on.
    Next,
    /// The wish to be kept in a state.
    DesiredState,
    /// The wish to go through a state.
    Visit,
    /// The object is being deleted.
    Deletion,
    /// The time in the state was over.
    After,
    /// The action failed, often enough or for good.
    OnError,
    /// An `on_delete` trigger.
    OnDelete,
    /// The revision changed.
    OnChange,
}

impl Why {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Adopted => "Adopted",
            Self::Observed => "Observed",
            Self::Handler => "Handler",
            Self::Next => "Next",
            Self::DesiredState => "DesiredState",
            Self::Visit => "Visit",
            Self::Deletion => "Deletion",
            Self::After => "After",
            Self::OnError => "OnError",
            Self::OnDelete => "OnDelete",
            Self::OnChange => "OnChange",
        }
    }
}

/// Why nothing moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stand {
    /// There is nothing to do until something changes.
    Settled,
    /// The action failed for good; nothing happens until the spec changes.
    Failed,
    /// The action runs.
    Running,
    /// The action is between attempts, or asked to be called again later.
    Waiting,
    /// The object is paused; a result waits.
    Paused,
    /// The object goes round: the next transition waits this long yet.
    Braking(Duration),
    /// Nothing is recorded, and it cannot be told whether there is an application.
    Unsure,
    /// The state on record is none of this graph, and no observation says where the application is.
    UnknownState,
    /// The state on record is one of a newer operator.
    HandsOff,
}

/// Why work is started without a move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Run {
    /// It was in flight when this process began: under the same id.
    Resume,
    /// This process has recorded it, and it has not begun: under the same id.
    Begin,
    /// The wait is over: under the same id.
    Again,
    /// The revision changed: under an id of its own.
    Changed,
    /// It had failed for good, and the generation changed since: under the same id.
    Amended,
}

/// How an action ended that leads nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// It did what it should.
    Well,
    /// It failed for good.
    Failed,
    /// It named a state that no edge leads to; [`StateId::UNKNOWN`] for a Next where there is no child.
    Refused(StateId),
}
