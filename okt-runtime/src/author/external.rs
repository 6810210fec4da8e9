//! An application that is one external resource: four methods instead of a handler for each state.

use std::future::Future;
use std::time::Duration;

use kube::Resource;
use okt_core::record::Phase;
use okt_core::{Answer, Delegate, Delegated, Dispatch, Graph, Lifecycle, Mark};
use okt_reach::Failure;
use okt_wire::object::{LifecycleObject, position_of};
use serde::Serialize;

use crate::author::application::{Application, ExtraOf, Spec, StateOf};
use crate::author::context::{Action, Context, StateOnRecord};
use crate::author::observation::Observation;
use crate::resources::{Resources, Watches};

/// The states of an external application.
type States<E> = <<E as External>::Resource as LifecycleObject>::State;

/// The fields that an external application adds to its status.
type Added<E> = <<E as External>::Resource as LifecycleObject>::Extra;

/// The result of [`External::get`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The application does not exist.
    Absent,
    /// The application exists, but is not as the object asks for in its state.
    Outdated,
    /// The application is becoming what the object asks for; the text reports the progress, for people.
    Pending(String),
    /// The application is as the object asks for in its state.
    Ready,
}

/// An application that is one resource somewhere (a bucket, an account, a virtual machine): four methods instead of
/// one handler for each state.
///
/// It becomes an [`Application`] as `Delegated(AsResource(application))`.
///
/// | state | OKT calls | until `get` finds it |
/// |---|---|---|
/// | entry | `create` if it is absent, `update` if it is outdated | ready |
/// | leaf | `delete` | absent |
/// | every other state that is not idle | `update` if it is outdated; again when the spec changes | ready |
///
/// Then a passing state takes its Next, and the object stays in a resting one.
/// OKT waits [`observe_every`](Self::observe_every) between calls. While `get` finds it pending, OKT calls nothing but
/// `delete` in a leaf.
/// `get` answers for the state that the object is in ([`Context::state`]).
/// The entry and every leaf must have work (no `idle`); otherwise this does not compile.
///
/// # Guarantees
///
/// OKT never calls `create` if `get` finds something. So an application that was created just before a crash is found,
/// not created twice.
///
/// # Assumptions
///
/// OKT may repeat all four calls: after a failure, a crash, or when an answer was lost.
/// If `get` does not show the result of `create` at once, `create` must be idempotent by [`Action::id`].
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use kube::{CustomResource, ResourceExt};
/// use okt::{Action, AsResource, Context, Delegated, External, Failure, Found};
/// # use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # pub enum BucketState { #[entry] #[child(Kept)] Made, #[rest] #[child(Gone)] Kept, #[leaf] Gone }
/// # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "demo.okt.dev", version = "v1", kind = "Bucket", namespaced, status = "Status<BucketState>")]
/// # pub struct BucketSpec { #[serde(default)] pub lifecycle: Desired<BucketState>, pub size: u32 }
///
/// /// Stands for a service with an API.
/// #[derive(Default)]
/// struct Buckets(Mutex<BTreeMap<String, u32>>);
///
/// impl External for Buckets {
///     type Resource = Bucket;
///
///     async fn get(&self, cx: &Context<Bucket>) -> Result<Found, Failure> {
///         let (name, size) = (cx.object().name_any(), cx.object().spec.size);
///         Ok(match self.0.lock().unwrap().get(&name) {
///             None => Found::Absent,
///             Some(there) if *there != size => Found::Outdated,
///             Some(_) => Found::Ready,
///         })
///     }
///
///     async fn create(&self, cx: &Action<Bucket>) -> Result<(), Failure> {
///         self.update(cx).await
///     }
///
///     async fn update(&self, cx: &Action<Bucket>) -> Result<(), Failure> {
///         let (name, size) = (cx.object().name_any(), cx.object().spec.size);
///         self.0.lock().unwrap().insert(name, size);
///         Ok(())
///     }
///
///     async fn delete(&self, cx: &Action<Bucket>) -> Result<(), Failure> {
///         self.0.lock().unwrap().remove(&cx.object().name_any());
///         Ok(())
///     }
/// }
///
/// # fn is_one(_: impl okt::Application<Resource = Bucket>) {}
/// # is_one(
/// Delegated(AsResource(Buckets::default()))
/// # );
/// ```
pub trait External: Send + Sync + Sized + 'static {
    /// The custom resource.
    type Resource: LifecycleObject;

    /// Observes the application, like [`Application::observe`]: it must be quick and change nothing.
    ///
    /// At rest, [`Found::Absent`] moves the object to its entry, [`Found::Outdated`] to
    /// [`repaired_in`](Self::repaired_in), and [`Found::Pending`] counts as an unreachable application.
    ///
    /// # Errors
    ///
    /// At rest a failure counts like an unreachable application. In the work of a state it is a failure of that work.
    fn get(
        &self,
        cx: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<Found, Failure>> + Send;

    /// Creates the application.
    ///
    /// # Errors
    ///
    /// OKT retries a failure with backoff, unless it is permanent.
    fn create(
        &self,
        cx: &Action<Self::Resource>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Updates the application to what the object asks for in its state.
    ///
    /// # Errors
    ///
    /// OKT retries a failure with backoff, unless it is permanent.
    fn update(
        &self,
        cx: &Action<Self::Resource>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Deletes the application, or begins to.
    ///
    /// # Errors
    ///
    /// OKT retries a failure with backoff, unless it is permanent. It keeps the object until the application is gone.
    fn delete(
        &self,
        cx: &Action<Self::Resource>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns the state that repairs an application that others changed while the object is in the resting state
    /// `state`; an edge must lead there.
    ///
    /// By default none: the application stays as it is until the spec changes.
    fn repaired_in(&self, state: States<Self>) -> Option<States<Self>> {
        let _ = state;
        None
    }

    /// See [`Application::watches`].
    fn watches(watches: Watches<Self::Resource>) -> Watches<Self::Resource> {
        watches
    }

    /// See [`Application::resources`].
    ///
    /// # Errors
    ///
    /// On a failure the cluster stays as it is, the work of the state waits, and the conditions report the failure.
    fn resources(
        &self,
        cx: &Context<Self::Resource>,
        state: States<Self>,
    ) -> impl Future<Output = Result<Resources, Failure>> + Send {
        let _ = (cx, state);
        async { Ok(Resources::new()) }
    }

    /// See [`Application::extra`].
    ///
    /// # Errors
    ///
    /// On a failure the previous fields stay.
    fn extra(
        &self,
        cx: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<Added<Self>, Failure>> + Send {
        let _ = cx;
        async { Ok(Added::<Self>::default()) }
    }

    /// See [`Application::revision`].
    fn revision(object: &Self::Resource) -> impl Serialize + Send {
        let _ = object;
        Spec
    }

    /// See [`Application::observe_every`]; also the wait between calls for one piece of work.
    fn observe_every(&self, state: States<Self>) -> Duration {
        let _ = state;
        Duration::from_secs(30)
    }

    /// See [`Application::attempt_limit`].
    fn attempt_limit(&self, state: States<Self>) -> Duration {
        let _ = state;
        Duration::from_hours(1)
    }
}

/// Does the work of every state with the four methods of an [`External`]; used as [`Delegated`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AsResource<E>(pub E);

/// Returns whether the entry and every leaf have work. Otherwise the application would never be created, or never
/// deleted.
const fn begins_and_ends(graph: &Graph<'_>) -> bool {
    let mut index = 0;
    while index < graph.states.len() {
        let state = &graph.states[index];
        if state.is(Mark::Idle) && (state.is(Mark::Entry) || state.is(Mark::Leaf)) {
            return false;
        }
        index += 1;
    }
    true
}

fn is<E: External>(state: States<E>, mark: Mark) -> bool {
    let state = States::<E>::GRAPH.get(state.id());
    state.is_some_and(|state| state.is(mark))
}

impl<E: External> Delegate<States<E>> for AsResource<E> {
    type Context = Action<E::Resource>;
    type Error = Failure;

    async fn delegate(
        &self,
        state: States<E>,
        cx: &Action<E::Resource>,
    ) -> Result<Answer, Failure> {
        const {
            assert!(
                begins_and_ends(States::<E>::GRAPH),
                "`create` is called in the entry and `delete` in a leaf: take `idle` from them"
            );
        }
        let found = self.0.get(cx).await?;
        let is_leaf = is::<E>(state, Mark::Leaf);
        match &found {
            Found::Absent if is_leaf => return Ok(self.judge(state, cx, found)),
            Found::Absent if is::<E>(state, Mark::Entry) => self.0.create(cx).await?,
            // The next observation leads to the entry.
            Found::Absent => return Err(Failure::retry("Gone", "there is no resource to update")),
            Found::Outdated | Found::Pending(_) | Found::Ready if is_leaf => {
                self.0.delete(cx).await?;
            }
            Found::Outdated => self.0.update(cx).await?,
            Found::Pending(_) | Found::Ready => return Ok(self.judge(state, cx, found)),
        }
        let found = self.0.get(cx).await?;
        Ok(self.judge(state, cx, found))
    }
}

impl<E: External> AsResource<E> {
    /// Returns the answer of a state's work, for what `get` found.
    fn judge(&self, state: States<E>, cx: &Action<E::Resource>, found: Found) -> Answer {
        let is_leaf = is::<E>(state, Mark::Leaf);
        let waits_for = match found {
            Found::Absent if is_leaf => None,
            Found::Ready if !is_leaf => None,
            Found::Absent => Some("it does not exist yet".to_owned()),
            Found::Pending(why) => Some(why),
            Found::Outdated | Found::Ready if is_leaf => Some("it is not gone yet".to_owned()),
            Found::Outdated | Found::Ready => Some("it does not match the spec yet".to_owned()),
        };
        match waits_for {
            Some(why) => {
                cx.progress(why);
                Answer::Wait(self.0.observe_every(state))
            }
            None if is_leaf || is::<E>(state, Mark::Rest) => Answer::Stay,
            None => Answer::Next,
        }
    }
}

impl<E> Application for Delegated<AsResource<E>>
where
    E: External<
        Resource: LifecycleObject<
            State: Dispatch<Self, Context = Action<E::Resource>, Error = Failure>,
        >,
    >,
{
    type Resource = E::Resource;

    async fn observe(
        &self,
        cx: &Context<E::Resource>,
    ) -> Result<Observation<StateOf<Self>>, Failure> {
        let application = &self.0.0;
        let found = application.get(cx).await?;
        let StateOnRecord::Known(state) = cx.state() else {
            // The work of the entry adopts an existing application.
            return Ok(Observation::unobserved());
        };
        let action = position_of(cx.object()).and_then(|position| position.action.as_ref());
        // While work is pending, a difference is expected: the work removes it.
        let works = action.is_some_and(|action| action.phase == Phase::Pending);
        Ok(match found {
            Found::Absent if cx.is_deleting() || (works && is::<E>(state, Mark::Entry)) => {
                Observation::unobserved()
            }
            Found::Absent => Observation::absent(),
            Found::Outdated | Found::Pending(_) | Found::Ready if works => {
                Observation::unobserved()
            }
            Found::Pending(why) => Observation::unreachable(why),
            Found::Ready => Observation::in_state(state),
            Found::Outdated => {
                let seen = Observation::in_state(state);
                // After a change of the spec a difference is expected, and the work of the state runs again.
                let status = cx.object().status_of();
                let known = status.and_then(|status| status.observed_generation);
                let is_news = known != cx.object().meta().generation;
                match application.repaired_in(state).filter(|_| !is_news) {
                    Some(to) => seen.event(to),
                    None => seen,
                }
            }
        })
    }

    fn watches(watches: Watches<E::Resource>) -> Watches<E::Resource> {
        E::watches(watches)
    }

    async fn resources(
        &self,
        cx: &Context<E::Resource>,
        state: StateOf<Self>,
    ) -> Result<Resources, Failure> {
        self.0.0.resources(cx, state).await
    }

    async fn extra(&self, cx: &Context<E::Resource>) -> Result<ExtraOf<Self>, Failure> {
        self.0.0.extra(cx).await
    }

    fn revision(object: &E::Resource) -> impl Serialize + Send {
        E::revision(object)
    }

    fn observe_every(&self, state: StateOf<Self>) -> Duration {
        self.0.0.observe_every(state)
    }

    fn attempt_limit(&self, state: StateOf<Self>) -> Duration {
        self.0.0.attempt_limit(state)
    }
}
