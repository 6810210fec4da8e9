//! The life of an application, rehearsed: once undisturbed, then again and again with one thing going wrong.
//!
//! An operator may crash before and after each of its writes, an event may be lost, doubled or merged with the
//! next, a restarted operator may be shown the past, work may be lost, done twice or end unheard, the object may be
//! deleted at any moment, and two operators may run at once. A [`Rehearsal`] walks an object through wishes and
//! events, takes down what the operator writes, is told and starts, and from that derives every such run. After
//! each of them the object must be where it was without the disturbance, having taken no undeclared edge, with
//! truthful conditions, and in silence.
//!
//! ```no_run
//! # use okt_runtime::{Application, LifecycleSpec};
//! # fn databases<A: Application + Clone>(fresh: fn() -> A) {
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
//!     .check();
//! # }
//! ```
//!
//! Each run has a Kubernetes API and a paused tokio runtime of its own, so hours of waiting pass at once. What the
//! application keeps must be in memory, in what `fresh` makes: its clones share it, as the operators of one run do.

mod judge;
mod plan;
mod report;
mod rules;
mod stage;
mod step;

pub use self::{report::Report, rules::Rules};

use std::time::Duration;

use kube::Client;
use okt_runtime::{Application, Operator};
use serde_json::{Value, json};

use self::{
    plan::{Course, Plan},
    stage::{Ended, Stage},
    step::Step,
};

/// The longest that a run may take until its object is at rest again, by default.
const PATIENCE: Duration = Duration::from_hours(12);

/// After as many runs that went wrong the rest is left out.
const ENOUGH: usize = 10;

/// How often a plan is run that meets nothing.
const TRIES: usize = 20;

/// The variable that names the plans to be run alone.
const CHOSEN: &str = "OKT_REHEARSAL";

/// The walk of an object, and the operator that leads it; see the [module](self).
pub struct Rehearsal<A: Application> {
    fresh: Box<dyn Fn() -> A>,
    object: Value,
    steps: Vec<Step<A>>,
    operator: Box<Adjust<A>>,
    effects: Option<Box<Effects<A>>>,
    patience: Duration,
    through: Box<dyn Fn(Client) -> Client>,
}

type Adjust<A> = dyn Fn(Operator<A>) -> Operator<A>;
type Effects<A> = dyn Fn(&A) -> Vec<String>;

impl<A: Application + Clone> Rehearsal<A> {
    /// Begins with how an application is made that nothing has happened to; its clones share what it keeps.
    pub fn of(fresh: impl Fn() -> A + 'static) -> Self {
        Self {
            fresh: Box::new(fresh),
            object: Value::Null,
            steps: Vec::new(),
            operator: Box::new(|operator| operator),
            effects: None,
            patience: PATIENCE,
            through: Box::new(|client| client),
        }
    }

    /// The object that is created at the beginning of each run.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.object = object;
        self
    }

    /// Then its lifecycle field becomes this (a merge patch of `spec.lifecycle`).
    #[must_use]
    pub fn ask_for(self, lifecycle: impl Into<Value>) -> Self {
        self.patch(json!({ "spec": { "lifecycle": lifecycle.into() } }))
    }

    /// Then somebody changes it (a merge patch).
    #[must_use]
    pub fn patch(mut self, patch: Value) -> Self {
        self.steps.push(Step::Patch(patch));
        self
    }

    /// Then something happens to the application; the name is for the report.
    #[must_use]
    pub fn happens(mut self, name: &str, what: impl Fn(&A) + 'static) -> Self {
        self.steps
            .push(Step::Happens(name.to_owned(), Box::new(what)));
        self
    }

    /// Then it is deleted.
    #[must_use]
    pub fn delete(mut self) -> Self {
        self.steps.push(Step::Delete);
        self
    }

    /// How the operator is built (backoff, concurrency, ..); by default as [`Operator::new`] does.
    #[must_use]
    pub fn operator(mut self, adjust: impl Fn(Operator<A>) -> Operator<A> + 'static) -> Self {
        self.operator = Box::new(adjust);
        self
    }

    /// What the work has brought about in the application, one word for each effect: each run has to have the same
    /// ones as the undisturbed run, each as often.
    ///
    /// Handlers may run again under the same id; what they do must then be one effect. Not compared are runs that
    /// end elsewhere: deletions, and lost work whose failure an edge waits for.
    #[must_use]
    pub fn effects(mut self, effects: impl Fn(&A) -> Vec<String> + 'static) -> Self {
        self.effects = Some(Box::new(effects));
        self
    }

    /// How long a run may take until its object is at rest, on tokio's clock; 12 hours by default.
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Has every operator reach the API through this, which may plant a bug to see whether it is found.
    #[doc(hidden)]
    #[must_use]
    pub fn __through(mut self, through: impl Fn(Client) -> Client + 'static) -> Self {
        self.through = Box::new(through);
        self
    }

    /// Runs every plan, and tells what went wrong; after ten runs that did, the rest is left out.
    ///
    /// With `OKT_REHEARSAL` in the environment only the plan of this name is run, or where there is none of this
    /// name those whose names contain it.
    ///
    /// # Panics
    ///
    /// Within a tokio runtime: each run has one of its own, so the test is a plain `#[test]`. And if the CRD of the
    /// application's kind cannot be made.
    pub fn run(&self) -> Report {
        assert!(
            tokio::runtime::Handle::try_current().is_err(),
            "a rehearsal makes a runtime for each of its runs: call it from a plain #[test]"
        );
        let undisturbed = self.stage(Plan::Undisturbed, None);
        let mut report = Report::new(undisturbed.course.clone());
        report.note(&Plan::Undisturbed, undisturbed.broken.clone());
        if !undisturbed.broken.is_empty() {
            // What does not hold undisturbed need not be looked for.
            return report;
        }
        for plan in plans(&undisturbed.course, &mut report) {
            if report.found().count() == ENOUGH {
                report.is_whole = false;
                break;
            }
            let ended = self.stage(plan.clone(), Some(&undisturbed));
            report.note(&plan, ended.broken);
        }
        report
    }

    /// Runs every plan, and prints how many of each sort there were.
    ///
    /// # Panics
    ///
    /// If anything went wrong, with what it was and how to repeat it.
    pub fn check(&self) {
        let report = self.run();
        println!("{report}");
        assert!(report.is_good(), "{report}");
    }

    /// Runs a plan, and repeats it while what it plans does not happen: tasks that wake up at the same moment run in
    /// any order, so one run may write once more than another.
    fn stage(&self, plan: Plan, undisturbed: Option<&Ended>) -> Ended {
        for _ in 1..TRIES {
            let ended = self.stage_once(plan.clone(), undisturbed);
            if !ended.broken.iter().any(|it| it == stage::DIFFERS) {
                return ended;
            }
        }
        self.stage_once(plan, undisturbed)
    }

    /// One run, on a runtime of its own.
    fn stage_once(&self, plan: Plan, undisturbed: Option<&Ended>) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime needs nothing but memory");
        runtime.block_on(async {
            let stage = Stage::set(self, plan).await;
            let ended = stage.play().await;
            judge::judge(self, ended, undisturbed)
        })
    }
}

/// The plans that are to be run.
fn plans(course: &Course, report: &mut Report) -> Vec<Plan> {
    let all = Plan::all(course);
    let Ok(chosen) = std::env::var(CHOSEN) else {
        return all;
    };
    report.is_whole = false;
    let named: Vec<_> = all
        .iter()
        .filter(|plan| plan.to_string() == chosen)
        .collect();
    let plans: Vec<_> = match named.as_slice() {
        [] => all
            .iter()
            .filter(|plan| plan.to_string().contains(&chosen))
            .collect(),
        named => named.to_vec(),
    };
    if plans.is_empty() {
        report.miss(&chosen);
    }
    plans.into_iter().cloned().collect()
}
