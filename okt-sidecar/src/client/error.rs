//! Why a request got no good answer, and whether asking again helps.

use super::endpoint::EndpointError;
use crate::wire::{ActionId, Code, Problem};

/// Why a request got no good answer.
///
/// [`retry_helps`](Self::retry_helps) says whether the same request may get one later.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent refused.
    #[error("the agent refused: {0}")]
    Refused(#[source] Problem),
    /// There was no answer, or only a part of one: nobody knows whether the request arrived.
    #[error("the agent does not answer: {why}")]
    Unanswered {
        /// What became of the request; the same for the same trouble.
        why: String,
    },
    /// There was an answer, but none of this protocol: something else listens there, or stands in between.
    #[error("the answer ({status}) is none of an agent: {detail}")]
    Foreign {
        /// The status of the answer.
        status: u16,
        /// What is wrong with it.
        detail: String,
    },
    /// The agent speaks no version that this client speaks.
    #[error("the agent speaks {}, this client v1", .spoken.join(", "))]
    NoCommonVersion {
        /// What it speaks.
        spoken: Vec<String>,
    },
    /// The agent had begun an action and knows it no more: its records are lost.
    #[error("the agent has forgotten the action {id}, which it had taken: its records are lost")]
    Forgotten {
        /// The action.
        id: ActionId,
    },
    /// The request cannot be sent: it is too long; another one helps.
    #[error("cannot send the request: {detail}")]
    Unsendable {
        /// Why.
        detail: String,
    },
    /// What the endpoint names cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl ClientError {
    /// Whether the same request may get a good answer later, though nobody has changed anything.
    ///
    /// After other errors it is of no use until somebody has.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Refused(problem) => problem.retry,
            Self::Unanswered { .. } | Self::Foreign { .. } | Self::Endpoint(_) => true,
            Self::NoCommonVersion { .. } | Self::Forgotten { .. } | Self::Unsendable { .. } => {
                false
            }
        }
    }

    /// What the agent said, if it refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Unanswered { .. }
            | Self::Foreign { .. }
            | Self::NoCommonVersion { .. }
            | Self::Forgotten { .. }
            | Self::Unsendable { .. }
            | Self::Endpoint(_) => None,
        }
    }

    /// The code of the refusal, if it is one.
    pub fn code(&self) -> Option<Code> {
        self.problem().map(|problem| problem.code)
    }
}
