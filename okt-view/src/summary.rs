//! What is shown of an object, for programs.

use jiff::Timestamp;
use okt_core::StateId;
use serde::Serialize;
use serde_json::{Value, json};

use super::object::View;

/// One object of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary<'v> {
    api_version: &'v str,
    kind: &'v str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'v str>,
    name: &'v str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'v str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    desired: Option<&'v str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visit: Option<&'v str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    route: Vec<&'v str>,
    ready: &'v str,
    reason: &'v str,
    message: &'v str,
    transitions: u64,
    deleting: bool,
    paused: bool,
}

impl View<'_> {
    /// Returns the object as one of a list.
    pub fn summary(&self) -> Summary<'_> {
        let (ready, reason, message) = self.ready();
        Summary {
            api_version: &self.kind.resource.api_version,
            kind: &self.kind.resource.kind,
            namespace: self.namespace(),
            name: self.name(),
            state: self.state(),
            since: self.position().and_then(|position| position.since),
            desired: self.desired(),
            visit: self.pending_visit(),
            route: self.names(&self.route()),
            ready,
            reason,
            message,
            transitions: self.position().map_or(0, |position| position.transition),
            deleting: self.is_deleting(),
            paused: self.is_paused(),
        }
    }

    /// Returns all that is known of the object: the lifecycle of its status, and what follows from the graph.
    pub fn details(&self) -> Value {
        let deadline = self.deadline();
        let deadline =
            deadline.map(|it| json!({ "to": self.names(&[it.to])[0], "at": it.at.to_string() }));
        let (ready, reason, message) = self.ready();
        let lifecycle = self.position().map(serde_json::to_value);
        json!({
            "apiVersion": self.kind.resource.api_version,
            "kind": self.kind.resource.kind,
            "namespace": self.namespace(),
            "name": self.name(),
            "uid": self.meta.uid,
            "generation": self.meta.generation,
            "observedGeneration": self.status.observed_generation,
            "state": self.state(),
            "desired": self.desired(),
            "visit": self.pending_visit(),
            "deleting": self.is_deleting(),
            "paused": self.is_paused(),
            "route": self.names(&self.route()),
            "deadline": deadline,
            "ready": { "status": ready, "reason": reason, "message": message },
            "lifecycle": lifecycle.and_then(Result::ok),
        })
    }

    fn names(&self, states: &[StateId]) -> Vec<&str> {
        let graph = self.kind.graph();
        let name = |id: &StateId| graph.map_or("", |graph| graph.name_of(*id));
        states.iter().map(name).collect()
    }
}
