//! The machine of an object: everything that an operator remembers of it, and the decision what to do next.
//!
//! A [`Machine`] is a value. It makes no request, reads no clock and runs no task; a shell around it does, and reports
//! the results. It has inputs and one output:
//!
//! ```text
//!                        ┌────────────────────────────┐
//!   what happened ──────▶│  Machine: memory, findings │──────▶ decide: one effect, or rest with a time
//!                        └────────────────────────────┘
//!         ▲                                                             │
//!         └──────────── the result of the effect ◀──── the shell ◀──────┘
//! ```
//!
//! - **What happened**: [`read`](Machine::read) an object, [`name`](Machine::name) it by a reconcile request,
//!   [`reopen`](Machine::reopen) after a change of the CRD or of the leadership, [`rewind`](Machine::rewind) after the
//!   history of the API server went back, [`end_work`](Machine::end_work) and [`end_task`](Machine::end_task) when a task
//!   ends; and the result of each effect.
//! - **What is next**: [`decide`](Machine::decide) returns one [`Effect`], or a [`Requeue`].
//!
//! Each effect is a value of its own type that only `decide` makes. Reporting a result consumes it, so the result of one
//! effect cannot be given for another, and `decide` asserts in debug builds that the result was reported.
//!
//! The memory between two reconciliations may be lost at any time: a restart does exactly that.
//! Texts, decoded objects and handles of tasks stay in the shell, under the ids that the machine uses.
//!
//! `tests/reconcile` explores this code, with every order of events around it.

mod decide;
mod draft;
mod effect;
mod events;
mod facts;
mod findings;
mod object;
mod observation;
mod pass;
#[cfg(test)]
#[path = "../tests/reconcile/plant.rs"]
pub(crate) mod plant;
mod reports;
mod requests;
mod requeue;
mod resources;
mod results;
mod time;
mod work;
mod writes;

use core::time::Duration;

pub use self::draft::{Draft, NotReadyReason, ResourceStatus, RunEnd, WorkChange};
pub use self::effect::{
    AddFinalizer, Apply, Cancel, ChangeWork, Clear, Commit, Decision, Deliver, DropFinalizer,
    Effect, Observe, ReadRequest, Record, RemoveLeftovers, Render, RunPass, ShowFailure,
    ShowUnreadable, Start, TakeOver, TakePlace, Write,
};
pub use self::facts::{
    Facts, Graphs, OperatorFacts, PassFacts, PassResult, RequestFacts, ResourceFacts, Setup,
    StatusDiff, Waits, WorkFacts, WriteFacts,
};
use self::findings::Findings;
pub use self::object::{GateTimes, KnownRequests, Object, Readable, TaskId, Version, WorkId};
use self::observation::ObservationMemory;
use self::pass::PassMemory;
use self::requests::RequestMemory;
pub use self::requeue::Requeue;
use self::resources::ResourceMemory;
pub use self::results::{
    ApplyResult, ClearResult, DeliverResult, ExtraResult, ObservationResult, PassReport,
    PlaceResult, ReadRequestResult, Retry, ShowResult, StartResult, Stored, WriteError,
};
pub use self::time::Time;
use self::work::{StateWork, WorkStage};
pub use self::writes::LastWrite;
use self::writes::Writes;
use crate::facts::{LifecycleFacts, Observed};

/// The maximum number of effects of a reconciliation, so that other objects do not wait. Without faults no
/// reconciliation has more than 16.
pub const MAX_EFFECTS: u8 = 32;

/// Everything that is remembered of an object between reconciliations, and everything found during one.
///
/// ```
/// use core::time::Duration;
/// use okt_core::backoff::Backoff;
/// use okt_core::machine::{Decision, Graphs, Machine, Object, OperatorFacts, Setup, Time};
/// # use okt_core::{Graph, Kind, routes::Routes};
/// # let graph = Graph { name: "", doc: "", kind: Kind::Lifecycle, parts: &[], gates: &[], states: &[], routes: Routes::NONE };
/// let setup = Setup {
///     graphs: Graphs { life: Some(&graph), pass: None },
///     backoff: Backoff::default(),
///     owns_kinds: false,
/// };
/// let standby = OperatorFacts { may_act: false, draining: false };
/// let now = Time::after_origin(Duration::from_secs(5));
/// let mut machine = Machine::default();
/// machine.read(&Object::default(), now);
/// // A replica on standby does nothing before it may act.
/// let Decision::Rest(requeue) = machine.decide(&setup, standby, now) else { panic!("no rest") };
/// assert_eq!(requeue.wait(), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Machine {
    /// The operator's own writes.
    writes: Writes,
    /// The work of the state on record.
    work: StateWork,
    /// The observations of the application.
    observation: ObservationMemory,
    /// The runs of the pass.
    pass: PassMemory,
    /// The owned resources.
    resources: ResourceMemory,
    /// The requests.
    requests: RequestMemory,
    /// Whether a reconcile request has named the object since its last reconciliation began.
    is_named: bool,
    /// The reconciliation that is under way.
    findings: Findings,
}

impl Machine {
    /// Returns the machine of an object at rest, of which only the last write is remembered.
    pub fn of(last_write: LastWrite) -> Self {
        let mut machine = Self::default();
        machine.writes.last = last_write;
        machine
    }

    /// Returns the last write, if nothing else is worth remembering.
    pub fn at_rest(&self, now: Time) -> Option<LastWrite> {
        // Destructured, so that a new field has to be considered here.
        let Self {
            writes,
            work,
            observation,
            pass,
            resources,
            requests,
            is_named,
            findings: _,
        } = self;
        (work.is_empty()
            && observation.is_empty()
            && pass.is_empty()
            && resources.is_empty()
            && requests.is_empty()
            && writes.is_empty(now)
            && !is_named)
            .then_some(writes.last)
    }

    /// Returns the last write that succeeded.
    pub fn last_write(&self) -> &LastWrite {
        &self.writes.last
    }

    /// Begins a reconciliation with the object as it was read. It ends one that was interrupted.
    pub fn read(&mut self, object: &Object, now: Time) {
        self.findings = Findings::of(object, now);
        if core::mem::take(&mut self.is_named) {
            self.findings.is_named = true;
            if let Some(run) = &mut self.work.run {
                run.is_named = true;
            }
            self.observation.silence.end();
        }
        self.observation.recall(object, now);
        self.resources.enter(object.transition());
        self.requests.keep(object);
    }

    /// Returns the next effect, or when the object is reconciled next.
    ///
    /// # Guarantees
    ///
    /// - Total: any input gives a decision; nothing panics, except that a debug build asserts that the result of the
    ///   effect before was reported.
    /// - No allocation.
    /// - A decision to rest says when the object is reconciled next. It relies on events alone only if nothing is left
    ///   to do.
    pub fn decide(&mut self, setup: &Setup<'_>, operator: OperatorFacts, now: Time) -> Decision {
        let findings = &mut self.findings;
        debug_assert!(findings.is_begun, "decides before the object was read");
        debug_assert!(
            !findings.is_pending,
            "decides before the result of the last effect was reported"
        );
        if let Some(task) = self.work.orphan {
            findings.is_pending = true;
            return Cancel::decided(Some(task), false);
        }
        if !findings.is_begun || findings.is_reopened || findings.effects >= MAX_EFFECTS {
            return self.rest(Requeue::soon());
        }
        findings.effects += 1;
        let facts = self.facts(setup, operator, now);
        #[cfg(test)]
        let facts = {
            let mut facts = facts;
            setup.mistake.inspect(|mistake| mistake(&mut facts));
            facts
        };
        match decide::decide(&facts) {
            Decision::Rest(requeue) => self.rest(requeue),
            Decision::Do(mut effect) => {
                self.prepare(&mut effect, now);
                Decision::Do(effect)
            }
        }
    }

    /// Completes an effect with what only the memory knows.
    fn prepare(&mut self, effect: &mut Effect, now: Time) {
        self.findings.is_pending = true;
        self.findings.had_ended = self.work.has_ended();
        match effect {
            Effect::Observe(observe) => observe.calls = self.observation.may_call(now),
            Effect::Render(render) => render.asks_extra = self.observation.may_ask_extra(now),
            // The findings of the run are not reported yet.
            Effect::RunPass(_) => self.writes.last.reported = false,
            Effect::Start(start) => self.work.start(start, &self.findings.object),
            Effect::Cancel(cancel) => self.work.cancel(cancel),
            _ => {}
        }
    }

    /// Ends the decisions of a reconciliation.
    fn rest(&mut self, requeue: Requeue) -> Decision {
        self.work.is_under_way = requeue.is_under_way();
        if requeue.is_settled() {
            self.writes.end_trouble();
        }
        Decision::Rest(requeue)
    }

    /// Returns the object at hand: as it was read, then from the answers to writes.
    pub fn object(&self) -> &Object {
        &self.findings.object
    }

    /// Ends the reconciliation. Returns how one of its writes failed, if one did, and whether the start of work waits for
    /// a permit.
    pub fn end(&mut self) -> (Option<WriteError>, bool) {
        let findings = core::mem::take(&mut self.findings);
        let waits_for_permit = matches!(findings.waits, Some(Waits::Permit(_)));
        (findings.failed, waits_for_permit)
    }

    /// Returns the work that this process knows, with its attempt.
    pub fn work(&self) -> Option<(WorkId, u32)> {
        self.work.run.map(|run| (run.id, run.attempt))
    }

    /// Returns whether the task has ended and its result is not recorded.
    pub fn has_result(&self) -> bool {
        self.work.has_ended()
    }

    /// Returns how long the next attempt waits; none if it need not wait.
    pub fn retry_after(&self, now: Time) -> Option<Duration> {
        self.work.due(now)
    }

    /// Returns whether the handler answered `Wait` and is not called again yet.
    pub fn waits_for_call(&self) -> bool {
        let stage = self.work.run.map(|run| run.stage);
        matches!(stage, Some(WorkStage::Waiting { asked: true, .. }))
    }

    /// Returns whether an operator that shuts down waits for the object, by the last decision to rest, or because a task
    /// runs or is being cancelled.
    pub fn is_under_way(&self) -> bool {
        self.work.is_under_way()
    }

    /// Returns how long observations have found no application although that does not count yet.
    pub fn absent_for(&self, now: Time) -> Option<Duration> {
        self.observation.absent_for(now)
    }

    /// Returns whether the application did not answer the last call.
    pub fn is_silent(&self) -> bool {
        self.observation.is_silent()
    }

    /// Returns the facts of this moment.
    pub fn facts<'a>(&'a self, setup: &Setup<'a>, operator: OperatorFacts, now: Time) -> Facts<'a> {
        let findings = &self.findings;
        let object = &findings.object;
        let since_read = findings.read_at.elapsed(now);
        let (outdated, content) = self.resources.changes(findings);
        Facts {
            graphs: setup.graphs,
            object,
            life: LifecycleFacts {
                desired: object.desired,
                visit: object.visit,
                request: self.requests.next(object, now),
                is_aborted: self.requests.is_gone(object),
                generation: object.generation,
                revision: object.revision,
                parts: object.parts,
                shut: object.gates.shut,
                has_unused_place: object.gates.has_unused_place,
                uid: object.uid,
                approved: object.approved,
                outdated,
                content,
                deleting: object.deleting,
                paused: object.paused,
                observed: findings.observed.unwrap_or(Observed::Unobserved),
                events: &findings.events,
                owned: object.owns_any && object.recorded.at().is_none(),
                task: self.work.task(now),
                attempt: self.work.attempt(object),
                started_under: self.work.run.map_or(0, |run| run.started_under),
                in_state: object.in_state.saturating_add(since_read),
                in_deadline: if object.in_deadline.is_zero() {
                    Duration::ZERO
                } else {
                    object.in_deadline.saturating_add(since_read)
                },
                backoff: setup.backoff,
                seed: object.seed,
            },
            finalizer: object.finalizer && !self.writes.released,
            is_observed: findings.observed.is_some(),
            is_observation_spent: findings.is_observation_spent,
            observe_after: self
                .observation
                .observe_after(findings.observe_every(), now),
            work: self.work.facts(object, findings.waits, now),
            pass: self
                .pass
                .facts(setup.graphs, &self.writes.last, findings, now),
            resources: self.resources.facts(setup.owns_kinds, findings, now),
            requests: self.requests.facts(findings, now),
            asked_limits: findings.asked_limits,
            forced_limits: findings.forced_limits,
            gates_change: object.gates.change_in(since_read),
            operator,
            writes: self.writes.facts(findings, now),
        }
    }
}
