//! Where the application is, as its agent says.

use std::time::Duration;

use okt_core::Lifecycle;
use okt_sidecar::wire::{AgentStatus, Owner, Seen};

use super::{Agents, owner_of};
use crate::context::Context;
use crate::object::LifecycleObject;
use crate::observation::Observation;

/// How long an answer is waited for: less than a look may take in all.
const LIMIT: Duration = Duration::from_secs(8);

impl<K: LifecycleObject> Agents<K> {
    /// Asks the agent where the application is.
    ///
    /// An agent that does not answer, and an application that does not answer its agent, are unreachable, never
    /// absent.
    /// What an agent says that was made for another graph counts as far as its names are known here.
    /// Where a newer object has claimed the application, it is unreachable for the older one: what is seen of it
    /// is the newer one's.
    pub async fn observe(&self, cx: &Context<K>) -> Observation<K::State> {
        let client = match (self.find)(cx.object()) {
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
    if let Some(owner) = &status.owner
        && is_newer(owner, &owner_of(object))
    {
        let name = format!("{}/{}", owner.namespace, owner.name);
        let why = format!(
            "its agent serves {}, which was created later",
            name.trim_start_matches('/')
        );
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

/// Whether an agent that serves this owner refuses `us`.
fn is_newer(owner: &Owner, us: &Owner) -> bool {
    owner.uid != us.uid && owner.created_at >= us.created_at
}
