//! The settings of an agent.

use std::time::Duration;

use crate::wire::{AgentInfo, ObjectRef};

/// The settings of an agent.
#[derive(Clone, Debug)]
pub(super) struct AgentSettings {
    pub(super) agent: AgentInfo,
    /// The namespace and name that the agent belongs to; `None` takes those of the first owner.
    pub(super) object: Option<ObjectRef>,
    pub(super) graph: Option<String>,
    pub(super) observe_every: Duration,
    pub(super) observe_timeout: Duration,
    pub(super) cancel_limit: Duration,
    pub(super) stop_limit: Duration,
    pub(super) output_limit: usize,
    pub(super) waits: usize,
    pub(super) connections: usize,
    pub(super) request_limit: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            agent: AgentInfo {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            object: None,
            graph: None,
            observe_every: Duration::from_secs(5),
            observe_timeout: Duration::from_secs(5),
            cancel_limit: Duration::from_secs(10),
            stop_limit: Duration::from_secs(10),
            output_limit: 64 * 1024,
            waits: 64,
            connections: 256,
            request_limit: Duration::from_secs(10),
        }
    }
}
