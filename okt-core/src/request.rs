//! Requests: a visit with arguments, which an object of its own asks for.

use crate::facts::Named;
use crate::graph::{Graph, Mark, StateId};

/// A request that waits for an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WaitingRequest {
    /// The state that serves it.
    pub state: StateId,
    /// A hash of its uid.
    pub token: u64,
    /// The object's transition number when the operator saw the request first; none if it has not.
    pub seen: Option<u64>,
}

/// The request that an object serves, or the last one that it served, as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestRecord {
    /// The state that serves it.
    pub state: Named,
    /// A hash of its uid.
    pub token: u64,
    /// The object's transition number before the request began.
    pub transition: u64,
    /// What became of it.
    pub outcome: RequestOutcome,
}

impl RequestRecord {
    /// Returns the state that serves it; none if it serves no requests any more, after an update of the operator.
    pub(crate) fn served_by(&self, graph: &Graph<'_>) -> Option<StateId> {
        let serves = |id: &StateId| graph.get(*id).is_some_and(|state| state.is(Mark::Args));
        self.state.known().filter(serves)
    }
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RequestOutcome {
    /// It waits for its turn, or for its object.
    Queued,
    /// The object is on its way to the state that serves it, or in that state.
    Running,
    /// The work succeeded.
    Reached,
    /// The work failed permanently, a trigger ended it, or the object came to rest before it reached the state.
    Failed,
    /// It cannot be served: its arguments do not fit or are too long, or its state serves none any more.
    Refused,
    /// It had not begun when its time was over.
    Expired,
    /// It was deleted while its work ran.
    Aborted,
    /// Its object was deleted before the work was over.
    Overtaken,
    /// Its object does not exist.
    TargetGone,
    /// It may have been served before: it is older than the record of its object, or it had begun and the record is lost.
    ///
    /// Any unknown value reads as this.
    #[default]
    #[cfg_attr(feature = "serde", serde(other))]
    NotReplayed,
}

impl RequestOutcome {
    /// Returns the word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "Queued",
            Self::Running => "Running",
            Self::Reached => "Reached",
            Self::Failed => "Failed",
            Self::Refused => "Refused",
            Self::Expired => "Expired",
            Self::Aborted => "Aborted",
            Self::Overtaken => "Overtaken",
            Self::NotReplayed => "NotReplayed",
            Self::TargetGone => "TargetGone",
        }
    }

    /// Returns whether nothing will change any more.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}
