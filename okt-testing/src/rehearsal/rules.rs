//! [`Rules`]: the rules for every status that an OKT operator writes.

use std::collections::{BTreeMap, BTreeSet};

use okt_core::Graph;
use okt_runtime::{Application, Lifecycle, StateOf};
use serde_json::Value;

use crate::conditions::{self, Context};
use crate::{ApiServer, Version};

/// The condition types that every status has in addition to the declared ones.
const ALWAYS: [&str; 3] = ["Ready", "Deleting", "Paused"];

/// The condition types that OKT writes only at times.
const SOMETIMES: [&str; 2] = ["Reconciling", "Stalled"];

/// The largest status, in bytes, including the fields of the application.
const STATUS_LIMIT: usize = 8 * 1024;

/// The longest message, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// The rules for statuses with a lifecycle: those for all operators, and OKT's own.
#[derive(Clone, Debug)]
pub struct Rules {
    own: Vec<&'static str>,
    context: Context,
}

impl Rules {
    /// Returns the rules for objects with this lifecycle.
    pub fn of<S: Lifecycle>() -> Self {
        Self::of_graphs(&[S::GRAPH])
    }

    /// Returns the rules for the objects of an application: with a lifecycle, a pass, or both.
    pub fn of_application<A: Application>() -> Self {
        let pass = A::pass().map(|pass| pass.graph());
        let graphs: Vec<_> = std::iter::once(StateOf::<A>::GRAPH).chain(pass).collect();
        Self::of_graphs(&graphs)
    }

    fn of_graphs(graphs: &[&'static Graph<'static>]) -> Self {
        let states = graphs.iter().flat_map(|graph| graph.states);
        let conditions = states.flat_map(|state| state.conditions);
        let declared = conditions.map(|condition| condition.name);
        let always: Vec<&'static str> = ALWAYS.into_iter().chain(declared).collect();
        let own: Vec<_> = always.iter().copied().chain(SOMETIMES).collect();
        let context = Context::new()
            .declares(always)
            .owns(own.iter().copied())
            .status_limit(STATUS_LIMIT);
        Self { own, context }
    }

    /// Returns the versions of a resource whose status a client wrote and that break rules, with the violations.
    pub fn broken_by(
        &self,
        server: &ApiServer,
        client: &str,
        resource: &str,
    ) -> Vec<(Version, Vec<String>)> {
        let requests = server.requests().into_iter().filter(|request| {
            request.client == client && request.subresource.as_deref() == Some("status")
        });
        let writes: BTreeSet<_> = requests.filter_map(|request| request.committed).collect();
        let mut before = BTreeMap::new();
        let mut all = Vec::new();
        for version in server.versions().resource(resource) {
            let after = version.object();
            let place = (version.namespace.clone(), version.name.clone());
            let last = before.insert(place, after.clone());
            if writes.contains(&version.version) {
                let broken = self.broken(last.as_ref(), &after);
                all.push((version, broken));
            }
        }
        all.retain(|(_, broken)| !broken.is_empty());
        all
    }

    /// Returns the violations of an object after a write of its status.
    pub fn broken(&self, before: Option<&Value>, after: &Value) -> Vec<String> {
        let found = conditions::check(before, after, &self.context);
        let mut broken: Vec<_> = found.iter().map(ToString::to_string).collect();
        let seen = &after["status"]["observedGeneration"];
        let conditions = after["status"]["conditions"].as_array();
        for condition in conditions.into_iter().flatten() {
            let name = condition["type"].as_str().unwrap_or_default();
            if !self.own.contains(&name) {
                continue;
            }
            if condition["observedGeneration"] != *seen {
                broken.push(format!("{name} is of another generation than the status"));
            }
            let bytes = condition["message"].as_str().map_or(0, str::len);
            if bytes > MESSAGE_LIMIT {
                broken.push(format!("the message of {name} has {bytes} bytes"));
            }
        }
        broken
    }
}
