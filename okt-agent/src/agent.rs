//! The agent: the server of the protocol for an application.
//!
//! | content | file |
//! |---|---|
//! | the rules that decide about a request | `rules` |
//! | the memory, and how it is stored on disk | `memory`, `journal` |
//! | the actor that changes the memory, one step after the other | `actor` |
//! | the work of one attempt, and its output | `attempt`, `output` |
//! | the observation of the application | `observe` |
//! | the state that every request may read at any time | `board` |
//! | the paths and their handlers | `service`, `token`, `metrics` |
//! | the listeners, and who may connect | `listen`, `serve`, `connections`, `tls` |

mod actor;
mod attempt;
mod board;
mod body;
mod command;
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
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::actor::Actor;
use self::board::{Board, Trouble};
use self::body::BodyPermits;
pub use self::error::{JournalError, ServeError};
use self::journal::{Gate, Journal, Opened};
pub use self::listen::Listen;
use self::memory::AgentMemory;
use self::metrics::Metrics;
pub use self::serve::Bound;
use self::service::{ServiceAccess, ServiceState};
use self::settings::AgentSettings;
pub use self::tls::TlsError;
pub use self::token::TokenError;
use crate::wire::{AgentInfo, ObjectRef, Owner};
use crate::work::{Offer, Work};

/// The number of requests that may wait for the disk.
const REQUESTS: usize = 1024;

/// A builder for an agent.
///
/// ```
/// use std::time::Duration;
/// use okt_agent::wire::Sighting;
/// use okt_agent::{Agent, Done, Fault, Offer, Task, Work};
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
///     async fn observe(&self) -> Sighting {
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
    settings: AgentSettings,
    token: Option<PathBuf>,
    gate: Gate,
}

impl<W: Work> Agent<W> {
    /// Returns a builder for an agent of this application with its journal in this directory.
    ///
    /// The agent creates a missing directory. Two agents must not use one directory at the same time.
    /// Keep the directory across restarts, and move it with the application to another machine.
    pub fn new(work: W, journal_directory: impl Into<PathBuf>) -> Self {
        Self {
            work,
            directory: journal_directory.into(),
            settings: AgentSettings::default(),
            token: None,
            gate: Box::new(|_| Ok(())),
        }
    }

    /// Sets the name and version in the agent's status. The default is `okt-agent` with the version of this crate.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.settings.agent = AgentInfo {
            name: name.into(),
            version: version.into(),
        };
        self
    }

    /// Sets the namespace (empty for a cluster-scoped object) and name of the object that the agent belongs to.
    ///
    /// The agent refuses requests of other objects.
    /// Without this setting it belongs to the object of the first request that it takes.
    /// If the journal belongs to another object, the agent [frees](free) itself first.
    #[must_use]
    pub fn object(mut self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        self.settings.object = Some(ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
        });
        self
    }

    /// Sets the hash of the graph that the agent is bound to. It refuses operators with another graph.
    #[must_use]
    pub fn graph(mut self, hash: impl Into<String>) -> Self {
        self.settings.graph = Some(hash.into());
        self
    }

    /// Sets the time between two observations of the application. The default is 5 s, the minimum 10 ms.
    #[must_use]
    pub fn observe_every(mut self, every: Duration) -> Self {
        self.settings.observe_every = every.max(Duration::from_millis(10));
        self
    }

    /// Sets the timeout of an observation. The default is 5 s.
    #[must_use]
    pub fn observe_timeout(mut self, limit: Duration) -> Self {
        self.settings.observe_timeout = limit;
        self
    }

    /// Sets how long cancelled work may continue before the agent drops it. The default is 10 s.
    #[must_use]
    pub fn cancel_limit(mut self, limit: Duration) -> Self {
        self.settings.cancel_limit = limit;
        self
    }

    /// Sets how long work may continue after the agent began to stop, before it is cancelled. The default is 10 s.
    #[must_use]
    pub fn stop_limit(mut self, limit: Duration) -> Self {
        self.settings.stop_limit = limit;
        self
    }

    /// Sets how many bytes of the beginning and of the end of an action's output are kept, each. The default is 64 KiB.
    #[must_use]
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.settings.output_limit = bytes;
        self
    }

    /// Sets how many requests may wait for the end of an action. The default is 64.
    #[must_use]
    pub fn waits(mut self, most: usize) -> Self {
        self.settings.waits = most;
        self
    }

    /// Sets the maximum number of open connections. The default is 256.
    ///
    /// A further connection closes the one that has been silent longest.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.settings.connections = most;
        self
    }

    /// Sets how long a request may take to arrive, and an answer to be received. The default is 10 s.
    #[must_use]
    pub fn request_limit(mut self, limit: Duration) -> Self {
        self.settings.request_limit = limit;
        self
    }

    /// Sets the file with the bearer token that requests over TCP must carry.
    ///
    /// The agent reads the file again every second. A new token replaces the old one, and the agent refuses every
    /// request while the file is missing or empty.
    #[must_use]
    pub fn token_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.token = Some(file.into());
        self
    }

    /// Starts the agent without a listener, for tests and for an application with its own server.
    ///
    /// The agent at once takes up work that an earlier agent left running.
    /// An agent with a damaged journal starts too: it reports observations, is not ready, and takes no action.
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
        let before = memory.owner.as_ref().map(Owner::object);
        if let (Some(to), Some(from)) = (&settings.object, before)
            && from != *to
        {
            tracing::info!(%from, %to, "the agent belongs to another object from now on");
            memory.free();
        }
        let offers = offers(&work);
        let settings = Arc::new(settings);
        let metrics = Arc::new(Metrics::new());
        let work = Arc::new(work);
        let stop = CancellationToken::new();
        let (board, read) = watch::channel(Board::new(memory.clone(), trouble));
        let (own, requests) = mpsc::channel(REQUESTS);
        let service = Arc::new(ServiceState {
            boot_id: boot_id(),
            states: offers.iter().map(|offer| offer.state.clone()).collect(),
            board: read,
            requests: own.clone(),
            waits: Semaphore::new(settings.waits),
            permits: BodyPermits::new(settings.request_limit),
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
            requests,
            own,
            stop: stop.clone(),
            under_way: None,
            unrecorded: None,
            heal: None,
        };
        Ok(Started {
            service,
            stop,
            observe: AbortOnDropHandle::new(tokio::spawn(observe)),
            actor: AbortOnDropHandle::new(tokio::spawn(actor.run())),
        })
    }

    /// Makes steps of writes fail.
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

/// A running agent.
///
/// If you drop it without [`stop`](Self::stop), it ends as by `kill -9`: running work is dropped, and the next agent
/// finds it in the journal.
pub struct Started {
    service: Arc<ServiceState>,
    stop: CancellationToken,
    observe: AbortOnDropHandle<()>,
    actor: AbortOnDropHandle<()>,
}

impl Started {
    /// Returns the service of the protocol. It asks for no token.
    pub fn router(&self) -> Router {
        service::router(Arc::clone(&self.service), ServiceAccess::Open)
    }

    /// Stops the agent gracefully: it begins no action any more, and waits for the running one.
    ///
    /// After the [`stop_limit`](Agent::stop_limit) it cancels the action, and after the
    /// [`cancel_limit`](Agent::cancel_limit) it drops it.
    /// A stop is not a result. If the action was cancelled by the stop and did not succeed, the next agent begins it
    /// again if it is repeatable, and reports `Unknown` otherwise.
    pub async fn stop(self) {
        self.stop.cancel();
        // An actor that panicked has stopped too.
        let _ = self.actor.await;
        drop(self.observe);
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started")
            .field("boot_id", &self.service.boot_id)
            .finish_non_exhaustive()
    }
}

/// Frees an agent that does not run: it no longer belongs to an object, and takes any epoch.
///
/// The next request that it takes binds it again.
/// The agent remembers the actions that were done, so none of them is done twice.
/// Returns the previous owner.
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

fn open(
    directory: &Path,
    gate: Gate,
) -> Result<(Journal, AgentMemory, Option<Trouble>), JournalError> {
    Ok(match Journal::open(directory, gate)? {
        Opened::Usable(journal, memory) => (journal, memory, None),
        Opened::Damaged(journal, damage) => {
            tracing::error!(%damage, "the journal is damaged: no action is taken");
            let trouble = Trouble::Damaged(damage.to_string());
            (journal, AgentMemory::default(), Some(trouble))
        }
    })
}

/// Returns the offers sorted by name, each state once. A state that is offered twice is repeatable only if both offers
/// are.
fn offers(work: &impl Work) -> Vec<Offer> {
    let mut offers = BTreeMap::new();
    for offer in work.offers() {
        let repeatable = offers.entry(offer.state).or_insert(offer.repeatable);
        *repeatable &= offer.repeatable;
    }
    let offer = |(state, repeatable)| Offer { state, repeatable };
    offers.into_iter().map(offer).collect()
}

/// Returns another text after each start.
fn boot_id() -> String {
    // The keys of the hasher come from the system's source of randomness.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_i128(Timestamp::now().as_nanosecond());
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests;
