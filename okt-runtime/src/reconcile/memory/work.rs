//! The work of the state on record, as far as this process knows it.

use std::time::Duration;

use okt_core::Answer;
use okt_core::backoff::Backoff;
use okt_core::facts::{ActionResult, Task};
use okt_core::reconcile::{self as facts, WorkChange};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::author::progress::Progress;
use crate::clock::after;
use crate::failure::Failure;
use crate::reconcile::tasks::Running;
use crate::telemetry::event::Attempt;

/// The shortest `Wait`: a wait of zero would spin.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The maximum number of reasons that are reported of one piece of work.
const REPORTED: usize = 16;

/// The work of one object.
#[derive(Default)]
pub(crate) struct Work {
    /// The work on record; none if this process knows nothing of it.
    pub(crate) piece: Option<Piece>,
    /// Cancelled when the previous task has ended; the next one begins only then.
    pub(crate) ending: Option<CancellationToken>,
    /// Whether a stopping operator waits for this object, by the last decision to rest.
    pub(crate) is_under_way: bool,
}

/// One piece of work: a run of a state's action.
pub(crate) struct Piece {
    /// Its id in the record.
    pub(crate) id: String,
    /// The attempt that runs or comes next, from 1.
    pub(crate) attempt: u32,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// The state whose action it is; none before the first attempt.
    pub(crate) state: Option<&'static str>,
    /// When the attempt began.
    pub(crate) began: Option<Instant>,
    /// The generation under which the attempt was started.
    pub(crate) started_under: i64,
    /// The reasons of earlier failures, each once: a reason that is reported already is no news.
    pub(crate) reported: Vec<String>,
    /// Whether a reconcile request named the object since the attempt began.
    pub(crate) named: bool,
    /// The progress that the handler reports; none before the first attempt.
    pub(crate) progress: Option<Progress>,
    pub(crate) stage: Stage,
}

/// The stage of a piece of work.
pub(crate) enum Stage {
    /// This process has recorded it, and it has not begun.
    New,
    /// The task runs.
    Running(Running),
    /// The next attempt comes at this time.
    Waiting {
        due: Instant,
        /// Whether the handler answered `Wait`: a reconcile request brings the next call forward.
        asked: bool,
    },
    /// The task has ended with this result, which no reconciliation has recorded yet.
    Ended(Result<Answer, Failure>),
}

impl Piece {
    /// Work that is about to begin.
    pub(crate) fn new(id: String, attempt: u32) -> Self {
        Self {
            id,
            attempt: attempt.max(1),
            failures: 0,
            state: None,
            began: None,
            started_under: 0,
            reported: Vec::new(),
            named: false,
            progress: None,
            stage: Stage::New,
        }
    }

    /// Returns the attempt that runs or comes next, of the action of this state.
    pub(crate) fn attempt_in(&self, state: &'static str) -> Attempt {
        Attempt {
            id: self.id.clone(),
            number: self.attempt,
            state,
        }
    }

    /// Returns the attempt that has begun, or the next one after it; none before the first.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        self.state.map(|state| self.attempt_in(state))
    }

    /// Returns how long the attempt has taken so far.
    pub(crate) fn took(&self) -> Duration {
        self.began.map(|began| began.elapsed()).unwrap_or_default()
    }

    /// Returns whether a failure with this reason was reported before. Always true once `REPORTED` reasons are
    /// reported: the handler then makes up a new reason each time.
    pub(crate) fn has_reported(&self, reason: &str) -> bool {
        self.reported.len() >= REPORTED || self.reported.iter().any(|before| before == reason)
    }
}

impl Work {
    /// Returns whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            piece,
            ending,
            is_under_way,
        } = self;
        piece.is_none() && ending.is_none() && !is_under_way
    }

    /// Takes over the result of the task, if it has ended.
    pub(crate) fn catch_up(&mut self) {
        self.ending.take_if(|ending| ending.is_cancelled());
        let Some(piece) = &mut self.piece else {
            return;
        };
        let Stage::Running(running) = &piece.stage else {
            return;
        };
        // Read first: a task stores its result before it is over.
        let is_over = running.is_over();
        if let Some(ended) = running.take_end() {
            piece.stage = Stage::Ended(ended);
        } else if is_over {
            self.piece = None;
        }
    }

    /// Returns the stage of the work, for a decision.
    fn task(&self) -> Task {
        let Some(piece) = &self.piece else {
            return Task::Absent;
        };
        match &piece.stage {
            Stage::New => Task::New,
            Stage::Running(_) => Task::Running,
            Stage::Waiting { due, asked } if Instant::now() >= *due || (*asked && piece.named) => {
                Task::Due
            }
            Stage::Waiting { .. } => Task::Waiting,
            Stage::Ended(ended) => Task::Ended(said(ended)),
        }
    }

    /// Returns the memory of the work, for a decision.
    pub(crate) fn facts(&self) -> facts::WorkFacts {
        let piece = self.piece.as_ref();
        facts::WorkFacts {
            task: self.task(),
            stale: false,
            waits: self.ending.as_ref().map(|_| facts::Waits::Ending),
            attempt: piece.map_or(1, |piece| piece.attempt),
            started_under: piece.map_or(0, |piece| piece.started_under),
            due: self.due(),
        }
    }

    /// Returns how long until the next attempt.
    fn due(&self) -> Option<Duration> {
        match self.piece.as_ref()?.stage {
            Stage::Waiting { due, .. } => Some(due.saturating_duration_since(Instant::now())),
            Stage::New | Stage::Running(_) | Stage::Ended(_) => None,
        }
    }

    /// Returns whether the task has ended and its result is not recorded.
    pub(crate) fn has_ended(&self) -> bool {
        (self.piece.as_ref()).is_some_and(|piece| matches!(piece.stage, Stage::Ended(_)))
    }

    /// Returns the failure that the task has ended with.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.piece.as_ref()?.stage {
            Stage::Ended(Err(failure)) => Some(failure),
            Stage::New | Stage::Running(_) | Stage::Waiting { .. } | Stage::Ended(Ok(_)) => None,
        }
    }

    /// Notes a reconcile request: a handler that answered `Wait` is called again.
    pub(crate) fn name(&mut self) {
        if let Some(piece) = &mut self.piece {
            piece.named = true;
        }
    }

    /// Returns whether work runs or cleans up, or has ended with a result that can be recorded.
    pub(crate) fn is_under_way(&self) -> bool {
        let is_running =
            |piece: &Piece| matches!(&piece.stage, Stage::Running(running) if !running.is_over());
        self.is_under_way
            || self.piece.as_ref().is_some_and(is_running)
            || self.ending.as_ref().is_some_and(|it| !it.is_cancelled())
    }

    /// Returns whether another replica must wait before it acts on the object.
    ///
    /// It need not wait for work that only another process does.
    pub(crate) fn is_busy(&self) -> bool {
        match self.piece.as_ref().map(|piece| &piece.stage) {
            Some(Stage::Running(running)) if !running.is_over() => running.is_here(),
            _ => self.is_under_way(),
        }
    }

    /// Forgets the work and cancels its task, which may take a while to end.
    pub(crate) fn cancel(&mut self) {
        if let Some(Piece {
            stage: Stage::Running(running),
            ..
        }) = self.piece.take()
        {
            running.cancel();
            self.ending = Some(running.over);
        }
    }

    /// Forgets work that has not begun, because another operator may have begun it meanwhile.
    pub(crate) fn doubt(&mut self) {
        self.piece
            .take_if(|piece| matches!(piece.stage, Stage::New));
    }

    /// Changes the work as decided, after the decision is recorded. `on_record` returns the work on record.
    ///
    /// Apart from this, work changes only by [`cancel`](Self::cancel), [`doubt`](Self::doubt), and the start and end of
    /// a task.
    pub(crate) fn change(
        &mut self,
        to: WorkChange,
        on_record: impl FnOnce() -> Option<Piece>,
        backoff: Backoff,
        seed: u64,
    ) {
        match to {
            WorkChange::Keep => {}
            WorkChange::None => self.cancel(),
            WorkChange::New => {
                self.cancel();
                self.piece = on_record();
            }
            WorkChange::Retry => self.retry(backoff, seed),
            WorkChange::Wait => self.wait(),
        }
    }

    fn retry(&mut self, backoff: Backoff, seed: u64) {
        let Some(piece) = &mut self.piece else {
            return;
        };
        if let Stage::Ended(Err(failure)) = &piece.stage
            && !piece.has_reported(failure.reason())
        {
            piece.reported.push(failure.reason().to_owned());
        }
        piece.failures = piece.failures.saturating_add(1);
        let wait = backoff.wait(piece.failures.max(piece.attempt), seed);
        piece.attempt = piece.attempt.saturating_add(1);
        piece.stage = Stage::Waiting {
            due: after(wait),
            asked: false,
        };
    }

    fn wait(&mut self) {
        let Some(piece) = &mut self.piece else {
            return;
        };
        let Stage::Ended(Ok(Answer::Wait(wait))) = piece.stage else {
            return;
        };
        // A reconcile request that came while the handler ran may be the one that it now waits for.
        let wait = if std::mem::take(&mut piece.named) {
            Duration::ZERO
        } else {
            wait
        };
        piece.failures = 0;
        piece.stage = Stage::Waiting {
            due: after(wait.max(SHORTEST_WAIT)),
            asked: true,
        };
    }
}

/// Converts a result, for a decision.
fn said(ended: &Result<Answer, Failure>) -> ActionResult {
    match ended {
        Ok(Answer::Stay) => ActionResult::Stay,
        Ok(Answer::Next) => ActionResult::Next,
        Ok(Answer::Wait(_)) => ActionResult::Wait,
        Ok(Answer::To(to)) => ActionResult::To(*to),
        Err(failure) => ActionResult::Failed {
            permanent: failure.is_permanent(),
        },
    }
}
