//! The agent: what serves the protocol for an application.
//!
//! | what | file |
//! |---|---|
//! | what becomes of a request | `rules` |
//! | what is remembered, and how it comes to the disk | `memory`, `journal` |
//! | who changes it, one step after the other | `actor` |
//! | the work of one attempt; what it prints | `attempt`, `output` |
//! | where the application is | `observe` |
//! | what everybody may read at any time | `board` |
//! | the paths, and what answers there | `service`, `token`, `metrics` |
//! | where it listens, and who is let in | `listen`, `serve`, `connections`, `tls` |

mod actor;
mod attempt;
mod board;
mod connections;
mod error;
mod journal;
mod listen;
mod memory;
mod metrics;
mod observe;
mod output;
mod rules;
mod serve;
mod service;
mod settings;
mod tls;
mod token;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::actor::Actor;
use self::board::{Board, Trouble};
pub use self::error::{JournalError, ServeError};
use self::journal::{Gate, Journal, Opened};
pub use self::listen::Listen;
use self::memory::Memory;
use self::metrics::Metrics;
pub use self::serve::Bound;
use self::service::body::Places;
use self::service::{Entrance, Front};
use self::settings::Settings;
pub use self::tls::TlsError;
pub use self::token::TokenError;
use crate::wire::{AgentInfo, ObjectRef, Owner};
use crate::work::{Offer, Work};

/// How many requests may wait for the disk.
const COMMANDS: usize = 1024;

/// An agent that is being set up.
///
/// ```
/// use std::time::Duration;
/// use okt_sidecar::wire::Sighting;
/// use okt_sidecar::{Agent, Done, Fault, Offer, Task, Work};
/// # use axum::body::Body;
/// # use axum::http::Request;
/// # use tower::ServiceExt as _;
///
/// struct Notes;
///
/// impl Work for Notes {
///     fn offers(&self) -> Vec<Offer> {
///         vec![Offer { state: "Servicing".into(), repeatable: true }]
///     }
///
///     async fn look(&self) -> Sighting {
///         Sighting::in_state("Running")
///     }
///
///     async fn perform(&self, task: &Task) -> Result<Done, Fault> {
///         task.print(b"copying the notes\n");
///         Ok(Done::default())
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// let started = Agent::new(Notes, directory.path())
///     .observe_every(Duration::from_secs(1))
///     .start()
///     .await?;
/// let request = Request::get("/lifecycle/v1/status").body(Body::empty())?;
/// let answer = started.router().oneshot(request).await?;
/// assert_eq!(answer.status(), 200);
/// started.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Agent<W> {
    work: W,
    directory: PathBuf,
    settings: Settings,
    token: Option<PathBuf>,
    gate: Gate,
}

impl<W: Work> Agent<W> {
    /// An agent for this application, which keeps its journal in this directory.
    ///
    /// The directory is made where it is missing; no two agents may use one at the same time, and it has to be
    /// there again when the agent starts anew, also on another machine if the application moves.
    pub fn new(work: W, journal_directory: impl Into<PathBuf>) -> Self {
        Self {
            work,
            directory: journal_directory.into(),
            settings: Settings::default(),
            token: None,
            gate: Box::new(|_| Ok(())),
        }
    }

    /// What it calls itself; `okt-sidecar` and the version of this crate otherwise.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.settings.agent = AgentInfo {
            name: name.into(),
            version: version.into(),
        };
        self
    }

    /// The namespace (empty for a cluster-scoped object) and name of the object that it belongs to.
    ///
    /// Requests for other objects are refused.
    /// Without this the agent belongs to the object of the first request that it takes.
    /// An agent whose journal belongs to another object is [freed](free) first.
    #[must_use]
    pub fn object(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        self.settings.object = Some(ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
        });
        self
    }

    /// The hash of the graph that it was made for; operators with another one are refused.
    #[must_use]
    pub fn graph(mut self, hash: impl Into<String>) -> Self {
        self.settings.graph = Some(hash.into());
        self
    }

    /// How long it is waited between two looks at the application; 5 s otherwise, and 10 ms at least.
    #[must_use]
    pub fn observe_every(mut self, every: Duration) -> Self {
        self.settings.observe_every = every.max(Duration::from_millis(10));
        self
    }

    /// How long a look may take; 5 s otherwise.
    #[must_use]
    pub fn observe_timeout(mut self, limit: Duration) -> Self {
        self.settings.observe_timeout = limit;
        self
    }

    /// How long work may go on after it was told to end, before it is dropped; 10 s otherwise.
    #[must_use]
    pub fn cancel_limit(mut self, limit: Duration) -> Self {
        self.settings.cancel_limit = limit;
        self
    }

    /// How long work may go on after the agent was told to stop, before it is told to end too; 10 s otherwise.
    #[must_use]
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.settings.stop_limit = limit;
        self
    }

    /// How much of the beginning and of the end of an action's output is kept, in bytes each; 64 KiB otherwise.
    #[must_use]
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.settings.output_limit = bytes;
        self
    }

    /// How many requests may wait for the end of an action; 64 otherwise.
    #[must_use]
    pub fn waits(mut self, most: usize) -> Self {
        self.settings.waits = most;
        self
    }

    /// How many connections may be open; 256 otherwise.
    ///
    /// A further one closes the one that has been silent for longest.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.settings.connections = most;
        self
    }

    /// How long a request may take to arrive, and an answer to be taken; 10 s otherwise.
    #[must_use]
    pub fn request_limit(mut self, limit: Duration) -> Self {
        self.settings.request_limit = limit;
        self
    }

    /// The file with the bearer token that requests over TCP have to carry.
    ///
    /// It is read again every second: another token takes the place of the old one, and nobody is let in while the
    /// file is gone or empty.
    #[must_use]
    pub fn token_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.token = Some(file.into());
        self
    }

    /// Starts, without a listener: for tests, and for an application that has a server of its own.
    ///
    /// What an agent that is gone has left under way is taken up at once.
    /// A journal that is damaged does not keep the agent from starting: it answers where the application is, is
    /// not ready, and takes no action.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub async fn start(self) -> Result<Started, JournalError> {
        let Self {
            work,
            directory,
            settings,
            token: _,
            gate,
        } = self;
        let opened = tokio::task::spawn_blocking(move || open(&directory, gate))
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        let (journal, mut memory, trouble) = opened;
        if let Some(object) = &settings.object
            && let Some(owner) = &memory.owner
            && owner.object() != *object
        {
            tracing::info!(from = %owner.object(), to = %object, "the agent belongs to another object from now on");
            memory.free();
        }
        let offers = offers(&work);
        let settings = Arc::new(settings);
        let metrics = Arc::new(Metrics::new());
        let work = Arc::new(work);
        let stop = CancellationToken::new();
        let (board, read) = watch::channel(Board::new(memory.clone(), trouble));
        let (own, commands) = mpsc::channel(COMMANDS);
        let front = Arc::new(Front {
            boot_id: boot_id(),
            states: offers.iter().map(|offer| offer.state.clone()).collect(),
            board: read,
            commands: own.clone(),
            waits: Semaphore::new(settings.waits),
            places: Places::new(),
            metrics: Arc::clone(&metrics),
            settings: Arc::clone(&settings),
        });
        let observe = observe::observe_on(
            Arc::clone(&work),
            board.clone(),
            Arc::clone(&settings),
            Arc::clone(&metrics),
        );
        let actor = Actor {
            work,
            settings,
            offers,
            journal: Arc::new(Mutex::new(journal)),
            memory,
            board,
            metrics,
            commands,
            own,
            stop: stop.clone(),
            under_way: None,
            unrecorded: None,
            heal: None,
        };
        Ok(Started {
            front,
            stop,
            observe: AbortOnDropHandle::new(tokio::spawn(observe)),
            actor: AbortOnDropHandle::new(tokio::spawn(actor.run())),
        })
    }

    /// Lets the steps of writes fail.
    #[cfg(test)]
    pub(crate) fn gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }
}

impl<W> fmt::Debug for Agent<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("directory", &self.directory)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// An agent that runs.
///
/// Dropped without [`stop`](Self::stop) it ends as by `kill -9`: work under way is dropped, and an agent that starts
/// later finds it in the journal.
pub struct Started {
    front: Arc<Front>,
    stop: CancellationToken,
    observe: AbortOnDropHandle<()>,
    actor: AbortOnDropHandle<()>,
}

impl Started {
    /// The service of the protocol, for whoever has a way to it: no token is asked for.
    pub fn router(&self) -> Router {
        service::router(Arc::clone(&self.front), Entrance::Open)
    }

    /// Stops: no action is begun any more, and the one under way is waited for.
    ///
    /// After the [`stop_limit`](Agent::stop_limit) it is told to end, and after the
    /// [`cancel_limit`](Agent::cancel_limit) it is dropped.
    /// A stop is no result: what was told to end for it and did not succeed is begun again by the next agent if it
    /// is repeatable, and called unknown by it otherwise.
    pub async fn stop(self) {
        self.stop.cancel();
        // It does not panic; if it does, it has ended by that.
        let _ = self.actor.await;
        drop(self.observe);
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started")
            .field("boot_id", &self.front.boot_id)
            .finish_non_exhaustive()
    }
}

/// Frees an agent that does not run: it belongs to no object any more, and every epoch counts as new.
///
/// The next request that is taken binds it again.
/// The actions that were done stay remembered, so none of them is done twice.
/// Returns the owner that it had.
///
/// # Errors
///
/// [`JournalError`]: the agent runs, its directory cannot be used, or its journal is damaged.
pub fn free(journal_directory: &Path) -> Result<Option<Owner>, JournalError> {
    let open = Journal::open(journal_directory, Box::new(|_| Ok(())))?;
    let (mut journal, mut memory) = match open {
        Opened::Usable(journal, memory) => (journal, memory),
        Opened::Damaged(_, damage) => return Err(JournalError::Damaged(damage.to_string())),
    };
    let owner = memory.free();
    journal
        .rewrite(&memory)
        .map_err(|source| JournalError::Open {
            path: journal_directory.to_owned(),
            source,
        })?;
    Ok(owner)
}

fn open(directory: &Path, gate: Gate) -> Result<(Journal, Memory, Option<Trouble>), JournalError> {
    Ok(match Journal::open(directory, gate)? {
        Opened::Usable(journal, memory) => (journal, memory, None),
        Opened::Damaged(journal, damage) => {
            tracing::error!(%damage, "the journal is damaged: no action is taken");
            let trouble = Trouble::Damaged(damage.to_string());
            (journal, Memory::default(), Some(trouble))
        }
    })
}

/// Sorted by name, each state once; where one is offered twice it is repeatable only if both are.
fn offers(work: &impl Work) -> Vec<Offer> {
    let mut offers = BTreeMap::new();
    for offer in work.offers() {
        let repeatable = offers.entry(offer.state).or_insert(offer.repeatable);
        *repeatable &= offer.repeatable;
    }
    (offers.into_iter())
        .map(|(state, repeatable)| Offer { state, repeatable })
        .collect()
}

/// Another text after each start.
fn boot_id() -> String {
    // Its keys come from the system's source of randomness.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_i128(Timestamp::now().as_nanosecond());
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests;
