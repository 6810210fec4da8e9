//! The facts of a decision, as numbers: what the machine remembers and has found, at one moment.

use core::time::Duration;

use super::draft::{Draft, ResourceStatus, RunEnd};
use super::object::{Object, Readable};
use crate::backoff::Backoff;
use crate::facts::{LifecycleFacts, Observed, Task};
use crate::gate::Gates;
use crate::graph::Graph;
use crate::pass::PassRun;

/// What all objects of an operator have in common.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'g> {
    /// The graphs that the application declares.
    pub graphs: Graphs<'g>,
    /// The backoff between attempts, and between writes that fail.
    pub backoff: Backoff,
    /// Whether the application declares owned kinds.
    pub owns_kinds: bool,
    /// A mistake that a test has planted: it changes the facts of each decision.
    #[cfg(test)]
    pub(crate) mistake: Option<fn(&mut Facts<'_>)>,
}

/// The graphs that an application declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// The graphs that the application declares.
    pub graphs: Graphs<'a>,
    /// The object.
    pub object: &'a Object,
    /// The facts about the lifecycle. The observation counts here even after a write has acted upon it: so conditions
    /// need it.
    pub life: LifecycleFacts<'a>,
    /// The object has the finalizer, and this process has not dropped it.
    pub finalizer: bool,
    /// The application was observed in this reconciliation.
    pub is_observed: bool,
    /// A write has acted upon the observation: it counts for conditions only.
    pub is_observation_spent: bool,
    /// The time until the application is observed again, if nothing happens before.
    pub observe_after: Duration,
    /// The work of the state on record.
    pub work: WorkFacts,
    /// The pass.
    pub pass: PassFacts,
    /// The owned resources.
    pub resources: ResourceFacts,
    /// The requests for the object.
    pub requests: RequestFacts,
    /// The time until the gates are not as they were read; none if they do not change by themselves.
    pub gates_change: Option<Duration>,
    /// The limits that were asked for a place for this version of the object.
    pub asked_limits: Gates,
    /// The limits in which a move of this version of the object was to be registered.
    pub forced_limits: Gates,
    /// The operator.
    pub operator: OperatorFacts,
    /// The writes to the object.
    pub writes: WriteFacts,
}

/// The work of the state on record, in addition to what the lifecycle knows of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WorkFacts {
    /// It is not the work that is in flight according to the record.
    pub stale: bool,
    /// The reason why it cannot start yet.
    pub waits: Option<Waits>,
    /// The time until the next attempt.
    pub due: Option<Duration>,
    /// Its handler runs, and waits until something is recorded.
    pub to_record: bool,
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
    pub ran: Option<PassResult>,
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

/// The result of a run of the pass in this reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PassResult {
    /// The end of the run.
    pub end: RunEnd,
    /// The run took the path for deletion.
    pub leaving: bool,
}

/// The resources that the object owns in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ResourceFacts {
    /// The application declares owned kinds.
    pub kinds: bool,
    /// Their status, as found in this reconciliation.
    pub status: Option<ResourceStatus>,
    /// Their status for the state on record when this process last applied them, if that is known.
    pub last: Option<ResourceStatus>,
    /// Whether no resource is left that Kubernetes does not delete with the object, as found in this reconciliation.
    pub cleared: Option<bool>,
    /// The time until they must be checked again.
    pub due: Option<Duration>,
}

/// The requests for the object, in addition to what is known of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RequestFacts {
    /// The request that the API server has, as found in this reconciliation.
    pub confirmed: Option<u64>,
    /// Requests may be read: not after a failure, until the next attempt.
    pub may_read: bool,
    /// An outcome is to be written into a request now.
    pub to_deliver: bool,
    /// A deletion waits for outcomes that could not be written.
    pub is_patient: bool,
    /// The time until requests are read or written again, after a failure.
    pub wait: Option<Duration>,
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is excluded"
)]
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
    /// The conditions report that the object does not decode.
    pub is_unreadable_shown: bool,
    /// Others left something in the status that is to be removed now.
    pub leftovers: bool,
    /// The draft that was written last in this reconciliation.
    pub written: Option<Draft>,
    /// The last draft of this reconciliation, and how it differs from the stored status.
    pub draft: Option<(Draft, StatusDiff)>,
    /// The time until the fields may be written that are written at most every ten seconds.
    pub side_wait: Duration,
    /// The time until a write that has changed nothing is repeated; none if only another version is a reason for it.
    pub vain_wait: Option<Duration>,
}

/// The difference between a drafted status and the stored one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatusDiff {
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

impl<'a> Facts<'a> {
    /// Returns the facts for the decision about the lifecycle: an observation that a write has acted upon does not count.
    pub fn for_decision(&self) -> LifecycleFacts<'a> {
        if self.is_observation_spent {
            LifecycleFacts {
                observed: Observed::Unobserved,
                events: &[],
                ..self.life
            }
        } else {
            self.life
        }
    }

    /// Returns whether anything may be started.
    pub(super) fn may_start(&self) -> bool {
        self.operator.may_act && !self.operator.draining
    }

    /// Returns whether work runs, is being cancelled, or has ended with a result that can be taken.
    ///
    /// An operator that shuts down waits for such work. If a pause, a refused write or an unreadable object holds a
    /// result back, or what a handler waits to have recorded, the next operator does that work under the same id.
    pub(super) fn is_under_way(&self) -> bool {
        let can_write = self.object.readable == Readable::Yes && !self.writes.refused;
        self.work.waits == Some(Waits::Ending)
            || match self.life.task {
                Task::Running => !self.work.to_record || (can_write && self.operator.may_act),
                Task::Ended(_) => can_write && !self.object.is_paused(),
                Task::Absent | Task::New | Task::Waiting | Task::Due => false,
            }
    }
}
