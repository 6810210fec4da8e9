//! One attempt: runs the future of the work so that neither its panic nor its hang affects anything else.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::board::{Board, Live};
use super::command::ActorRequest;
use crate::wire::{Progress, cut_to};
use crate::work::{Done, Fault, Leftover, NotRemembered, Order, Task, TaskReports, Waiting, Work};

/// The timeout of one call of [`Work::recover`].
const RECOVER_LIMIT: Duration = Duration::from_mins(1);

/// The time between two calls of [`Work::recover`].
const RECOVER_EVERY: Duration = Duration::from_secs(5);

/// The limit for the text of a progress, in bytes.
const PROGRESS_LIMIT: usize = 256;

/// The first step of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    /// Do the work.
    Perform,
    /// Clean up what an earlier agent has left, then do the work.
    Resume,
    /// Clean up what an earlier agent has left, and do not begin the work.
    CleanUp,
}

/// How an attempt ended; nothing of it runs any more.
#[derive(Debug)]
pub(super) enum Ending {
    /// The work returned.
    Returned(Result<Done, Fault>),
    /// The work panicked, with this text.
    Panicked(String),
    /// The work was cancelled and did not return, or was not begun at all.
    Dropped,
}

/// The input of an attempt.
pub(super) struct AttemptInput<W> {
    pub(super) work: Arc<W>,
    pub(super) order: Order,
    pub(super) course: Course,
    pub(super) reports: Arc<AttemptReports>,
    pub(super) cancellation: CancellationToken,
    pub(super) cancel_limit: Duration,
}

impl<W: Work> AttemptInput<W> {
    /// Runs the attempt to its end.
    pub(super) async fn run(self) -> Ending {
        match self.course {
            Course::Perform => {}
            Course::Resume | Course::CleanUp => self.recover().await,
        }
        if self.course == Course::CleanUp || self.cancellation.is_cancelled() {
            return Ending::Dropped;
        }
        let task = Task {
            order: self.order.clone(),
            cancellation: self.cancellation.clone(),
            reports: Arc::clone(&self.reports) as Arc<dyn TaskReports>,
        };
        let work = Arc::clone(&self.work);
        let mut performing = AbortOnDropHandle::new(tokio::spawn(async move {
            // The call itself may panic too, so it is inside the task.
            work.perform(&task).await
        }));
        let too_long = async {
            self.cancellation.cancelled().await;
            sleep(self.cancel_limit).await;
        };
        let joined = tokio::select! {
            joined = &mut performing => joined,
            () = too_long => {
                performing.abort();
                // A future that blocks its thread continues until it stops blocking. The attempt does not end before.
                performing.await
            }
        };
        match joined {
            Ok(result) => Ending::Returned(result),
            Err(error) => {
                self.recover().await;
                panic_text(error).map_or(Ending::Dropped, Ending::Panicked)
            }
        }
    }

    /// Cleans up what is left of the attempt, and retries until it succeeds.
    async fn recover(&self) {
        loop {
            let left = Leftover {
                id: self.order.id.clone(),
                state: self.order.state.clone(),
                attempt: self.order.attempt,
                notes: self.reports.notes(),
            };
            let work = Arc::clone(&self.work);
            let recovering =
                AbortOnDropHandle::new(tokio::spawn(async move { work.recover(&left).await }));
            let why = match timeout(RECOVER_LIMIT, recovering).await {
                Ok(Ok(Ok(()))) => return,
                Ok(Ok(Err(fault))) => fault.message,
                Ok(Err(error)) => panic_text(error).unwrap_or_default(),
                Err(_) => format!("no end within {RECOVER_LIMIT:?}"),
            };
            tracing::warn!(id = %self.order.id, why, "cannot clean up after an attempt");
            let message = format!("cannot clean up after this attempt: {why}");
            self.reports.progress(Progress {
                percent: None,
                message,
            });
            sleep(RECOVER_EVERY).await;
        }
    }
}

/// Returns the text of a panicked task, or `None` if the task was aborted.
pub(super) fn panic_text(error: JoinError) -> Option<String> {
    let payload: Box<dyn Any + Send> = error.try_into_panic().ok()?;
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    let text = formatted.or_else(|| payload.downcast_ref::<&str>().copied());
    Some(text.unwrap_or("a panic without a text").to_owned())
}

/// Passes the reports of one attempt to where they are kept.
#[derive(Debug)]
pub(super) struct AttemptReports {
    pub(super) live: Arc<Live>,
    pub(super) board: watch::Receiver<Board>,
    pub(super) requests: mpsc::Sender<ActorRequest>,
}

impl AttemptReports {
    /// Returns the notes of the attempt.
    pub(super) fn notes(&self) -> BTreeMap<String, Value> {
        let board = self.board.borrow();
        let action = board.memory.action(&self.live.id);
        action.map(|it| it.notes.clone()).unwrap_or_default()
    }
}

impl TaskReports for AttemptReports {
    fn progress(&self, progress: Progress) {
        self.live.set_progress(Progress {
            message: cut_to(progress.message, PROGRESS_LIMIT),
            ..progress
        });
    }

    fn print(&self, output: &[u8]) {
        self.live.output().print(output);
    }

    fn remember(&self, key: String, value: Value) -> Waiting<'_, Result<(), NotRemembered>> {
        Box::pin(async move {
            let gone = || NotRemembered::NotRecorded {
                key: key.clone(),
                why: "the agent has ended".to_owned(),
            };
            let (reply, answer) = oneshot::channel();
            let request = ActorRequest::Remember {
                id: self.live.id.clone(),
                attempt: self.live.attempt,
                key: key.clone(),
                value,
                reply,
            };
            self.requests.send(request).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }
}
