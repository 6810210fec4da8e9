//! What an application that answers for itself implements: where it is, and the work of each state.

use std::fmt;
use std::future::Future;
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
    /// Called every [`look_every`](crate::Agent::look_every) and right after an action ended, never twice at
    /// the same time; a look that takes too long counts as one that got no answer.
    fn look(&self) -> impl Future<Output = Sighting> + Send;

    /// Does the work of a state.
    ///
    /// Called once for each attempt, and never while another one is under way.
    /// When [`Task::cancelled`] ends, clean up and return; a future that does not return is dropped.
    ///
    /// # Errors
    ///
    /// A [`Fault`] says whether another attempt may help.
    fn perform(&self, task: &Task) -> impl Future<Output = Result<Done, Fault>> + Send;
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
}

/// Who hears what work says of itself.
pub(crate) trait Said: Send + Sync {
    /// How far it is.
    fn progress(&self, progress: Progress);

    /// What it prints.
    fn print(&self, output: &[u8]);
}

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
