//! What an agent says of itself and of its application.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::ActionReport;
use super::owner::{Fence, ObjectRef, Owner};

/// The versions that an agent speaks, the answer to `GET /lifecycle`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Such as `v1`, the preferred one first.
    pub versions: Vec<String>,
}

/// The answer to `GET /lifecycle/v1/status`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Which program answers.
    pub agent: AgentInfo,
    /// Another one after each start of the agent.
    pub boot_id: String,
    /// The hash of the graph that the agent was made for (`status.lifecycle.graph` of the object); none where it
    /// is not bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// The states whose work the agent can do, sorted by name; other ones are refused with `NoSuchWork`.
    pub states: Vec<String>,
    /// Where the application is.
    pub application: Sighting,
    /// The action that is under way, or the one that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionReport>,
    /// The namespace and name that the agent belongs to; none before it was bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Whose requests are taken; none before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The last request that was taken, with the highest epoch.
    pub fence: Fence,
}

/// Which program an agent is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Such as `okt-sidecar`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What was seen of the application when it was last looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// What was seen.
    #[serde(flatten)]
    pub seen: Seen,
    /// States that what happened to the application leads to, as far as an edge does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// When the look was begun; none before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// How long ago that was when the answer was made, in milliseconds: no clocks need to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// What was seen of the application.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "camelCase")]
pub enum Seen {
    /// Nobody has looked since the agent started or since the last action ended; nothing follows from it.
    Unobserved,
    /// It is in the state of this name.
    In {
        /// The wire name of the state.
        state: String,
    },
    /// There is no application.
    Absent,
    /// It did not answer: nobody knows where it is.
    Unreachable {
        /// Why, for people; the same for the same trouble.
        why: String,
    },
}

impl Sighting {
    /// Something was seen, just now or never.
    pub fn of(seen: Seen) -> Self {
        Self {
            seen,
            events: Vec::new(),
            observed_at: None,
            age_ms: None,
        }
    }

    /// The application is in the state of this name.
    pub fn in_state(state: impl Into<String>) -> Self {
        Self::of(Seen::In {
            state: state.into(),
        })
    }

    /// It did not answer.
    pub fn unreachable(why: impl Into<String>) -> Self {
        Self::of(Seen::Unreachable { why: why.into() })
    }

    /// The same, and something happened that leads to this state.
    #[must_use]
    pub fn event(mut self, state: impl Into<String>) -> Self {
        self.events.push(state.into());
        self
    }
}
