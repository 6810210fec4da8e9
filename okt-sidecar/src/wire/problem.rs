//! What is wrong with a request, and who can mend it: the body of every refusal, after RFC 9457.

use serde::{Deserialize, Serialize};

use super::action::ActionId;

/// Why a request was refused.
///
/// Sent as `application/problem+json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{code:?}: {detail}")]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// What is wrong, for machines.
    pub code: Code,
    /// What is wrong, for people.
    pub detail: String,
    /// Who can mend it.
    pub mender: Mender,
    /// Whether the same request may be taken later.
    pub retry: bool,
    /// The action that is in the way, with [`Code::Busy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<ActionId>,
}

/// Who can mend what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mender {
    /// Whoever wrote the client: the request is never right.
    Client,
    /// Whoever runs the operator and the agent: they do not fit together.
    Operations,
    /// Whoever looks after the machine or the container of the agent.
    Machine,
    /// Nobody: it passes.
    Time,
}

macro_rules! codes {
    ($( $(#[$doc:meta])* $code:ident = $status:literal, $mender:ident, $retry:literal; )*) => {
        /// What is wrong with a request.
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

            /// The status of the answer, who can mend it, and whether the same request may be taken later.
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
    /// The body is no JSON of the right form, or the id cannot name an action.
    BadRequest = 400, Client, false;
    /// The token is missing or wrong.
    Unauthorized = 401, Operations, true;
    /// There is nothing under this path.
    NotFound = 404, Client, false;
    /// The agent does not speak this version; `GET /lifecycle` lists those that it speaks.
    UnsupportedVersion = 404, Operations, false;
    /// The agent knows no action of this id: it was never asked for, or it was forgotten.
    NoSuchAction = 404, Operations, false;
    /// There is something under this path, for another method.
    MethodNotAllowed = 405, Client, false;
    /// The request did not arrive in time.
    TooSlow = 408, Time, true;
    /// Another action is under way, `running` names it.
    Busy = 409, Time, true;
    /// The end of another attempt is acknowledged than the last one.
    OtherAttempt = 409, Client, false;
    /// The action has not ended: it cannot be acknowledged.
    NotEnded = 409, Time, true;
    /// A newer request was taken: another operator leads, or the object is further.
    Fenced = 412, Operations, false;
    /// The agent belongs to another namespace and name, or to a newer object of the same ones.
    ForeignOwner = 412, Operations, false;
    /// The agent was made for another graph.
    OtherGraph = 412, Operations, true;
    /// The application is in none of the states that the request names.
    WrongState = 412, Time, true;
    /// The body is longer than an agent reads, or holds more values.
    TooLarge = 413, Client, false;
    /// The request names another host than this machine, and the agent is for this machine only.
    ForeignHost = 421, Client, false;
    /// The body is said to be something else than JSON.
    UnsupportedMediaType = 415, Client, false;
    /// The agent does no work of this state.
    NoSuchWork = 422, Operations, false;
    /// The id names other work already: another state, owner or input.
    OtherWork = 422, Client, false;
    /// The agent is being stopped.
    Stopping = 503, Time, true;
    /// The agent has as many requests as it can take.
    Overloaded = 503, Time, true;
    /// The action cannot be recorded (is the disk full?), so it is not begun.
    CannotRecord = 503, Machine, true;
}

impl Problem {
    /// A refusal for this reason.
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
