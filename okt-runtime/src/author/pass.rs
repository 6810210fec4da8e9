//! Passes: the trait that takes their steps, and the context of a step.

mod run;
mod shipped;

use std::ops::Deref;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use okt_core::pass::{Operations, Results};
use okt_core::{Answer, Graph, StateId, Step, reasons};
use okt_reach::Failure;
use okt_wire::object::LifecycleObject;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::run::{FinishedRun, Hands, run};
pub use self::shipped::{
    FreeStyle, FreeStyleHandler, Stepper, StepperHandler, free_style, stepper,
};
use crate::author::context::Context;
use crate::resources::{ApplyReport, Declared, OwnedStatus, Owner, Resources};

/// Takes the steps of a pass, by the handlers of an application.
pub(crate) trait Steps<K: LifecycleObject>: Sync {
    /// Returns the graph of the pass.
    fn graph(&self) -> &'static Graph<'static>;

    /// Returns how long one step may take.
    fn limit(&self) -> Duration;

    /// Takes the step of a state.
    fn take<'a>(
        &'a self,
        given: &'a Pass<K>,
        at: StateId,
    ) -> BoxFuture<'a, Result<Step<Answer>, Failure>>;
}

/// The context of the steps of a pass: the object, and methods to declare the resources that it should own.
///
/// All steps of a pass run share it.
pub struct Pass<K: LifecycleObject> {
    context: Context<K>,
    put: Mutex<Put>,
    hands: tokio::sync::Mutex<Hands>,
}

/// The declarations of the steps so far.
#[derive(Default)]
struct Put {
    /// The state whose step runs.
    at: Option<StateId>,
    /// The results of the steps before.
    results: Results,
    resources: Resources,
    /// The state that declared each of them, and whether it exists.
    whose: Vec<(StateId, bool)>,
    /// How long until the resources are due again.
    due: Option<Duration>,
    /// The failure of the last commit, if it waits for resources.
    awaited: Option<Failure>,
    /// The operations of the commits in the present step.
    operations: Operations,
}

impl Put {
    /// Takes over the report of an apply.
    fn report(&mut self, report: &ApplyReport) {
        self.operations.count(report.operations);
        self.due = soonest(self.due, report.due);
        for (index, (_, made)) in self.whose.iter_mut().enumerate() {
            *made = report.made.contains(&index);
        }
    }
}

/// Returns the sooner of two times, if there is any.
fn soonest(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

impl<K: LifecycleObject> Pass<K> {
    pub(crate) fn new(context: Context<K>, hands: Hands) -> Self {
        Self {
            context,
            put: Mutex::default(),
            hands: tokio::sync::Mutex::new(hands),
        }
    }

    /// Declares a resource that should exist in the cluster.
    ///
    /// OKT applies it at the next [`commit`](Self::commit), or at the end of the pass run. At the end of a complete run
    /// OKT deletes the owned resources that no step has put, except those that hold data.
    /// [`watches`](crate::Application::watches) must declare the kind as owned.
    pub fn put<T: Resource<DynamicType = ()> + Serialize>(&self, object: T) {
        self.declare(Declared::of(object));
    }

    /// Declares a resource with options.
    pub fn declare(&self, declared: Declared) {
        let mut put = self.put.lock();
        let at = put.at.unwrap_or(StateId::UNKNOWN);
        put.whose.push((at, false));
        put.resources.declared.push(declared);
    }

    /// Leaves the resource of this kind and name in the object's own namespace as it is: see [`Resources::keep`].
    pub fn keep<T: Resource<DynamicType = (), Scope: 'static>>(&self, name: impl Into<String>) {
        let mut put = self.put.lock();
        put.resources = std::mem::take(&mut put.resources).keep::<T>(name);
    }

    /// Does the same for a resource that may be in another namespace.
    pub fn keep_across<T: Resource>(&self, object: &ObjectRef<T>) {
        let mut put = self.put.lock();
        put.resources = std::mem::take(&mut put.resources).keep_across(object);
    }

    /// Applies the resources that were put so far, with one request for each that is not as declared.
    ///
    /// # Errors
    ///
    /// If Kubernetes refuses a request, or if a resource that was declared [`ready`](Declared::ready) is not ready yet.
    /// Return the failure with `?`: in the second case the step then waits until the resource is ready.
    pub async fn commit(&self) -> Result<(), Failure> {
        let resources = self.put.lock().resources.clone();
        let mut hands = self.hands.lock().await;
        let report = hands
            .apply(Owner::of(self.object()), &resources, false)
            .await?;
        self.publish(&report);
        let mut put = self.put.lock();
        put.report(&report);
        match report.status() {
            OwnedStatus::AsDeclared => Ok(()),
            OwnedStatus::Awaited(what) => {
                let awaited = Failure::retry(reasons::resources::WAITING, what);
                put.awaited = Some(awaited.clone());
                Err(awaited)
            }
            OwnedStatus::Failed(failure) => Err(failure),
        }
    }

    /// Publishes what an apply has repaired.
    fn publish(&self, report: &ApplyReport) {
        for event in &report.repairs {
            self.context.event(event.clone());
        }
    }

    /// Returns the objects that were put so far as JSON: for tests.
    ///
    /// # Errors
    ///
    /// Why an object cannot be serialized.
    pub fn objects(&self) -> Result<Vec<Value>, String> {
        self.put.lock().resources.objects()
    }

    /// Returns the results of the steps before this one, and the operations in the cluster so far.
    pub fn results(&self) -> Results {
        let put = self.put.lock();
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
