//! What a decision is made from, beside the graph and the record.

use core::time::Duration;

use crate::backoff::Backoff;
use crate::graph::{Graph, StateId};

/// A state that somebody named, perhaps wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Named {
    /// A state of this graph.
    Known(StateId),
    /// A name that the graph does not know.
    Unknown,
}

impl Named {
    /// The state, if the graph knows it.
    pub fn known(self) -> Option<StateId> {
        match self {
            Self::Known(id) => Some(id),
            Self::Unknown => None,
        }
    }
}

/// What the spec says about the state to be kept in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DesiredState {
    /// The state; none where the spec leaves it to the graph.
    pub state: Option<Named>,
    /// The state or the request differs from what is recorded.
    pub fresh: bool,
    /// There is a request, and it differs from the one recorded.
    pub requested: bool,
}

/// What the spec says about a state to be gone through once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Visit {
    /// The state.
    pub state: Named,
    /// The state or the request differs from what is recorded.
    pub fresh: bool,
}

/// What the application said of itself in this turn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Observed {
    /// Nobody looked, or there is nothing to see.
    Unobserved,
    /// The application is in this state.
    In(StateId),
    /// There is no application.
    Absent,
    /// It is in a state that the graph does not know.
    Unforeseen,
    /// It could not be reached, for the so-manieth look in a row (from 1).
    Unreachable {
        /// Looks in a row that failed, this one included.
        failures: u32,
    },
    /// Looking failed otherwise, for the so-manieth time in a row.
    Failed {
        /// Looks in a row that failed, this one included.
        failures: u32,
    },
}

impl Observed {
    /// Whether so many looks failed that nothing can be said any more.
    pub fn is_lost(self) -> bool {
        match self {
            Self::Unreachable { failures } | Self::Failed { failures } => {
                failures >= UNREACHABLE_AFTER
            }
            Self::Unobserved | Self::In(_) | Self::Absent | Self::Unforeseen => false,
        }
    }
}

/// After how many failed looks in a row conditions become Unknown.
pub const UNREACHABLE_AFTER: u32 = 3;

/// What an action said when it ended or paused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Said {
    /// Done, naming no state.
    Stay,
    /// Done: on towards what is wished.
    Next,
    /// Done: go there.
    To(StateId),
    /// Not yet: ask again later.
    Wait,
    /// The attempt failed.
    Failed {
        /// Trying again would not help.
        permanent: bool,
    },
}

/// What the operator knows of the action on record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Task {
    /// Nothing: it was never started by this process.
    Absent,
    /// This process has recorded it, and it has not begun.
    New,
    /// It runs.
    Running,
    /// It is between attempts, or asked to be called again, and the time has not come.
    Waiting,
    /// The time for the next call has come.
    Due,
    /// It has ended, and this turn takes what it said.
    Ended(Said),
}

/// What is so at the moment of deciding.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is excluded"
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts<'a> {
    /// The wish to be kept in a state.
    pub desired: DesiredState,
    /// The wish to go through a state once.
    pub visit: Option<Visit>,
    /// `metadata.generation`.
    pub generation: i64,
    /// A hash of what handlers act upon.
    pub revision: u64,
    /// The object is being deleted.
    pub deleting: bool,
    /// Somebody has given the object up while it is being deleted.
    pub abandoned: bool,
    /// Somebody has paused the object.
    pub paused: bool,
    /// The state on record is unknown here, but the graph in the CRD has it: a newer operator's.
    pub newer: bool,
    /// What the application said of itself.
    pub observed: Observed,
    /// States that the observation named as events.
    pub events: &'a [StateId],
    /// Something that the object owns exists in the cluster.
    pub owned: bool,
    /// What is known of the action on record.
    pub task: Task,
    /// The number of the attempt that ran last, or runs; from 1.
    pub attempt: u32,
    /// The generation under which that attempt was started.
    pub started_under: i64,
    /// The time since the arrival in the state on record.
    pub in_state: Duration,
    /// How waits grow.
    pub backoff: Backoff,
    /// What tells the jitter of this object from that of another.
    pub seed: u64,
}

impl Facts<'_> {
    /// What is wished, by the spec or by default.
    pub fn target(&self, graph: &Graph<'_>) -> Named {
        self.desired
            .state
            .or_else(|| graph.home().map(Named::Known))
            .unwrap_or(Named::Unknown)
    }

    /// The wished state, if the graph knows it.
    pub fn known_target(&self, graph: &Graph<'_>) -> Option<StateId> {
        self.target(graph).known()
    }

    /// Whether a pause is in force: deletion ignores it.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.deleting
    }
}
