//! The status of an agent and its application.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::ActionReport;
use super::owner::{Fence, ObjectRef, Owner};

/// The versions that an agent supports: the answer to `GET /lifecycle`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The versions, such as `v1`, the preferred one first.
    pub versions: Vec<String>,
}

/// The answer to `GET /lifecycle/v1/status`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// The program that answers.
    pub agent: AgentInfo,
    /// An id that changes with each start of the agent.
    pub boot_id: String,
    /// The hash of the graph that the agent is bound to (`status.lifecycle.graph` of the object); `None` if it is not
    /// bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// The states whose work the agent does, sorted by name. It refuses others with `NoSuchWork`.
    pub states: Vec<String>,
    /// The last observation of the application.
    pub application: Sighting,
    /// The action that is running, or the one that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionReport>,
    /// The namespace and name that the agent belongs to; `None` before it belongs to an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// The owner of the last request taken; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The fence of the last request taken, with the highest epoch.
    pub fence: Fence,
}

/// The program of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// The name, such as `okt-sidecar`.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The last observation of the application.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// The observed state.
    #[serde(flatten)]
    pub seen: Seen,
    /// States that the application's events lead to, if an edge allows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// When the observation began; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// The age of the observation when the answer was made, in milliseconds. The clocks need not agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// The observed state of the application.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "seen", rename_all = "camelCase")]
pub enum Seen {
    /// There is no observation since the agent started or since the last action ended. Draw no conclusion from it.
    Unobserved,
    /// The application is in this state.
    In {
        /// The wire name of the state.
        state: String,
    },
    /// The application does not exist.
    Absent,
    /// The application did not answer, so its state is unknown.
    Unreachable {
        /// The cause, for people; stable for the same cause.
        why: String,
    },
}

impl Sighting {
    /// Returns an observation without events and without a time.
    pub fn of(seen: Seen) -> Self {
        Self {
            seen,
            events: Vec::new(),
            observed_at: None,
            age_ms: None,
        }
    }

    /// Returns the observation of an application in this state.
    pub fn in_state(state: impl Into<String>) -> Self {
        Self::of(Seen::In {
            state: state.into(),
        })
    }

    /// Returns the observation of an application that did not answer.
    pub fn unreachable(why: impl Into<String>) -> Self {
        Self::of(Seen::Unreachable { why: why.into() })
    }

    /// Adds an event that leads to this state.
    #[must_use]
    pub fn event(mut self, state: impl Into<String>) -> Self {
        self.events.push(state.into());
        self
    }
}
