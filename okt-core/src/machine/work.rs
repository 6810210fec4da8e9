//! The work of the state on record, as far as this process knows it.

use core::time::Duration;

use super::draft::WorkChange;
use super::effect::{Cancel, Start};
use super::facts::{Waits, WorkFacts};
use super::object::{Object, Readable, TaskId, WorkId};
use super::requeue::Requeue;
use super::results::StartResult;
use super::time::Time;
use crate::backoff::Backoff;
use crate::facts::{ActionResult, Task};

/// The shortest `Wait`: a wait of zero would spin.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// How long resumed work waits for the newest version of its object.
const OUTDATED: Duration = Duration::from_secs(1);

/// The work of one object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct StateWork {
    /// The work on record; none if this process knows nothing of it.
    pub(super) run: Option<WorkRun>,
    /// A task whose work is no longer on record, and that is not cancelled yet.
    pub(super) orphan: Option<TaskId>,
    /// A cancelled task, or one of a former object of the same name, has not ended; the next one begins only then.
    pub(super) is_ending: bool,
    /// Whether a stopping operator waits for this object, by the last decision to rest.
    pub(super) is_under_way: bool,
    /// The last task.
    pub(super) last_task: TaskId,
}

/// A run of the action of a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct WorkRun {
    /// Its id in the record.
    pub(super) id: WorkId,
    /// The attempt that runs or comes next, from 1.
    pub(super) attempt: u32,
    /// Failures in a row.
    pub(super) failures: u32,
    /// The generation under which the attempt was started.
    pub(super) started_under: i64,
    /// Whether a reconcile request named the object since the attempt began.
    pub(super) is_named: bool,
    /// Whether its handler runs, and waits until something is recorded.
    pub(super) to_record: bool,
    pub(super) stage: WorkStage,
}

/// The stage of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum WorkStage {
    /// This process has recorded it, and it has not begun.
    New,
    /// The task runs.
    Running(TaskId),
    /// The next attempt comes at this time.
    Waiting {
        due: Time,
        /// Whether the handler answered `Wait`: a reconcile request brings the next call forward.
        asked: bool,
    },
    /// The task has ended with this result, which no reconciliation has recorded yet.
    Ended(ActionResult),
}

impl WorkRun {
    /// Returns the work on record, if there is any.
    fn on_record(object: &Object) -> Option<Self> {
        let action = object.recorded.at()?.action;
        Some(Self {
            id: object.in_flight?,
            attempt: action.map_or(1, |action| action.attempt.max(1)),
            failures: 0,
            started_under: 0,
            is_named: false,
            to_record: false,
            stage: WorkStage::New,
        })
    }
}

impl StateWork {
    /// Returns whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            run,
            orphan,
            is_ending,
            is_under_way,
            // It distinguishes the tasks that have not ended.
            last_task: _,
        } = self;
        run.is_none() && orphan.is_none() && !is_ending && !is_under_way
    }

    /// Returns the progress of the work, for a decision.
    pub(super) fn task(&self, now: Time) -> Task {
        let Some(run) = &self.run else {
            return Task::Absent;
        };
        match run.stage {
            WorkStage::New => Task::New,
            WorkStage::Running(_) => Task::Running,
            WorkStage::Waiting { due, asked } if now >= due || (asked && run.is_named) => Task::Due,
            WorkStage::Waiting { .. } => Task::Waiting,
            WorkStage::Ended(result) => Task::Ended(result),
        }
    }

    /// Returns the attempt that runs, ran last, or comes next; the first is 1.
    pub(super) fn attempt(&self, object: &Object) -> u32 {
        let action = object.recorded.at().and_then(|record| record.action);
        let recorded = action.map_or(1, |action| action.attempt);
        self.run.map_or(1, |run| run.attempt).max(recorded)
    }

    pub(super) fn facts(&self, object: &Object, waits: Option<Waits>, now: Time) -> WorkFacts {
        let is_ending = self.is_ending || self.orphan.is_some();
        WorkFacts {
            // What is in flight by the record of an object that does not decode is not known.
            stale: object.readable == Readable::Yes
                && self.run.is_some_and(|run| Some(run.id) != object.in_flight),
            waits: is_ending.then_some(Waits::Ending).or(waits),
            due: self.due(now),
            to_record: self.run.is_some_and(|run| run.to_record),
        }
    }

    /// Returns whether the task has ended and its result is not recorded.
    pub(super) fn has_ended(&self) -> bool {
        self.run
            .is_some_and(|run| matches!(run.stage, WorkStage::Ended(_)))
    }

    /// Changes the work as decided, after the decision is recorded.
    pub(super) fn change(&mut self, to: WorkChange, object: &Object, backoff: Backoff, now: Time) {
        match (to, &mut self.run) {
            (WorkChange::None | WorkChange::New, run) => {
                // A task that does the work before is to be cancelled.
                if let Some(WorkStage::Running(task)) = run.map(|run| run.stage) {
                    self.orphan = Some(task);
                }
                *run = WorkRun::on_record(object).filter(|_| to == WorkChange::New);
            }
            (WorkChange::Retry, Some(run)) => {
                run.failures = run.failures.saturating_add(1);
                let wait = backoff.wait(run.failures.max(run.attempt), object.seed);
                run.attempt = run.attempt.saturating_add(1);
                let (due, asked) = (now.after(wait), false);
                run.stage = WorkStage::Waiting { due, asked };
            }
            (WorkChange::Wait, Some(run)) => {
                if let WorkStage::Ended(answer) = run.stage {
                    let wait = match answer {
                        ActionResult::Wait(wait) => wait,
                        // It leads through a gate that is shut.
                        _ => Requeue::GATE,
                    };
                    // A reconcile request that came while the handler ran may be the one that it now waits for.
                    let is_named = core::mem::take(&mut run.is_named);
                    let wait = if is_named { Duration::ZERO } else { wait };
                    run.failures = 0;
                    let (due, asked) = (now.after(wait.max(SHORTEST_WAIT)), true);
                    run.stage = WorkStage::Waiting { due, asked };
                }
            }
            (WorkChange::Keep | WorkChange::Retry | WorkChange::Wait, _) => {}
        }
    }

    /// Notes that the handler of a task waits until something is recorded.
    pub(super) fn ask_to_record(&mut self, task: TaskId) {
        if let Some(run) = &mut self.run
            && run.stage == WorkStage::Running(task)
        {
            run.to_record = true;
        }
    }

    /// Notes that what a handler has asked for is recorded.
    pub(super) fn recorded(&mut self) {
        if let Some(run) = &mut self.run {
            run.to_record = false;
        }
    }

    /// Takes the end of a task; returns whether its result counts.
    pub(super) fn end(&mut self, task: TaskId, result: Option<ActionResult>) -> bool {
        // It has ended before it was cancelled.
        self.orphan.take_if(|orphan| *orphan == task);
        let Some(run) = self
            .run
            .as_mut()
            .filter(|run| run.stage == WorkStage::Running(task))
        else {
            return false;
        };
        run.to_record = false;
        match result {
            Some(result) => run.stage = WorkStage::Ended(result),
            None => self.run = None,
        }
        result.is_some()
    }

    /// Forgets cancelled work; its task, if it had one, has not ended.
    pub(super) fn cancelled(&mut self, task: Option<TaskId>) {
        if task.is_some() && self.orphan == task {
            self.orphan = None;
        } else {
            self.run = None;
        }
        self.is_ending |= task.is_some();
    }

    /// Takes the result of starting work under this generation. Returns what it waits for.
    pub(super) fn started(
        &mut self,
        task: TaskId,
        resumed: bool,
        result: StartResult,
        object: &Object,
    ) -> Option<Waits> {
        let mut run = self.next_run(object)?;
        let waits = match result {
            StartResult::Started => {
                run.is_named = false;
                run.started_under = object.generation;
                run.stage = WorkStage::Running(task);
                None
            }
            StartResult::Outdated(_) => return Some(Waits::Permit(Some(OUTDATED))),
            StartResult::Nothing => return None,
            StartResult::FormerTaskRuns => {
                self.is_ending = true;
                None
            }
            StartResult::NoPermit(wait) => Some(Waits::Permit(wait)),
        };
        // Work that was in flight before this process began is remembered only once it runs.
        if !resumed || result == StartResult::Started {
            self.run = Some(run);
        }
        waits
    }

    /// Completes the effect that starts work.
    pub(super) fn start(&mut self, start: &mut Start, object: &Object) {
        if let Some(run) = self.next_run(object) {
            self.last_task.0 = self.last_task.0.wrapping_add(1);
            (start.task, start.work, start.attempt) = (self.last_task, run.id, run.attempt);
            start.continues = matches!(run.stage, WorkStage::Waiting { asked: true, .. });
        }
    }

    /// Completes the effect that cancels the work on record.
    pub(super) fn cancel(&self, cancel: &mut Cancel) {
        match self.run.map(|run| run.stage) {
            Some(WorkStage::Running(task)) => cancel.task = Some(task),
            Some(WorkStage::Waiting { asked, .. }) => cancel.waited = asked,
            Some(WorkStage::New | WorkStage::Ended(_)) | None => {}
        }
    }

    /// Returns whether a task runs or is being cancelled, or a stopping operator waits for the object.
    pub(super) fn is_under_way(&self) -> bool {
        let is_running = |run: &WorkRun| matches!(run.stage, WorkStage::Running(_));
        self.is_under_way
            || self.is_ending
            || self.orphan.is_some()
            || self.run.as_ref().is_some_and(is_running)
    }

    /// Returns how long the next attempt waits.
    pub(super) fn due(&self, now: Time) -> Option<Duration> {
        match self.run?.stage {
            WorkStage::Waiting { due, .. } => Some(due.left(now)),
            WorkStage::New | WorkStage::Running(_) | WorkStage::Ended(_) => None,
        }
    }

    /// Returns the work that is to start: the one that is known, or else the one on record.
    fn next_run(&self, object: &Object) -> Option<WorkRun> {
        self.run.or_else(|| WorkRun::on_record(object))
    }
}
