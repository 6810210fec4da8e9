//! A process of the operator: its cache, its machine, and the truth about its tasks.

use okt_core::facts::ActionResult;

use crate::event::StepAnswer;
use crate::machine::{Machine, PassResult, TaskId, WorkId};
use crate::object::{Object, Status, Version};
use crate::requests::{ASKED, Asked};

/// A process of the operator.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; few combinations are excluded"
)]
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// The number of the process, from 0.
    pub(crate) number: u8,
    pub(crate) leads: bool,
    pub(crate) draining: bool,
    /// The object as the cache has it.
    pub(crate) cache: Object,
    /// The requests as the cache has them.
    pub(crate) asked: [Asked; ASKED],
    /// The machine of the object, as the product has it.
    pub(crate) machine: Machine,
    /// The reconciliation under way.
    pub(crate) at_hand: Option<AtHand>,
    /// The object waits for its reconciliation.
    pub(crate) queued: bool,
    /// A reconcile request named the object since its last reconciliation began.
    pub(crate) is_named: bool,
    /// The leadership has come back, and the machine does not have that report yet.
    pub(crate) is_reopened: bool,
    /// The last reconciliation asked for another one after a time.
    pub(crate) has_timer: bool,
    /// An operator that shuts down waits for the object, according to the last reconciliation.
    pub(crate) is_under_way: bool,
    /// The task that runs.
    pub(crate) task: Option<Task>,
    /// The task waits until something is recorded.
    pub(crate) is_recording: bool,
    /// A cancelled task has not ended.
    pub(crate) is_ending: bool,
    pub(crate) truth: Truth,
}

/// A task that runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) work: WorkId,
}

/// What really happened in a process. Rules compare the machine with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Truth {
    /// The version of the last write that it knows to have succeeded.
    pub(crate) wrote: Version,
    /// The newest work that it has recorded.
    pub(crate) newest_work: WorkId,
    /// The work and the attempt that it started last.
    pub(crate) begun_last: (WorkId, u32),
    /// The work that has ended, and whose result it has, or has recorded.
    pub(crate) ended_last: Option<WorkId>,
    /// The result that it has and that no write has recorded.
    pub(crate) result: Option<(WorkId, ActionResult)>,
    /// The version to which its last write of a status changed nothing.
    pub(crate) vain: Option<Version>,
    /// It knows that it has removed the finalizer.
    pub(crate) has_let_go: bool,
}

/// What the shell has at hand during one reconciliation.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, for a rule"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AtHand {
    /// The object at hand: from the cache, then from the answers to writes.
    pub(crate) object: Object,
    pub(crate) effects: u8,
    /// Work has changed since the observation. For a rule.
    pub(crate) has_acted: bool,
    pub(crate) run: Option<Run>,
    /// The leadership has come back since it began. For a rule.
    pub(crate) is_reopened: bool,
    /// The requests that were known when the machine read the object. For a rule.
    pub(crate) asked: [Asked; ASKED],
    /// The gates were shut when the machine read the object. For a rule.
    pub(crate) shut: bool,
    /// The limit could not be asked for a place. For a rule.
    pub(crate) place_failed: bool,
    /// The status that was rendered last.
    pub(crate) rendered: Option<Status>,
}

/// A run of the pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Run {
    pub(crate) ran: PassResult,
    /// The step that did not simply succeed, and its answer.
    pub(crate) unusual: Option<(u8, StepAnswer)>,
}

impl Process {
    /// Starts a process: it knows only the object of its first list.
    pub(crate) fn started(number: u8, object: Object) -> Self {
        Self {
            number,
            leads: true,
            draining: false,
            cache: object,
            asked: Default::default(),
            machine: Machine::default(),
            at_hand: None,
            queued: true,
            is_named: false,
            is_reopened: false,
            has_timer: false,
            is_under_way: false,
            task: None,
            is_recording: false,
            is_ending: false,
            truth: Truth::default(),
        }
    }

    /// Returns whether the operator takes a decision next.
    pub(crate) fn is_active(&self) -> bool {
        self.queued || self.at_hand.is_some()
    }

    /// Returns whether the task that runs may end: it waits for nothing.
    pub(crate) fn may_end(&self) -> bool {
        self.task.is_some() && !self.is_recording
    }

    /// Returns the object at hand, or the one that the next reconciliation begins with.
    pub(crate) fn object(&self) -> &Object {
        self.at_hand
            .as_ref()
            .map_or(&self.cache, |at_hand| &at_hand.object)
    }
}
