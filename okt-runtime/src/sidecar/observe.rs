//! Observes the application through its agent.

use std::time::Duration;

use okt_agent::wire::{AgentStatus, Owner, Seen};
use okt_core::Lifecycle;
use okt_wire::object::LifecycleObject;

use super::{Agents, owner_of};
use crate::author::context::Context;
use crate::author::observation::Observation;

/// The time limit of a request: less than an observation may take in all.
const LIMIT: Duration = Duration::from_secs(8);

impl<K: LifecycleObject> Agents<K> {
    /// Observes the application through its agent.
    ///
    /// An agent that does not answer, and an application that does not answer its agent, are unreachable, never absent.
    /// An answer of an agent for another graph counts as far as this graph has its names.
    /// An agent that belongs to another namespace and name, or to a newer object of the same ones, is unreachable: it
    /// observes that object's application.
    pub async fn observe(&self, cx: &Context<K>) -> Observation<K::State> {
        let client = match (self.find)(cx) {
            Ok(client) => client,
            Err(failure) => return Observation::unreachable(failure),
        };
        match tokio::time::timeout(LIMIT, client.status()).await {
            Ok(Ok(status)) => sighting(cx.object(), status),
            Ok(Err(error)) => Observation::unreachable(error),
            Err(_) => {
                let why = format!(
                    "the agent does not answer: nothing within {} s",
                    LIMIT.as_secs()
                );
                Observation::unreachable(why)
            }
        }
    }
}

fn sighting<K: LifecycleObject>(object: &K, status: AgentStatus) -> Observation<K::State> {
    if let Some(why) = foreign(&owner_of(object), &status) {
        return Observation::unreachable(why);
    }
    let observation = match status.application.seen {
        Seen::In { state } => Observation::named(&state),
        Seen::Absent => Observation::absent(),
        Seen::Unobserved => Observation::unobserved(),
        Seen::Unreachable { why } => Observation::unreachable(why),
    };
    let events = status.application.events.iter();
    events.fold(observation, |observation, name| {
        if let Some(state) = K::State::from_name(name) {
            observation.event(state)
        } else {
            tracing::debug!(event = name, "the graph does not know an event of an agent");
            observation
        }
    })
}

/// Returns why the agent belongs to another object, if it does; the agent refuses the work for the same reason.
fn foreign(us: &Owner, status: &AgentStatus) -> Option<String> {
    let own = us.object();
    if let Some(object) = status.object.as_ref().filter(|object| **object != own) {
        return Some(format!(
            "the agent belongs to {object}, not to {own}: correct the endpoint, or free the agent with `okt-sidecar free`"
        ));
    }
    let owner = status.owner.as_ref()?;
    let newer = owner.uid != us.uid && owner.created_at > us.created_at;
    newer.then(|| {
        format!(
            "the agent serves a newer {own}, created at {}",
            owner.created_at
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn owner(uid: &str, second: u8) -> Owner {
        from_value(json!({
            "uid": uid, "name": "orders", "namespace": "shop",
            "createdAt": format!("2026-11-20T10:00:{second:02}Z"),
        }))
        .unwrap()
    }

    fn status(owner: Option<&Owner>, object: Option<(&str, &str)>) -> AgentStatus {
        let object =
            object.map(|(namespace, name)| json!({ "namespace": namespace, "name": name }));
        from_value(json!({
            "agent": { "name": "a", "version": "1" }, "bootId": "1", "states": [],
            "application": { "seen": "in", "state": "Running" },
            "owner": owner, "object": object,
            "fence": { "transition": 1, "recordedAt": "2026-11-20T10:00:00Z" },
        }))
        .unwrap()
    }

    #[test]
    fn the_status_of_an_agent_that_belongs_to_another_object_is_not_believed() {
        let us = owner("us", 5);
        for object in [("shop", "wishes"), ("evil", "orders"), ("", "orders")] {
            let why = foreign(&us, &status(None, Some(object))).expect("it is foreign");
            assert!(
                why.contains("not to shop/orders: correct the endpoint"),
                "{why}"
            );
        }
        let bound = Some(("shop", "orders"));
        for (uid, second, believed) in [
            ("us", 9, true),
            ("old", 4, true),
            ("twin", 5, true),
            ("new", 6, false),
        ] {
            let status = status(Some(&owner(uid, second)), bound);
            assert_eq!(foreign(&us, &status).is_none(), believed, "{uid}");
        }
        assert_eq!(
            foreign(&us, &status(None, None)),
            None,
            "it belongs to no object yet"
        );
    }
}
