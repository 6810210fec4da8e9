//! The task and the texts of the work of one object. What decisions depend on is in its machine.

use okt_core::Answer;
use okt_core::facts::ActionResult;
use okt_core::machine::{Draft, Machine, Start, TaskId, WorkChange, WorkId};
use okt_reach::Failure;
use okt_telemetry::event::Attempt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::author::progress::Progress;
use crate::author::recording::Recording;
use crate::reconcile::tasks::Running;

/// The maximum number of reasons that are reported of one run of an action.
const REPORTED: usize = 16;

/// The task and the texts of the work of one object.
#[derive(Default)]
pub(crate) struct ObjectWork {
    /// The task that runs.
    pub(crate) task: Option<(TaskId, Running)>,
    /// Cancelled when the task before has ended; the next one begins only then.
    pub(crate) ending: Option<CancellationToken>,
    /// The texts of the run that began last.
    pub(crate) run: Option<ActionRun>,
}

/// The texts of a run of a state's action.
pub(crate) struct ActionRun {
    pub(crate) work: WorkId,
    /// Its id in the record.
    pub(crate) id: String,
    state: &'static str,
    /// When the attempt began.
    pub(crate) began: Instant,
    /// The reasons of earlier failures, each once: a reason that is reported already is no news.
    reported: Vec<String>,
    /// The progress that the handler reports.
    pub(crate) progress: Option<Progress>,
    /// What the handler wants recorded.
    pub(crate) recording: Option<Recording>,
    /// The result that the task has ended with.
    pub(crate) result: Option<Result<Answer, Failure>>,
}

impl ActionRun {
    /// Returns whether a failure with this reason was reported before. Always true once `REPORTED` reasons are
    /// reported: the handler then makes up a new reason each time.
    pub(crate) fn has_reported(&self, reason: &str) -> bool {
        self.reported.len() >= REPORTED || self.reported.iter().any(|before| before == reason)
    }

    /// Returns an attempt of this run.
    pub(crate) fn attempt(&self, number: u32) -> Attempt {
        Attempt::new(&*self.id, number, self.state)
    }
}

impl ObjectWork {
    /// Returns whether nothing runs. The texts mean nothing without the work that the machine knows.
    pub(crate) fn is_empty(&self) -> bool {
        self.task.is_none() && self.ending.is_none()
    }

    /// Begins an attempt: the texts of the run are kept, if it is the one that began last.
    pub(crate) fn begin(
        &mut self,
        start: &Start,
        id: impl FnOnce() -> String,
        state: &'static str,
    ) -> &mut ActionRun {
        let before = self.run.take().filter(|run| run.work == start.work);
        let run = before.unwrap_or_else(|| ActionRun {
            work: start.work,
            id: id(),
            state,
            began: Instant::now(),
            reported: Vec::new(),
            progress: None,
            recording: None,
            result: None,
        });
        let began = if start.continues {
            run.began
        } else {
            Instant::now()
        };
        self.run.insert(ActionRun { began, ..run })
    }

    /// Passes the tasks that have ended to the machine.
    pub(crate) fn catch_up(&mut self, machine: &mut Machine) {
        if self.ending.take_if(|it| it.is_cancelled()).is_some() {
            machine.end_task();
        }
        let Some((task, running)) = &self.task else {
            return;
        };
        let recording = self.run.as_ref().and_then(|run| run.recording.as_ref());
        if recording.is_some_and(Recording::is_awaited) {
            machine.ask_to_record(*task);
        }
        // Read first: a task stores its result before it is over.
        let is_over = running.is_over();
        let result = running.take_end();
        if result.is_none() && !is_over {
            return;
        }
        let task = *task;
        self.task = None;
        self.end(task, result, machine);
    }

    /// Takes the end of a task, or none if it was dropped without a result.
    pub(crate) fn end(
        &mut self,
        task: TaskId,
        result: Option<Result<Answer, Failure>>,
        machine: &mut Machine,
    ) {
        if machine.end_work(task, result.as_ref().map(numbers))
            && let Some(run) = &mut self.run
        {
            run.result = result;
        }
    }

    /// Cancels a task, which may take a while to end.
    pub(crate) fn cancel(&mut self, task: Option<TaskId>) {
        if let Some((_, running)) = self.task.take_if(|(running, _)| Some(*running) == task) {
            running.cancel();
            self.ending = Some(running.over);
        }
    }

    /// Changes the texts according to a draft that has taken effect.
    pub(crate) fn take_effect(&mut self, draft: &Draft) {
        match draft.work {
            WorkChange::New | WorkChange::None => self.run = None,
            WorkChange::Retry => {
                // The failure of this attempt is reported.
                if let Some(run) = &mut self.run
                    && let Some(Err(failure)) = &run.result
                    && !run.has_reported(failure.reason())
                {
                    run.reported.push(failure.reason().to_owned());
                }
            }
            WorkChange::Keep | WorkChange::Wait => {}
        }
    }

    /// Returns whether a task runs or cleans up.
    pub(crate) fn is_running(&self) -> bool {
        let is_running = |(_, running): &(_, Running)| !running.is_over();
        self.task.as_ref().is_some_and(is_running)
            || self.ending.as_ref().is_some_and(|it| !it.is_cancelled())
    }

    /// Returns whether the work of the task that runs would be lost with it; none if none runs.
    pub(crate) fn is_here(&self) -> Option<bool> {
        let (_, running) = self.task.as_ref().filter(|(_, it)| !it.is_over())?;
        Some(running.is_here())
    }
}

/// Converts a result, for the machine.
fn numbers(result: &Result<Answer, Failure>) -> ActionResult {
    match result {
        Ok(Answer::Stay) => ActionResult::Stay,
        Ok(Answer::Next) => ActionResult::Next,
        Ok(Answer::Wait(wait)) => ActionResult::Wait(*wait),
        Ok(Answer::To(to)) => ActionResult::To(*to),
        Err(failure) => ActionResult::Failed {
            permanent: failure.is_permanent(),
        },
    }
}
