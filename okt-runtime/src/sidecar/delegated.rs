//! An application without code for its states: agents do the work of each state and observe the application.

use std::time::Duration;

use okt_core::{Answer, Delegate, Delegated, Dispatch, Lifecycle, Mark};
use okt_reach::Failure;
use okt_wire::object::LifecycleObject;

use super::Agents;
use crate::author::application::{Application, StateOf};
use crate::author::context::{Action, Context};
use crate::author::observation::Observation;

impl<K: LifecycleObject> Delegate<K::State> for Agents<K> {
    type Context = Action<K>;
    type Error = Failure;

    /// Has the agent do the work. If it names no next state, the object stays in a resting state or a leaf, and leaves
    /// any other state by its Next.
    async fn delegate(&self, state: K::State, cx: &Action<K>) -> Result<Answer, Failure> {
        let performed = self.perform(cx).await?;
        let stays = K::State::GRAPH
            .get(state.id())
            .is_some_and(|state| state.is(Mark::Rest) || state.is(Mark::Leaf));
        Ok(match performed.event {
            Some(to) => Answer::To(to.id()),
            None if stays => Answer::Stay,
            None => Answer::Next,
        })
    }
}

impl<K> Application for Delegated<Agents<K>>
where
    K: LifecycleObject<State: Dispatch<Self, Context = Action<K>, Error = Failure>>,
{
    type Resource = K;

    async fn observe(&self, cx: &Context<K>) -> Result<Observation<StateOf<Self>>, Failure> {
        Ok(self.0.observe(cx).await)
    }

    fn observe_every(&self, state: StateOf<Self>) -> Duration {
        (self.0.observe_every)(state)
    }

    fn attempt_limit(&self, state: StateOf<Self>) -> Duration {
        (self.0.attempt_limit)(state)
    }
}
