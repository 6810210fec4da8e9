//! The kind `Widget`: its resource and its operator.

mod operator;
mod resource;

#[cfg(test)]
mod tests;

use std::future::{Ready, ready};

use okt::Delegated;
use okt::kube::Client;
use okt::sidecar::{AgentConfigError, InPods};

use self::operator::{Pods, agent};

/// Returns the operator.
pub fn connect(_cluster: Client) -> Ready<Result<Delegated<InPods<Pods>>, AgentConfigError>> {
    ready(agent().map(|agent| Delegated(InPods::of(Pods { agent }))))
}
