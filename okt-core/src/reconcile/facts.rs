//! What is so at the moment of a decision, as numbers: eight groups, each gathered in one place of the runtime.

use core::time::Duration;

use super::draft::{Draft, RunEnd, Standing};
use crate::backoff::Backoff;
use crate::facts::{self, DesiredState, Observed, Task, Visit};
use crate::graph::{Graph, StateId};
use crate::pass::PassRun;

/// What an application declares.
#[derive(Clone, Copy, Debug)]
pub struct Graphs<'g> {
    /// Its lifecycle, if the resource has one.
    pub life: Option<&'g Graph<'g>>,
    /// Its pass, if it has one.
    pub pass: Option<&'g Graph<'g>>,
}

impl Graphs<'_> {
    /// Whether an object must not go without the operator.
    pub fn needs_finalizer(&self) -> bool {
        self.life.is_some() || self.pass.is_some_and(PassRun::finalizes)
    }
}

/// What is so at the moment of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts<'a> {
    /// What the object says.
    pub asked: Asked,
    /// What the application said.
    pub sight: Sight<'a>,
    /// The work of the state on record.
    pub work: Work,
    /// The pass.
    pub pass: Pass,
    /// The owned resources.
    pub owned: Owned,
    /// The operator.
    pub operator: Operator,
    /// The writes to the object.
    pub writes: Writes,
    /// Times.
    pub time: Time,
}

/// What the object says.
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
    /// The state to be gone through once.
    pub visit: Option<Visit>,
    /// `metadata.generation`.
    pub generation: i64,
    /// A hash of what handlers act upon.
    pub revision: u64,
    /// It is being deleted.
    pub deleting: bool,
    /// A user gave it up; it counts while it is being deleted.
    pub abandoned: bool,
    /// A user paused it; it counts while it is not being deleted.
    pub paused: bool,
    /// The state on record is one of a newer operator.
    pub newer: bool,
    /// It has the operator's finalizer.
    pub finalizer: bool,
}

impl Asked {
    /// Whether a pause is in force: deletion ignores it.
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
        /// Nothing was ever begun for it.
        untouched: bool,
    },
}

/// What the application said in this reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sight<'a> {
    /// Where it is; none where it was not asked.
    pub observed: Option<Observed>,
    /// The states that it named as events.
    pub events: &'a [StateId],
    /// A write has acted upon it: it counts for conditions only.
    pub spent: bool,
}

/// The work of the state on record, as this process knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Work {
    /// How far it is.
    pub task: Task,
    /// It is not the work that the record says is in flight.
    pub stale: bool,
    /// What it waits for before it can begin.
    pub waits: Option<Waits>,
    /// The attempt that runs, ran last, or comes next; from 1.
    pub attempt: u32,
    /// The generation under which that attempt was started.
    pub started_under: i64,
    /// Until the next attempt.
    pub due: Option<Duration>,
}

/// What work waits for that may begin otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Waits {
    /// A task that was cancelled has not ended yet.
    Ending,
    /// The operator runs as many actions as it may. An event brings the object back, or this time.
    Place(Option<Duration>),
}

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pass {
    /// How it ended in this reconciliation; none where it did not run.
    pub ran: Option<Ran>,
    /// How it ended when this process ran it last, if that is known.
    pub last: Option<RunEnd>,
    /// How long a run that failed is not repeated.
    pub backoff: Option<Duration>,
    /// Until the next run: a step asked for it, or something is left undone.
    pub due: Option<Duration>,
    /// The object was named from outside, or what the last run found is not written: it runs whatever it waits for.
    pub named: bool,
    /// The object is not what it was when the last run was reported. Counts without a lifecycle only.
    pub changed: bool,
}

/// A run of the pass in this reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ran {
    /// How it ended.
    pub end: RunEnd,
    /// It was the way for deletion.
    pub leaving: bool,
}

/// What the object owns in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Owned {
    /// The application declares owned kinds.
    pub kinds: bool,
    /// Something that the object owns exists.
    pub any: bool,
    /// How it stands, as found in this reconciliation.
    pub standing: Option<Standing>,
    /// How it stood by the state on record when this process applied it last, if that is known.
    pub last: Option<Standing>,
    /// Whether nothing is left that Kubernetes does not delete with the object, as found in this reconciliation.
    pub cleared: Option<bool>,
    /// Until the next look that it needs.
    pub due: Option<Duration>,
}

/// The operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operator {
    /// It leads, the CRD fits, the caches are filled.
    pub may_act: bool,
    /// It is stopping: it begins nothing.
    pub draining: bool,
}

/// The writes to the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Writes {
    /// The object at hand is older than the last own write.
    pub behind: bool,
    /// How long the write that failed last is not repeated.
    pub wait: Option<Duration>,
    /// That failure is to be reported in the conditions, and is not yet.
    pub unshown: bool,
    /// A retry of it does not help.
    pub refused: bool,
    /// What was written last in this reconciliation.
    pub written: Option<Draft>,
    /// What was drafted in this reconciliation, and how it differs from the stored status.
    pub draft: Option<(Draft, News)>,
    /// Until what is written at most every ten seconds may be written.
    pub side_wait: Duration,
}

/// How a drafted status differs from the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum News {
    /// Not at all.
    None,
    /// It differs, but writing the same to this version has changed nothing.
    Vain,
    /// Only in what is written at most every ten seconds: a progress text, the application's own fields.
    Side,
    /// In something that is written at once.
    Main,
}

/// Times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Time {
    /// Since the arrival in the state on record.
    pub in_state: Duration,
    /// Until the application is observed again although nothing happened.
    pub observe_after: Duration,
    /// How waits grow.
    pub backoff: Backoff,
    /// What tells the jitter of this object from that of another.
    pub seed: u64,
}

impl Facts<'_> {
    /// What the lifecycle decides from.
    pub fn life(&self) -> facts::Facts<'_> {
        let mut facts = self.for_conditions();
        if self.sight.spent {
            (facts.observed, facts.events) = (Observed::Unobserved, &[]);
        }
        facts
    }

    /// The same for conditions: what was observed counts also after a write has acted upon it.
    pub fn for_conditions(&self) -> facts::Facts<'_> {
        let asked = &self.asked;
        facts::Facts {
            desired: asked.desired,
            visit: asked.visit,
            generation: asked.generation,
            revision: asked.revision,
            deleting: asked.deleting,
            abandoned: asked.abandoned,
            paused: asked.paused,
            newer: asked.newer,
            observed: self.sight.observed.unwrap_or(Observed::Unobserved),
            events: self.sight.events,
            owned: self.owned.any,
            task: self.work.task,
            attempt: self.work.attempt,
            started_under: self.work.started_under,
            in_state: self.time.in_state,
            backoff: self.time.backoff,
            seed: self.time.seed,
        }
    }

    /// Whether anything may be begun.
    pub(super) fn may_start(&self) -> bool {
        self.operator.may_act && !self.operator.draining
    }

    /// Whether work runs, cleans up, or has ended and its result can be taken: an operator that stops waits for it.
    ///
    /// A result that a pause, a refused write or an object that cannot be read holds back is left to the next operator,
    /// under the same id.
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
