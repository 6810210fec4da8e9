//! Applications in Pods whose agents do the work of each state.

use std::time::Duration;

use okt_core::{Answer, Delegate, Delegated, Dispatch};
use okt_reach::Failure;
use okt_wire::object::LifecycleObject;

use super::Agents;
use super::pod::PodAgent;
use crate::author::application::{Application, StateOf};
use crate::author::context::{Action, Context};
use crate::author::observation::Observation;
use crate::resources::{Resources, Watches};

/// The Pods of the objects of a kind, and the agents in them. As [`Delegated`] it is a complete
/// [`Application`](crate::Application), without code for any state.
///
/// [`PodAgent`](super::PodAgent) has an example.
#[derive(Clone, Debug)]
pub struct InPods<P: AgentPods>(pub Agents<P::Resource>, pub P);

impl<P: AgentPods> InPods<P> {
    /// Returns these Pods, with the agents in them.
    pub fn of(pods: P) -> Self {
        Self(Agents::in_pods(pods.agent().clone()), pods)
    }
}

/// The resources of a kind whose work agents do; used as [`InPods`].
pub trait AgentPods: Send + Sync + 'static {
    /// The kind.
    type Resource: LifecycleObject;

    /// Returns the agent in each Pod.
    fn agent(&self) -> &PodAgent;

    /// See [`Application::watches`](crate::Application::watches).
    fn watches(watches: Watches<Self::Resource>) -> Watches<Self::Resource>;

    /// See [`Application::resources`](crate::Application::resources).
    ///
    /// # Errors
    ///
    /// On a failure the cluster stays as it is, the work of the state waits, and the conditions report the failure.
    fn resources(
        &self,
        cx: &Context<Self::Resource>,
        state: <Self::Resource as LifecycleObject>::State,
    ) -> impl Future<Output = Result<Resources, Failure>> + Send;
}

impl<P: AgentPods> Delegate<<P::Resource as LifecycleObject>::State> for InPods<P> {
    type Context = Action<P::Resource>;
    type Error = Failure;

    async fn delegate(
        &self,
        state: <P::Resource as LifecycleObject>::State,
        cx: &Action<P::Resource>,
    ) -> Result<Answer, Failure> {
        self.0.delegate(state, cx).await
    }
}

impl<P> Application for Delegated<InPods<P>>
where
    P: AgentPods<
        Resource: LifecycleObject<
            State: Dispatch<Self, Context = Action<P::Resource>, Error = Failure>,
        >,
    >,
{
    type Resource = P::Resource;

    fn watches(watches: Watches<P::Resource>) -> Watches<P::Resource> {
        P::watches(watches)
    }

    async fn resources(
        &self,
        cx: &Context<P::Resource>,
        state: StateOf<Self>,
    ) -> Result<Resources, Failure> {
        self.0.1.resources(cx, state).await
    }

    async fn observe(
        &self,
        cx: &Context<P::Resource>,
    ) -> Result<Observation<StateOf<Self>>, Failure> {
        Ok(self.0.0.observe(cx).await)
    }

    fn observe_every(&self, state: StateOf<Self>) -> Duration {
        (self.0.0.observe_every)(state)
    }

    fn attempt_limit(&self, state: StateOf<Self>) -> Duration {
        (self.0.0.attempt_limit)(state)
    }
}
