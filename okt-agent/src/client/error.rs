//! The errors of requests, and whether a retry helps.

use super::endpoint::EndpointError;
use crate::wire::{ActionId, Code, Problem};

/// The error of a request.
///
/// [`retry_helps`](Self::retry_helps) returns whether the same request may succeed later.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent refused the request.
    #[error("the agent refused: {0}")]
    Refused(#[source] Problem),
    /// There was no answer or only a part of one, so the request may or may not have arrived.
    #[error("the agent does not answer: {why}")]
    Unanswered {
        /// The cause; stable for the same cause.
        why: String,
    },
    /// There was an answer, but not of this protocol: another program answers, possibly a proxy.
    #[error("the answer ({status}) is none of an agent: {detail}")]
    Foreign {
        /// The HTTP status of the answer.
        status: u16,
        /// The cause.
        detail: String,
    },
    /// The agent supports no version that this client supports.
    #[error("the agent speaks {}, this client v1", .spoken.join(", "))]
    NoCommonVersion {
        /// The versions that the agent supports.
        spoken: Vec<String>,
    },
    /// The agent had begun an action and no longer knows it: its records are lost.
    #[error("the agent has forgotten the action {id}, which it had taken: its records are lost")]
    Forgotten {
        /// The id of the action.
        id: ActionId,
    },
    /// The request cannot be sent, because it is too long. A retry does not help.
    #[error("cannot send the request: {detail}")]
    Unsendable {
        /// The cause.
        detail: String,
    },
    /// The endpoint cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl ClientError {
    /// Returns whether the same request may succeed later without a change.
    ///
    /// After other errors a retry does not help until their cause is fixed.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Refused(problem) => problem.retry,
            Self::Unanswered { .. } | Self::Foreign { .. } | Self::Endpoint(_) => true,
            Self::NoCommonVersion { .. } | Self::Forgotten { .. } | Self::Unsendable { .. } => {
                false
            }
        }
    }

    /// Returns the problem of a refusal.
    pub fn problem(&self) -> Option<&Problem> {
        if let Self::Refused(problem) = self {
            Some(problem)
        } else {
            None
        }
    }

    /// Returns the code of a refusal.
    pub fn code(&self) -> Option<Code> {
        self.problem().map(|problem| problem.code)
    }
}
