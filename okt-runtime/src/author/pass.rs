//! Passes: which one an application walks through, and what its steps are given.

mod memory;
mod run;
mod shipped;

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use okt_core::pass::{Operations, Results};
use okt_core::{Answer, Graph, StateId, Step, reasons};
use serde::Serialize;

pub(crate) use self::memory::PassMemory;
pub(crate) use self::run::{FinishedRun, Hands, run};
pub use self::shipped::{
    FreeStyle, FreeStyleHandler, Stepper, StepperHandler, free_style, stepper,
};
use crate::author::context::Context;
use crate::failure::Failure;
use crate::resources::{ApplyReport, Declared, OwnedStatus, Resources};
use crate::wire::object::LifecycleObject;

/// What takes the steps of a pass: an application by its handlers.
pub(crate) trait Steps<K: LifecycleObject>: Sync {
    /// The graph of the pass.
    fn graph(&self) -> &'static Graph<'static>;

    /// How long one step may take.
    fn limit(&self) -> Duration;

    /// Takes the step of a state.
    fn take<'a>(
        &'a self,
        given: &'a Pass<K>,
        at: StateId,
    ) -> BoxFuture<'a, Result<Step<Answer>, Failure>>;
}

/// What the steps of a pass are given: the object, and hands to make what it should own in the cluster.
///
/// The same one goes through all steps of a walk.
pub struct Pass<K: LifecycleObject> {
    context: Context<K>,
    put: Mutex<Put>,
    hands: tokio::sync::Mutex<Hands<K>>,
}

/// What the steps have put so far.
#[derive(Default)]
struct Put {
    /// Where the walk is.
    at: Option<StateId>,
    /// What has come of it.
    results: Results,
    resources: Resources,
    /// By whom each of them was declared, and whether it was brought about.
    whose: Vec<(StateId, bool)>,
    /// When something of what was brought about is due.
    due: Option<Duration>,
    /// What the last commit waits for.
    awaited: Option<Failure>,
    /// What the commits of the present step have done.
    operations: Operations,
}

impl Put {
    /// Takes what has come of bringing it about.
    fn report(&mut self, report: &ApplyReport) {
        self.operations.count(report.operations);
        self.due = soonest(self.due, report.due);
        for (index, (_, made)) in self.whose.iter_mut().enumerate() {
            *made = report.made.contains(&index);
        }
    }
}

/// The sooner of two times, where there are any.
fn soonest(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

impl<K: LifecycleObject> Pass<K> {
    fn put_mut(&self) -> MutexGuard<'_, Put> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Should exist in the cluster, as declared here.
    ///
    /// It is made by the next [`commit`](Self::commit), or at the end of the walk; what no step of a whole walk has put
    /// is deleted then, but for what holds data.
    /// The kind must be among what [`watches`](crate::Application::watches) says is owned.
    pub fn put<T: Resource<DynamicType = ()> + Serialize>(&self, object: T) {
        self.declare(Declared::of(object));
    }

    /// The same with options.
    pub fn declare(&self, declared: Declared) {
        let mut put = self.put_mut();
        let at = put.at.unwrap_or(StateId::UNKNOWN);
        put.whose.push((at, false));
        put.resources.declared.push(declared);
    }

    /// Leaves the object of this kind and name in the object's own namespace as it is: see
    /// [`Resources::keep`].
    pub fn keep<T: Resource<DynamicType = (), Scope: 'static>>(&self, name: impl Into<String>) {
        let mut put = self.put_mut();
        put.resources = std::mem::take(&mut put.resources).keep::<T>(name);
    }

    /// The same for an object that may be in another namespace.
    pub fn keep_across<T: Resource>(&self, object: &ObjectRef<T>) {
        let mut put = self.put_mut();
        put.resources = std::mem::take(&mut put.resources).keep_across(object);
    }

    /// Brings about what was put so far, one request for each object that is not as declared.
    ///
    /// # Errors
    ///
    /// What Kubernetes refuses; and where something that was declared [`ready`](Declared::ready) is not yet, a failure
    /// with which the step waits until it is. Hand it on with `?`.
    pub async fn commit(&self) -> Result<(), Failure> {
        let resources = self.put_mut().resources.clone();
        let mut hands = self.hands.lock().await;
        let report = hands.apply(&self.context, &resources, false).await?;
        let mut put = self.put_mut();
        put.report(&report);
        match report.settlement {
            OwnedStatus::AsDeclared => Ok(()),
            OwnedStatus::Awaited(what) => {
                let awaited = Failure::retry(reasons::resources::WAITING, what);
                put.awaited = Some(awaited.clone());
                Err(awaited)
            }
            OwnedStatus::Failed(failure) => Err(failure),
        }
    }

    /// What the steps before this one have come to, and what was done in the cluster so far.
    pub fn results(&self) -> Results {
        let put = self.put_mut();
        let mut results = put.results.clone();
        results.operations.count(put.operations);
        results
    }
}

impl<K: LifecycleObject> Deref for Pass<K> {
    type Target = Context<K>;

    fn deref(&self) -> &Context<K> {
        &self.context
    }
}
