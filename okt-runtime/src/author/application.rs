//! The trait `Application`, which you implement in addition to the handlers of the states.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use okt_core::{Answer, Dispatch, Graph, Kind, Lifecycle, PassDispatch, StateId, Step};
use okt_reach::Failure;
use okt_wire::digest;
use okt_wire::object::LifecycleObject;
use okt_wire::revision::Revision;
use serde::{Serialize, Serializer};

use crate::author::admission::Admission;
use crate::author::asked::ANSWER_LIMIT;
use crate::author::context::{Action, Context};
use crate::author::limit::Limit;
use crate::author::observation::Observation;
use crate::author::pass::{Pass, Steps};
use crate::author::windows::Windows;
use crate::requests::Requests;
use crate::resources::{Resources, Watches};

/// The states of an application.
pub type StateOf<A> = <<A as Application>::Resource as LifecycleObject>::State;

/// The gates of an application.
pub type GateOf<A> = <StateOf<A> as Lifecycle>::Gate;

/// The fields that an application adds to its status.
pub type ExtraOf<A> = <<A as Application>::Resource as LifecycleObject>::Extra;

/// An application that OKT operates.
///
/// Only [`Resource`](Self::Resource) is required. The handlers of the states are a separate trait, which
/// `#[lifecycle_graph]` generates.
pub trait Application: Send + Sync + Sized + 'static {
    /// The custom resource.
    type Resource: LifecycleObject<
        State: Dispatch<Self, Context = Action<Self::Resource>, Error: Into<Failure>>,
    >;

    /// Observes the application.
    ///
    /// OKT calls it in every reconciliation that takes no result of a handler, and every
    /// [`observe_every`](Self::observe_every), except in a leaf. It must be quick (see
    /// [`answer_limit`](Self::answer_limit)) and change nothing.
    /// If [`Context::state`] is `New`, return the state of an application that exists already, so that OKT adopts it.
    ///
    /// # Errors
    ///
    /// From the third failure in a row, the conditions report it, as they report an unreachable application. OKT waits
    /// for the next observation before it enters a new object at the entry.
    fn observe(
        &self,
        cx: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<Observation<StateOf<Self>>, Failure>> + Send {
        let _ = cx;
        async { Ok(Observation::unobserved()) }
    }

    /// Declares the kinds that the application owns in the cluster, and those that it refers to.
    ///
    /// OKT calls it when the operator starts, and to compute the operator's permissions.
    fn watches(watches: Watches<Self::Resource>) -> Watches<Self::Resource> {
        watches
    }

    /// Declares the kinds of requests that objects serve, in states with `#[visit(args = ..)]`.
    ///
    /// OKT calls it when the operator starts, and to make the CRDs and compute the operator's permissions.
    fn requests(requests: Requests<Self::Resource>) -> Requests<Self::Resource> {
        requests
    }

    /// Declares how objects are checked and completed before the API server stores them.
    ///
    /// OKT calls it when the operator starts, and to print what installs the webhooks.
    fn admission(admission: Admission<Self::Resource>) -> Admission<Self::Resource> {
        admission
    }

    /// Declares the resources that should exist in the cluster while the object is in a state.
    ///
    /// OKT calls it in every reconciliation that moves nothing, after the position is recorded and before the work of the
    /// state begins; not while the object is paused or the operator shuts down. It
    /// must be quick (see [`answer_limit`](Self::answer_limit)) and change nothing.
    /// OKT deletes resources that are no longer declared, except those that hold data (volumes and claims of them,
    /// Secrets, namespaces, CRDs).
    /// OKT creates no resources for an object that is being deleted.
    ///
    /// # Errors
    ///
    /// On a failure the cluster stays as it is, the work of the state waits, and the conditions report the failure.
    fn resources(
        &self,
        cx: &Context<Self::Resource>,
        state: StateOf<Self>,
    ) -> impl Future<Output = Result<Resources, Failure>> + Send {
        let _ = (cx, state);
        async { Ok(Resources::new()) }
    }

    /// Returns the times at which an object may pass a gate `#[window(..)]`; always, by default.
    ///
    /// OKT calls it in every reconciliation. It must be quick, change nothing, and depend on the object alone.
    fn windows(&self, object: &Self::Resource, gate: GateOf<Self>) -> Windows {
        let _ = (object, gate);
        Windows::always()
    }

    /// Returns whether an object may pass a gate `#[approval(..)]` only with an approved plan; always, by default.
    ///
    /// OKT calls it in every reconciliation. It must be quick, change nothing, and depend on the object alone (e.g. on
    /// whether a change is a major one).
    fn needs_approval(&self, object: &Self::Resource, gate: GateOf<Self>) -> bool {
        let _ = (object, gate);
        true
    }

    /// Returns among how many objects this one may pass a gate `#[limit(..)]`; one at a time, by default.
    ///
    /// OKT calls it in every reconciliation. It must be quick, change nothing, and depend on the object alone.
    fn limit(&self, object: &Self::Resource, gate: GateOf<Self>) -> Limit {
        let _ = (object, gate);
        Limit::default()
    }

    /// Returns the pass that runs in every reconciliation, if there is one.
    ///
    /// For a resource without a lifecycle, the pass does everything. For a resource with one, the pass runs first: work
    /// begins only when the pass is at its leaf, and `Ready` is true when both are ready.
    /// When the object is deleted and has reached its last state, the pass takes its path for deletion.
    fn pass() -> Option<PassGraph<Self>> {
        None
    }

    /// Computes the fields that the application adds to the status.
    ///
    /// OKT writes them with every transition, and otherwise at most every ten seconds.
    ///
    /// # Errors
    ///
    /// On a failure the previous fields stay.
    fn extra(
        &self,
        cx: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<ExtraOf<Self>, Failure>> + Send {
        let _ = cx;
        async { Ok(ExtraOf::<Self>::default()) }
    }

    /// Returns the part of the object that the handlers act upon; a change of it is a new revision.
    ///
    /// By default it is the spec without its lifecycle field, and only somebody's change of the spec makes a new revision
    /// (`metadata.generation`): a release whose spec has one more field moves no object.
    /// Leave out fields that others may change without work for the application (replicas that an autoscaler owns).
    /// What you return yourself counts as it is: a release that returns something else is a new revision of every object,
    /// which the subcommand `preview` shows.
    fn revision(object: &Self::Resource) -> impl Serialize + Send {
        let _ = object;
        Spec
    }

    /// Returns how often OKT observes the application while nothing happens; every 30 s by default.
    ///
    /// An observation costs a call to the application, and no request to the API server.
    fn observe_every(&self, state: StateOf<Self>) -> Duration {
        let _ = state;
        Duration::from_secs(30)
    }

    /// Returns how long an answer of `observe`, `resources` or `extra` may take; ten seconds by default.
    ///
    /// OKT gives up a call that takes longer. An application that does not answer `observe` counts as unreachable, and
    /// is called less and less often until it answers.
    /// Other objects do not wait meanwhile.
    fn answer_limit(&self) -> Duration {
        ANSWER_LIMIT
    }

    /// Returns which time the deadlines of a state count (`after`, and `#[deadline]`); by default that in which an operator
    /// acts on the object.
    ///
    /// It does not count pauses, nor the time in which there is no operator: of that, a quarter of the deadline at most,
    /// because a process may not have recorded its last time. A process that begins to act looks at what is there before
    /// a deadline comes: for a minute, or a quarter of the deadline if that is shorter.
    fn deadlines_count(&self, state: StateOf<Self>) -> DeadlineClock {
        let _ = state;
        DeadlineClock::Acting
    }

    /// Returns how long one attempt of a state's work may take; one hour by default. A longer attempt counts as failed.
    fn attempt_limit(&self, state: StateOf<Self>) -> Duration {
        let _ = state;
        Duration::from_hours(1)
    }
}

/// The time that deadlines count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeadlineClock {
    /// The time in which an operator acts on the object.
    Acting,
    /// The time since the arrival in the state, whatever happened in it: what waits is a promise to somebody outside, as
    /// an offer that lapses.
    Wall,
}

/// What an application returns as the revision by default: the spec counts.
pub(crate) struct Spec;

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(SPEC)
    }
}

/// A text that no application returns by chance.
const SPEC: &str = "the spec without its lifecycle field, and nothing else of the object";

/// Returns the revision of an object.
pub fn revision_of<A: Application>(object: &A::Resource) -> Revision {
    let revision = serde_json::to_vec(&A::revision(object)).unwrap_or_default();
    if serde_json::from_slice::<&str>(&revision).is_ok_and(|text| text == SPEC) {
        Revision::of_spec(object)
    } else {
        Revision::OnPurpose(digest::revision_hash(&revision))
    }
}

/// The default time limit of a step.
const STEP_LIMIT: Duration = Duration::from_mins(1);

/// A function that takes one step of a pass.
type TakeStep<A> = for<'a> fn(
    &'a A,
    &'a Pass<<A as Application>::Resource>,
    StateId,
) -> BoxFuture<'a, Result<Step<Answer>, Failure>>;

/// A pass graph whose steps an application takes; for [`Application::pass`].
pub struct PassGraph<A: Application> {
    graph: &'static Graph<'static>,
    take_step: TakeStep<A>,
    step_limit: Duration,
}

impl<A: Application> PassGraph<A> {
    /// Returns the graph of `P`, an enum with `#[lifecycle_graph(pass)]` whose handler trait the application
    /// implements.
    pub fn of<P>() -> Self
    where
        P: PassDispatch<A, Context = Pass<A::Resource>, Error: Into<Failure>>,
    {
        const {
            assert!(
                matches!(P::GRAPH.kind, Kind::Pass),
                "only an enum with `#[lifecycle_graph(pass)]` is a pass"
            );
        }
        Self {
            graph: P::GRAPH,
            take_step: take_step::<A, P>,
            step_limit: STEP_LIMIT,
        }
    }

    /// Returns the graph, to draw or describe it.
    pub fn graph(&self) -> &'static Graph<'static> {
        self.graph
    }

    /// Sets how long one step may take; one minute by default.
    ///
    /// OKT gives up a longer step, which then counts as failed. Other objects do not wait meanwhile.
    #[must_use]
    pub fn step_limit(mut self, limit: Duration) -> Self {
        self.step_limit = limit;
        self
    }
}

fn take_step<'a, A, P>(
    application: &'a A,
    cx: &'a Pass<A::Resource>,
    at: StateId,
) -> BoxFuture<'a, Result<Step<Answer>, Failure>>
where
    A: Application,
    P: PassDispatch<A, Context = Pass<A::Resource>, Error: Into<Failure>>,
{
    async move {
        match P::from_id(at) {
            Some(state) => state.step(application, cx).await.map_err(Into::into),
            // Only a graph of another enum has such a state.
            None => Ok(Step::done(Answer::Stay)),
        }
    }
    .boxed()
}

/// An application that takes the steps of its pass.
pub(crate) struct StepsOf<'a, A: Application> {
    pub(crate) pass: &'a PassGraph<A>,
    pub(crate) application: &'a A,
}

impl<A: Application> Steps<A::Resource> for StepsOf<'_, A> {
    fn graph(&self) -> &'static Graph<'static> {
        self.pass.graph
    }

    fn limit(&self) -> Duration {
        self.pass.step_limit
    }

    fn take<'a>(
        &'a self,
        given: &'a Pass<A::Resource>,
        at: StateId,
    ) -> BoxFuture<'a, Result<Step<Answer>, Failure>> {
        (self.pass.take_step)(self.application, given, at)
    }
}
