//! What an agent is asked to do, and how that goes.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::owner::{Fence, Owner, strict};

/// The name of one piece of work, chosen by the operator: 1 to 128 of the characters `A-Z a-z 0-9 . _ -`.
///
/// An operator of OKT names it `<uid>.<transition>`, with `.<k>` for the k-th run and `-<token>` where its own name
/// ends in `@<token>`: the slashes and the `@` of its own spelling would need escapes in a path.
///
/// ```
/// use okt_sidecar::wire::ActionId;
///
/// let id: ActionId = "7c5d.12.2".parse()?;
/// assert_eq!(id.as_str(), "7c5d.12.2");
/// assert!("../etc".parse::<ActionId>().is_err());
/// # Ok::<(), okt_sidecar::wire::ActionIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActionId(String);

/// A text that cannot name an action; only another text helps.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "an action id has 1 to 128 of the characters A-Z a-z 0-9 . _ - and does not begin with a dot"
)]
pub struct ActionIdError;

impl ActionId {
    /// The text.
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
        let fits = (1..=128).contains(&text.len())
            && !text.starts_with('.')
            && (text.bytes()).all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if fits {
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
    /// The state whose work is asked for.
    pub state: String,
    /// For which object.
    #[serde(deserialize_with = "strict::owner")]
    pub owner: Owner,
    /// How new the request is.
    #[serde(deserialize_with = "strict::fence")]
    pub fence: Fence,
    /// The hash of the operator's graph; an agent that is bound to another one refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// The states that the application may be in; any where it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// What the work needs to know, such as the object's spec.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Value>,
}

/// How an action goes: the answer to requests for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are fields of the wire, independent of each other"
)]
pub struct ActionReport {
    /// Its name.
    pub id: ActionId,
    /// The state whose work it is.
    pub state: String,
    /// How far it is.
    pub phase: Phase,
    /// Which attempt of this id this is, from 1: an ended one that did not succeed is tried again once it is
    /// acknowledged.
    pub attempt: u32,
    /// Whether this attempt was begun by an agent that is gone, and taken up again by this one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resumed: bool,
    /// Whether it was told to end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancelling: bool,
    /// Whether its end was acknowledged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub acknowledged: bool,
    /// The state that a successful action names as the next one; none leaves it to what is wished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Why it failed, one word in `PascalCase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The details, for people; the same for the same failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether another attempt is of no use: only another spec helps.
    #[serde(default, skip_serializing_if = "is_false")]
    pub permanent: bool,
    /// How far it says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// When this attempt was recorded.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How much it has printed, in bytes; the agent keeps the beginning and the end of it.
    #[serde(default)]
    pub output_bytes: u64,
}

/// The answer to `GET /lifecycle/v1/actions`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actions {
    /// Those that are remembered, the newest first.
    pub actions: Vec<ActionReport>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// How far an action is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// Recorded, not begun.
    Pending,
    /// Under way.
    Running,
    /// Done; never done again under this id.
    Succeeded,
    /// Not done.
    Failed,
    /// Begun by an agent that is gone, and not repeatable: nobody knows whether it was done.
    Unknown,
    /// Ended because it was no longer wanted; it may have been done in part.
    Cancelled,
}

impl Phase {
    /// Whether nothing more comes of it.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// How far an action says it is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Of a hundred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The body of `PUT /lifecycle/v1/actions/{id}/acknowledgement`: the operator has taken the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Acknowledgement {
    /// Of which attempt.
    pub attempt: u32,
    /// The operator's term, as in the request.
    #[serde(default)]
    pub epoch: u64,
}
