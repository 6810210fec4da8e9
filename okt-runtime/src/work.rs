//! Work beside the reconciler: one task per object, contained, cancellable, its result kept until a turn takes it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use okt_core::reasons;
use okt_core::{Answer, Dispatch, Lifecycle};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::application::{Application, StateOf};
use crate::backdoor::{Attempt, Backdoor, Fate};
use crate::context::Action;
use crate::failure::Failure;
use crate::places::Place;
use crate::progress::Progress;
use crate::resources::{Name, name_of};
use crate::shared::Shared;
use crate::texts::{panic_text, seconds};

/// How long cancelled work may take to clean up before it is dropped.
const GRACE: Duration = Duration::from_secs(30);

/// With how many names those are forgotten whose tasks are over.
const MANY: usize = 1024;

/// The tasks of one operator; clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct Tasks {
    running: Arc<Mutex<JoinSet<()>>>,
    /// By the name of an object: cancelled when its last task is over.
    last: Arc<Mutex<HashMap<Name, CancellationToken>>>,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Returns the last task of the object of this name, which may be one of an object that is gone, and notes the next.
    fn follow(&self, name: Name, over: CancellationToken) -> Option<CancellationToken> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= MANY {
            last.retain(|_, over| !over.is_cancelled());
        }
        last.insert(name, over)
    }

    /// Ends all tasks, and waits until they are over.
    pub(crate) async fn end(&self) {
        let mut tasks = {
            let mut tasks = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
    }

    /// Ends all tasks when the guard is dropped: without its operator nobody would take what they say.
    pub(crate) fn end_with_this(&self) -> EndOfTasks {
        EndOfTasks(self.clone())
    }
}

/// Ends the tasks when it is dropped.
pub(crate) struct EndOfTasks(Tasks);

impl Drop for EndOfTasks {
    fn drop(&mut self) {
        let mut tasks = (self.0.running.lock()).unwrap_or_else(PoisonError::into_inner);
        tasks.abort_all();
    }
}

/// A task that was started.
pub(crate) struct Running {
    end: Arc<Mutex<Option<Result<Answer, Failure>>>>,
    cancellation: CancellationToken,
    pub(crate) progress: Progress,
    /// Cancelled when the task is over, however it ended.
    over: CancellationToken,
}

impl Running {
    /// What it said, if it has ended; taken once.
    pub(crate) fn take_end(&self) -> Option<Result<Answer, Failure>> {
        self.end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Whether the task is over, however it ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Its work is no longer wanted; what it still says is not looked at.
    pub(crate) fn cancel(&self) {
        self.cancellation.cancel();
    }
}

/// Starts the work of a state, once the task before it has ended.
///
/// `ended` is called when there is something to take, or when the work was not begun because nothing may
/// be begun any more by the time that the task before it has ended.
pub(crate) fn start<A: Application>(
    shared: &Arc<Shared<A>>,
    state: StateOf<A>,
    action: Action<A::Resource>,
    place: Place,
    before: Option<Running>,
    ended: impl FnOnce() + Send + 'static,
) -> Running {
    let application = Arc::clone(&shared.application);
    let end = Arc::new(Mutex::new(None));
    let cancellation = action.cancellation.clone();
    let progress = action.progress.clone();
    let limit = application.attempt_limit(state);
    let slot = Arc::clone(&end);
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    if let Some(before) = before {
        before.cancel();
    }
    // An object that was given up and made anew has the same name: what was begun for the one before still ends.
    let before = shared.tasks.follow(name_of(action.object()), over.clone());
    let sharing = Arc::clone(shared);
    shared.tasks.spawn(async move {
        let _place = place;
        if let Some(before) = before
            && !before.is_cancelled()
        {
            before.cancelled().await;
            // That may take half a minute, and the lead may be lost meanwhile.
            if !sharing.may_start() {
                drop(guard);
                return ended();
            }
        }
        let _over = guard;
        let backdoor = &sharing.backdoor;
        if let Some(said) = attempt(&*application, backdoor, state, &action, limit).await {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
            ended();
        }
    });
    Running {
        end,
        cancellation,
        progress,
        over,
    }
}

/// One attempt; none where it was cancelled.
async fn attempt<A: Application>(
    application: &A,
    backdoor: &Backdoor,
    state: StateOf<A>,
    action: &Action<A::Resource>,
    limit: Duration,
) -> Option<Result<Answer, Failure>> {
    if action.cancellation.is_cancelled() {
        return None;
    }
    let fate = backdoor.fate(|| Attempt {
        id: action.id().to_owned(),
        number: action.attempt(),
        state: state.name(),
        resumed: action.resumed(),
    });
    // Turning its error into a failure is the author's code too.
    let work = || async { (state.dispatch(application, action).await).map_err(Into::into) };
    let work = AssertUnwindSafe(by_fate(fate, work)).catch_unwind();
    let overdue = async {
        action.cancellation.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let said = tokio::select! {
        biased;
        done = work => match done {
            Ok(done) => done,
            Err(panic) => Err(Failure::retry(reasons::PANICKED, panic_text(&*panic))),
        },
        () = overdue => return None,
        () = tokio::time::sleep(limit) => Err(Failure::retry(
            reasons::TIMED_OUT,
            format!("the work of {} took longer than {}", state.name(), seconds(limit)),
        )),
    };
    (!action.cancellation.is_cancelled()).then_some(said)
}

/// The answer of a handler, or what becomes of it in a test.
async fn by_fate<T, F: Future<Output = T>>(fate: Fate, handler: impl Fn() -> F) -> T {
    match fate {
        Fate::Runs => handler().await,
        Fate::Lost => std::future::pending().await,
        Fate::Unanswered => {
            handler().await;
            std::future::pending().await
        }
        Fate::Twice => {
            handler().await;
            handler().await
        }
    }
}
