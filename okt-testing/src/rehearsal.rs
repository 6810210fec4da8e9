//! Rehearses the life of an application: runs it once without faults, then many times with one fault each.
//!
//! The faults are: the operator crashes before or after one of its writes; an event is lost, duplicated or merged
//! with the next; a restarted operator is shown the past; work is lost, done twice or its result is lost; the object
//! is deleted at some moment; two operators run at once. A [`Rehearsal`] takes an object through desired states and
//! events, records the writes, events and attempts of the operator, and derives a run for each possible fault. After
//! each run the object must be where it was without the fault, must have taken no undeclared edge, must have correct
//! conditions, and the operator must write nothing more.
//!
//! ```no_run
//! # use okt::{Application, LifecycleSpec};
//! # fn databases<A: Application + Clone>(fresh: fn() -> A, end: okt::StateOf<A>) {
//! use okt_testing::Rehearsal;
//! use serde_json::json;
//!
//! Rehearsal::of(fresh)
//!     .object(json!({
//!         "apiVersion": "demo.okt.dev/v1",
//!         "kind": "Database",
//!         "metadata": { "name": "orders" },
//!         "spec": { "storage": "1Gi" },
//!     }))
//!     .ask_for(json!({ "visit": { "state": "Servicing", "request": "nightly-1" } }))
//!     .patch(json!({ "spec": { "storage": "2Gi" } }))
//!     .ask_for(json!({ "state": "End" }))
//!     .delete()
//!     .ends_in(end) // e.g. DatabaseState::End
//!     .check();
//! # }
//! ```
//!
//! An application that waits for other controllers needs them in the rehearsal:
//! `.cluster(|client| deployment_controller().run(client))`; see [`controllers`](crate::controllers).
//!
//! If a run fails, the report names it. `OKT_REHEARSAL='crash after write 5' cargo test` repeats that run alone and
//! prints its log; `OKT_REHEARSAL=undisturbed` does so for the run without faults, and lists its writes.
//! `OKT_REHEARSAL=1/4` runs every fourth plan, where all take too long.
//!
//! Each run has its own Kubernetes API and its own paused tokio runtime, so hours of waiting pass at once. The
//! application must keep its state in memory, in the value that `fresh` returns. The operators of one run use clones
//! of this value, and the clones must share the state.

mod conversion;
mod difference;
mod judge;
mod log;
mod plan;
mod report;
mod rules;
mod run;
mod stage;
mod step;
mod writes;
mod written;

pub use self::{report::Report, rules::Rules};

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use okt_runtime::{Application, Operator, StateOf};
use serde_json::{Value, json};

use self::step::RehearsalStep;
use crate::ApiServer;

/// The default limit for the time until the object of a run is at rest.
const PATIENCE: Duration = Duration::from_hours(12);

/// The life of an object, and the operator that manages it; see the [module](self).
pub struct Rehearsal<A: Application> {
    fresh: Box<dyn Fn() -> A + Send + Sync>,
    object: Value,
    cluster: Vec<Box<Part>>,
    steps: Vec<RehearsalStep<A>>,
    end: Option<StateOf<A>>,
    claims: Vec<(String, Box<Claim>)>,
    operator: Box<Adjust<A>>,
    effects: Option<Box<Effects<A>>>,
    /// Values of owned resources that differ by nature: the plural and the name of the resource, and the pointer.
    random: Vec<(String, String)>,
    patience: Duration,
    through: Box<dyn Fn(Client) -> Client + Send + Sync>,
}

type Part = dyn Fn(Client) -> BoxFuture<'static, ()> + Send + Sync;
type Claim = dyn Fn(&ApiServer) -> bool + Send + Sync;
type Adjust<A> = dyn Fn(Operator<A>) -> Operator<A> + Send + Sync;
type Effects<A> = dyn Fn(&A) -> Vec<String> + Send + Sync;

impl<A: Application + Clone> Rehearsal<A> {
    /// Starts a rehearsal with a function that creates a fresh application; clones must share its state.
    pub fn of(fresh: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self {
            fresh: Box::new(fresh),
            object: Value::Null,
            cluster: Vec::new(),
            steps: Vec::new(),
            end: None,
            claims: Vec::new(),
            operator: Box::new(|operator| operator),
            effects: None,
            random: Vec::new(),
            patience: PATIENCE,
            through: Box::new(|client| client),
        }
    }

    /// Sets the object that is created at the beginning of each run, in any version of its kind: then the steps are of a
    /// user who knows only this version.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.object = object;
        self
    }

    /// Adds a part of the cluster, such as another controller, which each run starts with a client of its own.
    ///
    /// Its writes do not count as the operator's, and no fault strikes it. [`controllers`](crate::controllers) has
    /// stand-ins for the usual ones: `.cluster(|client| kubelet().run(client))`.
    #[must_use]
    pub fn cluster<F>(mut self, part: impl Fn(Client) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let part = move |client| part(client).boxed();
        self.cluster.push(Box::new(part));
        self
    }

    /// Sets the state in which the object rests at the end; required. After a deletion it is the last state before the
    /// object is gone.
    ///
    /// Without it, a life that ends too early, in a state for failures, would pass: every run ends there.
    #[must_use]
    pub fn ends_in(mut self, state: StateOf<A>) -> Self {
        self.end = Some(state);
        self
    }

    /// Adds a claim about the cluster that must be true at the end of the undisturbed run, and of every run that is
    /// compared with it.
    #[must_use]
    pub fn holds(
        mut self,
        claim: &str,
        is_true: impl Fn(&ApiServer) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.claims.push((claim.to_owned(), Box::new(is_true)));
        self
    }

    /// Adds a step that changes the desired state (a merge patch of `spec.lifecycle`).
    #[must_use]
    pub fn ask_for(self, lifecycle: impl Into<Value>) -> Self {
        self.patch(json!({ "spec": { "lifecycle": lifecycle.into() } }))
    }

    /// Adds a step that changes the object (a merge patch).
    #[must_use]
    pub fn patch(mut self, patch: Value) -> Self {
        self.steps.push(RehearsalStep::Patch(patch));
        self
    }

    /// Adds a step that changes the application; the name is for the report.
    #[must_use]
    pub fn happens(mut self, name: &str, what: impl Fn(&A) + Send + Sync + 'static) -> Self {
        self.steps
            .push(RehearsalStep::Happens(name.to_owned(), Box::new(what)));
        self
    }

    /// Adds a step that makes a request of this kind for the object, of this name and with these arguments.
    ///
    /// Each run must end with the same outcome and result as the undisturbed one.
    #[must_use]
    pub fn request(mut self, kind: &str, name: &str, args: Value) -> Self {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        self.steps.push(RehearsalStep::Request { kind, name, args });
        self
    }

    /// Adds a step that deletes the object.
    #[must_use]
    pub fn delete(mut self) -> Self {
        self.steps.push(RehearsalStep::Delete);
        self
    }

    /// Adjusts the operator (backoff, concurrency, ..); by default it is as [`Operator::new`] builds it.
    #[must_use]
    pub fn operator(
        mut self,
        adjust: impl Fn(Operator<A>) -> Operator<A> + Send + Sync + 'static,
    ) -> Self {
        self.operator = Box::new(adjust);
        self
    }

    /// Sets a function that lists the effects of the work on the application, one text for each effect. Each run must
    /// have the same effects as the undisturbed run, each equally often.
    ///
    /// Handlers may run again under the same id; both runs must then have one effect. Runs that end elsewhere are not
    /// compared: deletions, and lost work for whose failure an edge waits.
    #[must_use]
    pub fn effects(mut self, effects: impl Fn(&A) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.effects = Some(Box::new(effects));
        self
    }

    /// Names a value of an owned resource that differs from run to run by nature, such as a random password. Runs are
    /// compared without it.
    ///
    /// `resource` is its plural and name, `pointer` a JSON pointer: `.random("secrets/orders-admin", "/data/password")`.
    /// A rehearsal fails if no undisturbed run has such a value.
    #[must_use]
    pub fn random(mut self, resource: &str, pointer: &str) -> Self {
        self.random.push((resource.to_owned(), pointer.to_owned()));
        self
    }

    /// Sets how long a run may take until its object is at rest, on tokio's clock; 12 hours by default.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Wraps the client of every operator, e.g. to plant a bug and to check that the rehearsal finds it.
    #[doc(hidden)]
    #[must_use]
    pub fn __through(mut self, through: impl Fn(Client) -> Client + Send + Sync + 'static) -> Self {
        self.through = Box::new(through);
        self
    }
}
