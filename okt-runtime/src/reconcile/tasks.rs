//! The tasks that do the work of states: the handle of one task, and all tasks of one operator.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use okt_core::Answer;
use okt_reach::Failure;
use okt_wire::texts::qualified;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::resources::Name;

/// At this number of names those whose tasks are over are forgotten.
const MANY: usize = 1024;

/// The handle of a task that was started.
pub(crate) struct Running {
    pub(crate) end: Arc<Mutex<Option<Result<Answer, Failure>>>>,
    pub(crate) cancellation: CancellationToken,
    /// Cancelled when the task is over, however it ended.
    pub(crate) over: CancellationToken,
    /// Whether only another process does the work, and the next operator finds it there.
    pub(crate) is_elsewhere: Arc<AtomicBool>,
}

impl Running {
    /// Takes the result, if the task has ended; the result can be taken once.
    pub(crate) fn take_end(&self) -> Option<Result<Answer, Failure>> {
        self.end.lock().take()
    }

    /// Returns whether the task is over, however it ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Returns whether the work would be lost, or interrupted, if its task was dropped.
    pub(crate) fn is_here(&self) -> bool {
        !self.is_over() && !self.is_elsewhere.load(Ordering::Acquire)
    }

    /// Cancels the work; its result is ignored.
    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }
}

/// The tasks of one operator; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    running: Arc<Mutex<JoinSet<()>>>,
    /// By the name of an object: cancelled when its last task is over.
    last: Arc<Mutex<HashMap<Name, CancellationToken>>>,
}

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.running.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Notes the last task of the object of this name.
    pub(crate) fn note(&self, name: Name, over: CancellationToken) {
        let mut last = self.last.lock();
        if last.len() >= MANY {
            last.retain(|_, over| !over.is_cancelled());
        }
        last.insert(name, over);
    }

    /// Returns a token that is cancelled when the last task of the object of this name has ended; none if it has ended.
    /// The task may be that of an earlier object with this name.
    pub(crate) fn ending(&self, name: &Name) -> Option<CancellationToken> {
        let last = self.last.lock();
        last.get(name).filter(|over| !over.is_cancelled()).cloned()
    }

    /// Returns the names of the objects whose tasks have not ended, sorted.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let last = self.last.lock();
        let unfinished = last.iter().filter(|(_, over)| !over.is_cancelled());
        let mut names: Vec<String> = unfinished
            .map(|((namespace, name), _)| qualified(namespace.as_deref(), name))
            .collect();
        names.sort();
        names
    }

    /// Aborts all tasks, and waits until they are over.
    pub(crate) async fn end(&self) {
        let mut tasks = {
            let mut tasks = self.running.lock();
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
    }

    /// Returns a guard that aborts all tasks when it is dropped: without the operator their results would be lost.
    pub(crate) fn end_with_this(&self) -> EndOfTasks {
        EndOfTasks(self.clone())
    }
}

/// Aborts the tasks when it is dropped.
pub(crate) struct EndOfTasks(Tasks);

impl Drop for EndOfTasks {
    fn drop(&mut self) {
        let mut tasks = self.0.running.lock();
        tasks.abort_all();
    }
}
