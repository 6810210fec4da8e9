//! The facts of a decision, as numbers: eight groups, each gathered in one place of the runtime.

use core::time::Duration;

use super::draft::{Draft, RunEnd, Standing};
use crate::backoff::Backoff;
use crate::facts::{self, DesiredState, DesiredVisit, Observed, Task};
use crate::graph::{Graph, StateId};
use crate::pass::PassRun;

/// The graphs that an application declares.
#[derive(Clone, Copy, Debug)]
pub struct Graphs<'g> {
    /// Its lifecycle, if the resource has one.
    pub life: Option<&'g Graph<'g>>,
    /// Its pass, if it has one.
    pub pass: Option<&'g Graph<'g>>,
}

impl Graphs<'_> {
    /// Returns whether an object needs a finalizer, so that it is not deleted without the operator.
    pub fn needs_finalizer(&self) -> bool {
        self.life.is_some() || self.pass.is_some_and(PassRun::finalizes)
    }
}

/// The facts of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts<'a> {
    /// The content of the object.
    pub asked: Asked,
    /// The observation of the application.
    pub sight: ObservedFacts<'a>,
    /// The work of the state on record.
    pub work: WorkFacts,
    /// The pass.
    pub pass: PassFacts,
    /// The owned resources.
    pub owned: OwnedFacts,
    /// The operator.
    pub operator: OperatorFacts,
    /// The writes to the object.
    pub writes: WriteFacts,
    /// Times.
    pub time: TimeFacts,
}

/// The content of the object.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is excluded"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Asked {
    /// Whether it decodes.
    pub readable: Readable,
    /// The desired state.
    pub desired: DesiredState,
    /// The visit.
    pub visit: Option<DesiredVisit>,
    /// `metadata.generation`.
    pub generation: i64,
    /// A hash of the data that handlers act upon.
    pub revision: u64,
    /// It is being deleted.
    pub deleting: bool,
    /// A user abandoned it; this counts only while it is being deleted.
    pub abandoned: bool,
    /// A user paused it; this counts only while it is not being deleted.
    pub paused: bool,
    /// The state on record belongs to a newer operator.
    pub newer: bool,
    /// It has the operator's finalizer.
    pub finalizer: bool,
}

impl Asked {
    /// Returns whether a pause is in force; deletion ignores a pause.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.deleting
    }
}

/// Whether an object decodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Readable {
    /// It does.
    Yes,
    /// It does not.
    No {
        /// Its conditions say so already.
        reported: bool,
        /// The operator never started anything for it.
        untouched: bool,
    },
}

/// The observation of the application in this reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ObservedFacts<'a> {
    /// The observed state; none if the application was not observed.
    pub observed: Option<Observed>,
    /// The states that the observation named as events.
    pub events: &'a [StateId],
    /// A write has acted upon the observation: it counts for conditions only.
    pub spent: bool,
}

/// The work of the state on record, as this process knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WorkFacts {
    /// The progress.
    pub task: Task,
    /// It is not the work that is in flight according to the record.
    pub stale: bool,
    /// The reason why it cannot start yet.
    pub waits: Option<Waits>,
    /// The attempt that runs, ran last, or comes next; the first is 1.
    pub attempt: u32,
    /// The generation under which that attempt was started.
    pub started_under: i64,
    /// The time until the next attempt.
    pub due: Option<Duration>,
}

/// The reason why work waits that could start otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Waits {
    /// A task that was cancelled has not ended yet.
    Ending,
    /// The operator runs as many actions as its limit allows. An event requeues the object, or it is requeued after
    /// this time.
    Permit(Option<Duration>),
}

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PassFacts {
    /// The run in this reconciliation; none if the pass did not run.
    pub ran: Option<Ran>,
    /// The end of the last run in this process, if that is known.
    pub last: Option<RunEnd>,
    /// The time for which a failed run is not repeated.
    pub backoff: Option<Duration>,
    /// The time until the next run: a step asked for it, or something is left to do.
    pub due: Option<Duration>,
    /// A reconcile request named the object, or the result of the last run is not written: the pass runs in any case.
    pub named: bool,
    /// The object has changed since the last run was reported. This counts only without a lifecycle.
    pub changed: bool,
}

/// A run of the pass in this reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ran {
    /// The end of the run.
    pub end: RunEnd,
    /// The run took the path for deletion.
    pub leaving: bool,
}

/// The resources that the object owns in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OwnedFacts {
    /// The application declares owned kinds.
    pub kinds: bool,
    /// An owned resource exists.
    pub any: bool,
    /// Their status, as found in this reconciliation.
    pub standing: Option<Standing>,
    /// Their status for the state on record when this process last applied them, if that is known.
    pub last: Option<Standing>,
    /// Whether no resource is left that Kubernetes does not delete with the object, as found in this reconciliation.
    pub cleared: Option<bool>,
    /// The time until they must be checked again.
    pub due: Option<Duration>,
}

/// The operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OperatorFacts {
    /// It is the leader, the CRD fits, and the caches are filled.
    pub may_act: bool,
    /// It is shutting down: it starts nothing.
    pub draining: bool,
}

/// The writes to the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteFacts {
    /// The object at hand is older than the operator's last write.
    pub behind: bool,
    /// The time until the last failed write is retried.
    pub wait: Option<Duration>,
    /// That failure must be reported in the conditions, and is not yet.
    pub unshown: bool,
    /// A retry of that write does not help.
    pub refused: bool,
    /// The draft that was written last in this reconciliation.
    pub written: Option<Draft>,
    /// The last draft of this reconciliation, and how it differs from the stored status.
    pub draft: Option<(Draft, News)>,
    /// The time until the fields may be written that are written at most every ten seconds.
    pub side_wait: Duration,
}

/// The difference between a drafted status and the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum News {
    /// It does not differ.
    None,
    /// It differs, but the same write to this version of the object has changed nothing.
    Vain,
    /// It differs only in fields that are written at most every ten seconds: a progress text, the application's own
    /// fields.
    Side,
    /// It differs in a field that is written at once.
    Main,
}

/// Times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeFacts {
    /// The time since the arrival in the state on record.
    pub in_state: Duration,
    /// The time since the object came under the deadline of that state; zero without one.
    pub in_deadline: Duration,
    /// The time until the application is observed again, if nothing happens before.
    pub observe_after: Duration,
    /// The backoff between attempts.
    pub backoff: Backoff,
    /// The seed of this object's jitter.
    pub seed: u64,
}

impl<'a> Facts<'a> {
    /// Returns the facts for the decision about the lifecycle.
    pub fn life(&self) -> facts::LifecycleFacts<'a> {
        let mut facts = self.for_conditions();
        if self.sight.spent {
            (facts.observed, facts.events) = (Observed::Unobserved, &[]);
        }
        facts
    }

    /// Returns the facts for the conditions: an observation counts here even after a write has acted upon it.
    pub fn for_conditions(&self) -> facts::LifecycleFacts<'a> {
        let asked = &self.asked;
        facts::LifecycleFacts {
            desired: asked.desired,
            visit: asked.visit,
            generation: asked.generation,
            revision: asked.revision,
            deleting: asked.deleting,
            paused: asked.paused,
            observed: self.sight.observed.unwrap_or(Observed::Unobserved),
            events: self.sight.events,
            owned: self.owned.any,
            task: self.work.task,
            attempt: self.work.attempt,
            started_under: self.work.started_under,
            in_state: self.time.in_state,
            in_deadline: self.time.in_deadline,
            backoff: self.time.backoff,
            seed: self.time.seed,
        }
    }

    /// Returns whether anything may be started.
    pub(super) fn may_start(&self) -> bool {
        self.operator.may_act && !self.operator.draining
    }

    /// Returns whether work runs, is being cancelled, or has ended with a result that can be taken.
    ///
    /// An operator that shuts down waits for such work. If a pause, a refused write or an unreadable object holds a
    /// result back, the next operator gets that result under the same id.
    pub(super) fn is_under_way(&self) -> bool {
        self.work.waits == Some(Waits::Ending)
            || match self.work.task {
                Task::Running => true,
                Task::Ended(_) => {
                    self.asked.readable == Readable::Yes
                        && !self.asked.is_paused()
                        && !self.writes.refused
                }
                Task::Absent | Task::New | Task::Waiting | Task::Due => false,
            }
    }
}
