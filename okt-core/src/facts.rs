//! The facts that a decision is made from, in addition to the graph and the record.

use core::time::Duration;

use crate::backoff::Backoff;
use crate::gate::{Gates, Plan};
use crate::graph::{Graph, Parts, StateId};

/// A state name, resolved against the graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Named {
    /// A state of this graph.
    Known(StateId),
    /// A name that the graph does not have.
    Unknown,
}

impl Named {
    /// Returns the state, if the graph has it.
    pub fn known(self) -> Option<StateId> {
        match self {
            Self::Known(id) => Some(id),
            Self::Unknown => None,
        }
    }
}

/// The desired state in the spec.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DesiredState {
    /// The state; none if the spec sets none.
    pub state: Option<Named>,
    /// The state or the request differs from the recorded one.
    pub fresh: bool,
    /// The spec has a request, and it differs from the recorded one.
    pub requested: bool,
}

/// The visit in the spec.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DesiredVisit {
    /// The state.
    pub state: Named,
    /// The state or the request differs from the recorded one.
    pub fresh: bool,
}

/// The first request that waits for an object and can begin where it rests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NextRequest {
    /// The state that serves it.
    pub state: StateId,
    /// A hash of its uid: a request made anew under the same name is another one.
    pub token: u64,
}

/// The observation of the application in this reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Observed {
    /// The application was not observed, or there is nothing to observe.
    Unobserved,
    /// The application is in this state.
    In(StateId),
    /// There is no application.
    Absent,
    /// The application is in a state that the graph does not have.
    Unforeseen,
    /// The application could not be reached.
    Unreachable {
        /// The number of consecutive failed observations, including this one.
        failures: u32,
    },
    /// The observation failed for another reason.
    Failed {
        /// The number of consecutive failed observations, including this one.
        failures: u32,
    },
}

impl Observed {
    /// Returns whether so many observations failed that the state of the application counts as unknown.
    pub fn is_lost(self) -> bool {
        match self {
            Self::Unreachable { failures } | Self::Failed { failures } => {
                failures >= UNREACHABLE_AFTER
            }
            Self::Unobserved | Self::In(_) | Self::Absent | Self::Unforeseen => false,
        }
    }
}

/// The number of consecutive failed observations after which conditions become `Unknown`.
pub const UNREACHABLE_AFTER: u32 = 3;

/// The answer of an action when it ended or paused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ActionResult {
    /// Done, without naming a state.
    Stay,
    /// Done: go on towards the desired state.
    Next,
    /// Done: go to this state.
    To(StateId),
    /// Not done yet: call again after this time.
    Wait(Duration),
    /// The attempt failed.
    Failed {
        /// A retry does not help.
        permanent: bool,
    },
}

/// The state of the action on record, as this process knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// This process has not started the action.
    Absent,
    /// This process has recorded the action and not started it yet.
    New,
    /// The action is running.
    Running,
    /// The action waits for its next attempt or call, and the time has not come.
    Waiting,
    /// The time for the next call has come.
    Due,
    /// The action has ended, and this reconciliation takes its answer.
    Ended(ActionResult),
}

/// The facts at the moment of a decision.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is excluded"
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LifecycleFacts<'a> {
    /// The desired state.
    pub desired: DesiredState,
    /// The visit.
    pub visit: Option<DesiredVisit>,
    /// The first request that waits and can begin where the object rests.
    pub request: Option<NextRequest>,
    /// The request on record was deleted.
    pub is_aborted: bool,
    /// `metadata.generation`.
    pub generation: i64,
    /// A hash of the data that handlers act upon.
    pub revision: u64,
    /// The parts of the spec that have changed since an edge for their change was taken, or since the first record or
    /// the last re-entry.
    pub parts: Parts,
    /// The edge for a change that leads to where an outdated resource may change.
    pub outdated: Option<StateId>,
    /// A hash of the declared resources that change in some states only; none until it is known.
    pub content: Option<u64>,
    /// The gates that are shut now; one for an approval is open for the approved plan.
    pub shut: Gates,
    /// It has a place in a limit by this very version, and is outside.
    pub has_unused_place: bool,
    /// A hash of the uid of the object, the same in every process.
    pub uid: u64,
    /// The plan that the spec approves.
    pub approved: Option<Plan>,
    /// The object is being deleted.
    pub deleting: bool,
    /// A user paused the object.
    pub paused: bool,
    /// The observation of the application.
    pub observed: Observed,
    /// The states that the observation named as events.
    pub events: &'a [StateId],
    /// A resource that the object owns exists in the cluster.
    pub owned: bool,
    /// The state of the action on record.
    pub task: Task,
    /// The number of the attempt that runs or ran last, starting at 1.
    pub attempt: u32,
    /// The generation under which that attempt was started.
    pub started_under: i64,
    /// The time since the arrival in the state on record.
    pub in_state: Duration,
    /// The time since the object came under the deadline of the state on record ([`State::deadline`]); zero without one.
    ///
    /// [`State::deadline`]: crate::State::deadline
    pub in_deadline: Duration,
    /// The backoff between attempts.
    pub backoff: Backoff,
    /// The seed of this object's jitter.
    pub seed: u64,
}

impl LifecycleFacts<'_> {
    /// Returns the desired state: the one in the spec, or else the default.
    pub fn target(&self, graph: &Graph<'_>) -> Named {
        self.desired
            .state
            .or_else(|| graph.home().map(Named::Known))
            .unwrap_or(Named::Unknown)
    }

    /// Returns the desired state, if the graph has it.
    pub fn known_target(&self, graph: &Graph<'_>) -> Option<StateId> {
        self.target(graph).known()
    }

    /// Returns whether a pause is in force; deletion ignores a pause.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.deleting
    }
}
