//! Actions: requests for work, and the reports about it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::owner::{Fence, Owner, strict};

/// The id of an action, chosen by the operator: 1 to 128 of the characters `A-Z a-z 0-9 . _ -`.
///
/// An operator of OKT builds it as `<uid>.<transition>`. It appends `.<k>` for the k-th run, and `-<token>` if its
/// internal name ends in `@<token>`.
/// The slashes and the `@` of the internal name would need escapes in a path.
///
/// ```
/// use okt_agent::wire::ActionId;
///
/// let id: ActionId = "7c5d.12.2".parse()?;
/// assert_eq!(id.as_str(), "7c5d.12.2");
/// assert!("../etc".parse::<ActionId>().is_err());
/// # Ok::<(), okt_agent::wire::ActionIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActionId(String);

/// A text that is not a valid action id. A retry does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "an action id has 1 to 128 of the characters A-Z a-z 0-9 . _ - and does not begin with a dot"
)]
pub struct ActionIdError;

impl ActionId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ActionId {
    type Err = ActionIdError;

    fn from_str(text: &str) -> Result<Self, ActionIdError> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for ActionId {
    type Error = ActionIdError;

    fn try_from(text: String) -> Result<Self, ActionIdError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_short = (1..=128).contains(&text.len());
        if is_short && !text.starts_with('.') && text.bytes().all(fits) {
            Ok(Self(text))
        } else {
            Err(ActionIdError)
        }
    }
}

impl From<ActionId> for String {
    fn from(id: ActionId) -> Self {
        id.0
    }
}

/// The body of `PUT /lifecycle/v1/actions/{id}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    /// The state whose work is requested.
    pub state: String,
    /// The object that requests it.
    #[serde(deserialize_with = "strict::owner")]
    pub owner: Owner,
    /// The position of the request in the order of requests.
    #[serde(deserialize_with = "strict::fence")]
    pub fence: Fence,
    /// The hash of the operator's graph. An agent that is bound to another graph refuses the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// The states that the application may be in; empty for any state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// The input of the work, such as the object's spec.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Value>,
}

/// The report about an action: the answer to requests for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are fields of the wire, independent of each other"
)]
pub struct ActionReport {
    /// The id.
    pub id: ActionId,
    /// The state whose work the action does.
    pub state: String,
    /// The phase.
    pub phase: Phase,
    /// The attempt number, starting at 1. An attempt that ended without success can be retried after its
    /// acknowledgement.
    pub attempt: u32,
    /// Whether an earlier agent began this attempt, and this agent resumed it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resumed: bool,
    /// Whether it is being cancelled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancelling: bool,
    /// Whether the operator has acknowledged its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub acknowledged: bool,
    /// The state that a successful action names as the next one; `None` leaves the choice to the desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The reason of a failure, one word in `PascalCase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The details, for people; stable for the same failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether a retry is useless until the spec changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub permanent: bool,
    /// The last progress that it reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// When this attempt was recorded.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The size of its output, in bytes. The agent keeps the beginning and the end.
    #[serde(default)]
    pub output_bytes: u64,
}

/// The answer to `GET /lifecycle/v1/actions`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actions {
    /// The actions that the agent remembers, the newest first.
    pub actions: Vec<ActionReport>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The phase of an action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// Recorded, not yet begun.
    Pending,
    /// Running.
    Running,
    /// Succeeded. The agent never repeats it under this id.
    Succeeded,
    /// Failed.
    Failed,
    /// Begun by an earlier agent and not repeatable, so it is unknown whether it was done.
    Unknown,
    /// Cancelled; it may have been done in part.
    Cancelled,
}

impl Phase {
    /// Returns whether the action has ended.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// The progress that an action reports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The percentage, from 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The body of `PUT /lifecycle/v1/actions/{id}/acknowledgement`: the operator has stored the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Acknowledgement {
    /// The number of the acknowledged attempt.
    pub attempt: u32,
    /// The operator's epoch, as in [`Fence::epoch`].
    #[serde(default)]
    pub epoch: u64,
}
