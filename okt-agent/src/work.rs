//! The trait of an application with an embedded agent: how to observe it, and how to do the work of each state.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::wire::{ActionId, Owner, Progress, Sighting};

/// An application with an embedded agent.
///
/// The program `okt-sidecar` implements it with the commands and requests of a configuration file.
pub trait Work: Send + Sync + 'static {
    /// Returns the states whose work this application does.
    fn offers(&self) -> Vec<Offer>;

    /// Observes the application.
    ///
    /// The agent calls it every [`observe_every`](crate::Agent::observe_every) and right after an action ended, never
    /// twice at the same time.
    /// An observation that takes too long counts as unreachable.
    fn observe(&self) -> impl Future<Output = Sighting> + Send;

    /// Does the work of a state.
    ///
    /// The agent calls it once for each attempt, and never while another attempt runs.
    /// When [`Task::cancelled`] returns, clean up and return; the agent drops a future that does not return.
    ///
    /// # Errors
    ///
    /// A [`Fault`] says whether another attempt may help.
    fn perform(&self, task: &Task) -> impl Future<Output = Result<Done, Fault>> + Send;

    /// Cleans up what an attempt has left behind after its future is gone, such as processes.
    ///
    /// The agent calls it in three cases:
    ///
    /// - It starts and finds an attempt that was running. It cleans up before it begins the attempt again or reports
    ///   `Unknown`.
    /// - [`perform`](Self::perform) panicked.
    /// - It dropped [`perform`](Self::perform), which did not return.
    ///
    /// Until this returns `Ok`, the agent begins no other work and does not report that the action ended.
    /// Store the data that it needs with [`Task::remember`].
    /// The default does nothing. It suffices if nothing of your work outlives the agent's process.
    ///
    /// # Errors
    ///
    /// Something is still left. The agent retries after a while, until this returns `Ok`.
    fn recover(&self, left: &Leftover) -> impl Future<Output = Result<(), Fault>> + Send {
        let _ = left;
        async { Ok(()) }
    }
}

/// For a program that keeps its own handle.
impl<W: Work> Work for Arc<W> {
    fn offers(&self) -> Vec<Offer> {
        W::offers(self)
    }

    fn observe(&self) -> impl Future<Output = Sighting> + Send {
        W::observe(self)
    }

    fn perform(&self, task: &Task) -> impl Future<Output = Result<Done, Fault>> + Send {
        W::perform(self, task)
    }

    fn recover(&self, left: &Leftover) -> impl Future<Output = Result<(), Fault>> + Send {
        W::recover(self, left)
    }
}

/// An attempt whose future is gone, with its notes.
#[derive(Clone, PartialEq, Debug)]
pub struct Leftover {
    /// The id of the action.
    pub id: ActionId,
    /// The state whose work it was.
    pub state: String,
    /// The attempt number, starting at 1.
    pub attempt: u32,
    /// The notes that the attempt stored with [`Task::remember`].
    pub notes: BTreeMap<String, Value>,
}

/// A state whose work an application does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The wire name of the state.
    pub state: String,
    /// Whether the agent may simply repeat work that was interrupted.
    pub repeatable: bool,
}

/// One attempt of an action.
///
/// After a crash the agent repeats the attempt if the state is repeatable, and sets [`resumed`](Self::resumed).
/// Make such work idempotent by its [`id`](Self::id).
pub struct Task {
    pub(crate) order: Order,
    pub(crate) cancellation: CancellationToken,
    pub(crate) reports: Arc<dyn TaskReports>,
}

/// The requested work.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) id: ActionId,
    pub(crate) state: String,
    pub(crate) owner: Owner,
    pub(crate) attempt: u32,
    pub(crate) resumed: bool,
    pub(crate) traceparent: Option<String>,
    pub(crate) input: Map<String, Value>,
    pub(crate) notes: BTreeMap<String, Value>,
}

/// A boxed future of the agent that the work awaits.
pub(crate) type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Receives the reports of running work.
pub(crate) trait TaskReports: Send + Sync {
    /// Reports the progress.
    fn progress(&self, progress: Progress);

    /// Keeps a piece of output.
    fn print(&self, output: &[u8]);

    /// Stores a note for after a crash.
    fn remember(&self, key: String, value: Value) -> Waiting<'_, Result<(), NotRemembered>>;
}

/// A note that was not stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRemembered {
    /// The notes of an action exceed [`NOTES_LIMIT`] bytes. A retry does not help; shorten them.
    #[error("remember {0:?}: the notes of an action have {NOTES_LIMIT} bytes at most")]
    TooMuch(String),
    /// The note could not be written, for example because the disk is full. A retry may help.
    #[error("remember {key:?}: {why}")]
    NotRecorded {
        /// The key of the note.
        key: String,
        /// The cause.
        why: String,
    },
}

/// The limit for all notes of one action, as JSON, in bytes.
pub const NOTES_LIMIT: usize = 16 * 1024;

impl Task {
    /// Returns the id of the action. It is unique and survives restarts.
    pub fn id(&self) -> &ActionId {
        &self.order.id
    }

    /// Returns the state whose work this is.
    pub fn state(&self) -> &str {
        &self.order.state
    }

    /// Returns the trace that the attempt belongs to, as in a `traceparent` header (W3C Trace Context): pass it on with
    /// requests. None if the operator sent none, and after a restart of the agent.
    pub fn traceparent(&self) -> Option<&str> {
        self.order.traceparent.as_deref()
    }

    /// Returns the object that owns the application.
    pub fn owner(&self) -> &Owner {
        &self.order.owner
    }

    /// Returns the attempt number, starting at 1.
    pub fn attempt(&self) -> u32 {
        self.order.attempt
    }

    /// Returns whether an earlier agent may have begun this work already.
    pub fn resumed(&self) -> bool {
        self.order.resumed
    }

    /// Returns the input from the operator.
    pub fn input(&self) -> &Map<String, Value> {
        &self.order.input
    }

    /// Returns the notes of the attempt that this one resumes. They are empty if it resumes none.
    pub fn notes(&self) -> &BTreeMap<String, Value> {
        &self.order.notes
    }

    /// Stores a note on disk until the action ends, for [`Work::recover`] and for the attempt that resumes this one.
    /// A later note under the same key replaces the earlier one.
    ///
    /// After this returns, a crash of the agent does not lose the note.
    /// Store whatever a cleanup has to find before it takes effect, for example the id of a process group and its start
    /// time.
    ///
    /// # Errors
    ///
    /// [`NotRemembered`]: the note is not stored.
    pub async fn remember(
        &self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), NotRemembered> {
        self.reports.remember(key.into(), value.into()).await
    }

    /// Returns whether the attempt is to end: its result does not count any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Returns when the action is cancelled.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Reports the progress for people: a percentage from 0 to 100, and a text of at most 256 bytes.
    pub fn progress(&self, percent: Option<u8>, message: impl Into<String>) {
        self.reports.progress(Progress {
            percent: percent.map(|percent| percent.min(100)),
            message: message.into(),
        });
    }

    /// Keeps output of the work. The agent keeps the beginning and the end of long output.
    pub fn print(&self, output: &[u8]) {
        self.reports.print(output);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.order).finish()
    }
}

/// The result of successful work.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The state to go to next; `None` leaves the choice to the desired state.
    pub event: Option<String>,
    /// A message for people.
    pub message: String,
}

/// The result of failed work.
///
/// ```
/// use okt_agent::Fault;
///
/// let full = Fault::retry("DiskFull", "no space left in the archive");
/// let wrong = Fault::permanent("BadSettings", "port: 70000 is no port");
/// assert!(wrong.permanent && !full.permanent);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// One word in `PascalCase`, for machines.
    pub reason: String,
    /// The details, for people. Make the text stable: no times, counters or addresses that change between attempts.
    pub message: String,
    /// Whether a retry is useless until the spec changes.
    pub permanent: bool,
}

impl Fault {
    /// Returns a failure that a retry may fix.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            permanent: false,
        }
    }

    /// Returns a failure that only a changed spec can fix.
    pub fn permanent(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            permanent: true,
            ..Self::retry(reason, message)
        }
    }
}
