//! What an application that answers for itself implements: where it is, and the work of each state.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::wire::{ActionId, Owner, Progress, Sighting};

/// An application that answers for itself.
///
/// The program `okt-sidecar` is one whose answers are commands and requests, read from a file.
pub trait Work: Send + Sync + 'static {
    /// The states whose work this application does.
    fn offers(&self) -> Vec<Offer>;

    /// Looks where the application is.
    ///
    /// Called every [`observe_every`](crate::Agent::observe_every) and right after an action ended, never twice at
    /// the same time; a look that takes too long counts as one that got no answer.
    fn observe(&self) -> impl Future<Output = Sighting> + Send;

    /// Does the work of a state.
    ///
    /// Called once for each attempt, and never while another one is under way.
    /// When [`Task::cancelled`] ends, clean up and return; a future that does not return is dropped.
    ///
    /// # Errors
    ///
    /// A [`Fault`] says whether another attempt may help.
    fn perform(&self, task: &Task) -> impl Future<Output = Result<Done, Fault>> + Send;

    /// Ends what an attempt has left behind whose future is gone, such as processes.
    ///
    /// Called when an agent starts and finds an attempt that was under way, before that is begun again or called
    /// unknown; when [`perform`](Self::perform) panicked; and when it was dropped because it did not return.
    /// Nothing else is begun and nothing is said of the action's end before this returned `Ok`.
    /// What it needs to know it has from [`Task::remember`].
    /// Where nothing outlives the process of the agent there is nothing to do, and that is the default.
    ///
    /// # Errors
    ///
    /// Something is left still: it is called again after a while, for as long as it says so.
    fn recover(&self, left: &Leftover) -> impl Future<Output = Result<(), Fault>> + Send {
        let _ = left;
        async { Ok(()) }
    }
}

/// An attempt whose future is gone, and what it remembered.
#[derive(Clone, PartialEq, Debug)]
pub struct Leftover {
    /// The name of the piece of work.
    pub id: ActionId,
    /// The state whose work it is.
    pub state: String,
    /// Which attempt it was.
    pub attempt: u32,
    /// What it remembered, by [`Task::remember`].
    pub notes: BTreeMap<String, Value>,
}

/// A state whose work an application does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The wire name of the state.
    pub state: String,
    /// Whether work that was interrupted may simply be begun again.
    pub repeatable: bool,
}

/// One attempt of a piece of work.
///
/// After a crash of the agent the attempt of a repeatable state is begun again, with [`resumed`](Self::resumed);
/// such work must be idempotent by its [`id`](Self::id).
pub struct Task {
    pub(crate) order: Order,
    pub(crate) cancellation: CancellationToken,
    pub(crate) said: Arc<dyn Said>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) id: ActionId,
    pub(crate) state: String,
    pub(crate) owner: Owner,
    pub(crate) attempt: u32,
    pub(crate) resumed: bool,
    pub(crate) input: Map<String, Value>,
    pub(crate) notes: BTreeMap<String, Value>,
}

/// What is waited for beside the work.
pub(crate) type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who hears what work says of itself.
pub(crate) trait Said: Send + Sync {
    /// How far it is.
    fn progress(&self, progress: Progress);

    /// What it prints.
    fn print(&self, output: &[u8]);

    /// What it has to know of itself after a crash.
    fn remember(&self, key: String, value: Value) -> Waiting<'_, Result<(), NotRemembered>>;
}

/// A note that was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRemembered {
    /// The notes of an action are more than [`NOTES_LIMIT`] bytes; only shorter ones help.
    #[error("remember {0:?}: the notes of an action have {NOTES_LIMIT} bytes at most")]
    TooMuch(String),
    /// It could not be written (is the disk full?); trying again may help.
    #[error("remember {key:?}: {why}")]
    NotRecorded {
        /// The key of the note.
        key: String,
        /// What stood in the way.
        why: String,
    },
}

/// How long the notes of one action may be together, as JSON, in bytes.
pub const NOTES_LIMIT: usize = 16 * 1024;

impl Task {
    /// Names this piece of work for ever, whatever restarts.
    pub fn id(&self) -> &ActionId {
        &self.order.id
    }

    /// The state whose work it is.
    pub fn state(&self) -> &str {
        &self.order.state
    }

    /// For which object.
    pub fn owner(&self) -> &Owner {
        &self.order.owner
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.order.attempt
    }

    /// Whether the work may have been begun before, by an agent that is gone.
    pub fn resumed(&self) -> bool {
        self.order.resumed
    }

    /// What the operator says the work needs to know.
    pub fn input(&self) -> &Map<String, Value> {
        &self.order.input
    }

    /// What the attempt that this one resumes remembered; empty where nothing is resumed.
    pub fn notes(&self) -> &BTreeMap<String, Value> {
        &self.order.notes
    }

    /// Remembers something on disk until the action ends, for [`Work::recover`] and for the attempt that resumes
    /// this one; a later note under the same key takes the place of the earlier one.
    ///
    /// When this returns, a crash of the agent no longer loses the note: write down what has to be found again
    /// (the id of a process group and when it began) before it does anything.
    ///
    /// # Errors
    ///
    /// [`NotRemembered`]: nothing was remembered, and a crash would not know of it.
    pub async fn remember(
        &self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), NotRemembered> {
        self.said.remember(key.into(), value.into()).await
    }

    /// Ends when the work is no longer wanted.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Says how far the work is, for people: `percent` of a hundred, and a text of at most 256 bytes.
    pub fn progress(&self, percent: Option<u8>, message: impl Into<String>) {
        self.said.progress(Progress {
            percent: percent.map(|percent| percent.min(100)),
            message: message.into(),
        });
    }

    /// Keeps what the work prints; of much only the beginning and the end is kept.
    pub fn print(&self, output: &[u8]) {
        self.said.print(output);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.order).finish()
    }
}

/// Work that was done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Done {
    /// The state to go to next; none leaves it to what is wished.
    pub event: Option<String>,
    /// What there is to say of it, for people.
    pub message: String,
}

/// Work that failed.
///
/// ```
/// use okt_sidecar::Fault;
///
/// let full = Fault::retry("DiskFull", "no space left in the archive");
/// let wrong = Fault::permanent("BadSettings", "port: 70000 is no port");
/// assert!(wrong.permanent && !full.permanent);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// One word in `PascalCase`, for machines.
    pub reason: String,
    /// The details, for people; the same for the same failure: no times, counters or addresses that change.
    pub message: String,
    /// Whether another attempt is of no use: only another spec helps.
    pub permanent: bool,
}

impl Fault {
    /// A failure that another attempt may mend.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            permanent: false,
        }
    }

    /// A failure that only another spec can mend.
    pub fn permanent(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            permanent: true,
            ..Self::retry(reason, message)
        }
    }
}
