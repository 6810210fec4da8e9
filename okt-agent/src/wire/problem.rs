//! The body of every refusal, after RFC 9457: the cause, and who can fix it.

use serde::{Deserialize, Serialize};

use super::action::ActionId;

/// The cause of a refusal.
///
/// Sent as `application/problem+json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{code:?}: {detail}")]
pub struct Problem {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The cause, for machines.
    pub code: Code,
    /// The cause, for people.
    pub detail: String,
    /// Who can fix the cause.
    pub mender: Mender,
    /// Whether a retry of the same request may succeed.
    pub retry: bool,
    /// The action that is running, with [`Code::Busy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<ActionId>,
}

/// Who can fix the cause of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mender {
    /// The developer of the client: the request is never right.
    Client,
    /// The administrator of operator and agent: they do not fit together.
    Operations,
    /// The administrator of the agent's machine or container.
    Machine,
    /// Time: the cause passes.
    Time,
}

macro_rules! codes {
    ($( $(#[$doc:meta])* $code:ident = $status:literal, $mender:ident, $retry:literal; )*) => {
        /// The cause of a refusal, for machines.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        pub enum Code {
            $( $(#[$doc])* $code, )*
            /// A code of a newer agent.
            #[serde(other)]
            Other,
        }

        impl Code {
            /// All codes that an agent of this version sends.
            pub const ALL: &'static [Self] = &[ $( Self::$code, )* ];

            /// Returns the HTTP status, who can fix the cause, and whether a retry of the same request may succeed.
            pub fn meaning(self) -> (u16, Mender, bool) {
                match self {
                    $( Self::$code => ($status, Mender::$mender, $retry), )*
                    Self::Other => (500, Mender::Operations, true),
                }
            }
        }
    };
}

codes! {
    /// The body is not JSON of the right form, or the id is not a valid action id.
    BadRequest = 400, Client, false;
    /// The token is missing or wrong.
    Unauthorized = 401, Operations, true;
    /// The path does not exist.
    NotFound = 404, Client, false;
    /// The agent does not support this version; `GET /lifecycle` lists the supported ones.
    UnsupportedVersion = 404, Operations, false;
    /// The agent knows no action of this id: it was never requested, or the agent has forgotten it.
    NoSuchAction = 404, Operations, false;
    /// The path exists, but not for this method.
    MethodNotAllowed = 405, Client, false;
    /// The request did not arrive in time.
    TooSlow = 408, Time, true;
    /// Another action is running; `running` has its id.
    Busy = 409, Time, true;
    /// The acknowledged attempt is not the last one.
    OtherAttempt = 409, Client, false;
    /// The action has not ended, so it cannot be acknowledged.
    NotEnded = 409, Time, true;
    /// The agent has taken a newer request: another operator leads, or the object has moved on.
    Fenced = 412, Operations, false;
    /// The agent belongs to another namespace and name, or to a newer object of the same ones.
    ForeignOwner = 412, Operations, false;
    /// The agent is bound to another graph.
    OtherGraph = 412, Operations, true;
    /// The application is in none of the states that the request names.
    WrongState = 412, Time, true;
    /// The body is longer than the limit of the agent, or holds more values.
    TooLarge = 413, Client, false;
    /// The `Host` of the request is another machine, and the agent serves this machine only.
    ForeignHost = 421, Client, false;
    /// The content type of the body is not JSON.
    UnsupportedMediaType = 415, Client, false;
    /// The agent does not do the work of this state.
    NoSuchWork = 422, Operations, false;
    /// The id already names other work: another state, owner or input.
    OtherWork = 422, Client, false;
    /// The agent is stopping.
    Stopping = 503, Time, true;
    /// The agent has reached its limit of requests.
    Overloaded = 503, Time, true;
    /// The agent cannot record the action, for example because the disk is full, so it does not begin it.
    CannotRecord = 503, Machine, true;
}

impl Problem {
    /// Returns a refusal with this code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let (status, mender, retry) = code.meaning();
        Self {
            status,
            code,
            detail: detail.into(),
            mender,
            retry,
            running: None,
        }
    }
}
