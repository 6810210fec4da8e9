//! Runs an agent from its configuration to its end.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use okt_agent::private;
use okt_agent::wire::Owner;
use okt_agent::{Agent, JournalError, Listen, ServeError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::children::Children;
use super::config::{ApplicationConfig, Config, ListenConfig, TlsConfig};
use super::work::Program;

/// An error of running an agent.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another agent uses the directory. A retry helps after that agent has ended.
    #[error("another agent uses {0}: two of them would do everything twice")]
    InUse(PathBuf),
    /// The machine lacks a resource. A retry helps once it is available.
    #[error("cannot {what}: {source}")]
    Machine {
        /// The failed operation.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The agent cannot listen, or its journal cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A second signal ended the agent at once, while it still stopped.
    #[error("ended at once by a second signal")]
    AtOnce,
}

fn cannot(what: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let what = what.into();
    |source| RunError::Machine { what, source }
}

/// Runs an agent until SIGTERM or SIGINT ends it.
///
/// # Errors
///
/// [`RunError`].
pub fn run(config: Config) -> Result<(), RunError> {
    let _lock = lock(&config.data)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(cannot("start threads"))?
        .block_on(live(config))
}

/// Locks the directory, so that no other agent manages the same processes.
fn lock(data: &Path) -> Result<File, RunError> {
    let what = || cannot(format!("write to {}", data.display()));
    // Others may pass through it to files that are given to them, but may not list it.
    DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(data)
        .map_err(what())?;
    let lock = private::lock(&data.join("lock")).map_err(what())?;
    lock.ok_or_else(|| RunError::InUse(data.to_owned()))
}

async fn live(config: Config) -> Result<(), RunError> {
    let children = Children::default();
    let reaper = children.clone();
    let reaping = tokio::spawn(async move { reaper.reap().await });
    let mut ending = ShutdownSignals::new().map_err(cannot("hear signals"))?;

    let journal = journal(&config);
    let data = config.data.display().to_string();
    let opened = Program::open(config, children).await;
    let program = Arc::new(opened.map_err(cannot(format!("use {data}")))?);
    let agent = agent(&program, journal);
    let bound = agent.bind([listen(&program.config)]).await?;

    let stop = CancellationToken::new();
    let served = async {
        // The agent ends by itself only after a failure; then the application is left to the next agent.
        bound.run(stop.clone().cancelled_owned()).await?;
        program.close().await;
        Ok(())
    };
    let second_signal = async {
        ending.received().await;
        tracing::info!("the agent is shutting down");
        stop.cancel();
        ending.received().await;
    };
    let done = tokio::select! {
        done = served => done,
        () = second_signal => Err(RunError::AtOnce),
    };
    reaping.abort();
    done
}

fn journal(config: &Config) -> PathBuf {
    config.data.join("journal")
}

/// Frees the agent of a configuration, which must not run; see [`okt_agent::free`].
///
/// Returns the previous owner.
///
/// # Errors
///
/// [`JournalError`].
pub fn free(config: &Config) -> Result<Option<Owner>, JournalError> {
    okt_agent::free(&journal(config))
}

fn listen(config: &Config) -> Listen {
    let listen = match &config.listen {
        ListenConfig::Tcp(address) => Listen::tcp(*address),
        ListenConfig::Unix { path, mode } => Listen::unix(path).mode(*mode),
    };
    match &config.tls {
        None => listen,
        Some(TlsConfig {
            certificate,
            key,
            client_ca: None,
        }) => listen.tls(certificate, key),
        Some(TlsConfig {
            certificate,
            key,
            client_ca: Some(client_ca),
        }) => listen.mutual_tls(certificate, key, client_ca),
    }
}

fn agent(program: &Arc<Program>, journal: PathBuf) -> Agent<Arc<Program>> {
    let config = &program.config;
    let mut agent = Agent::new(Arc::clone(program), journal)
        .name(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        .observe_every(config.probe.every)
        // The probe has its own timeout; this one covers two probes and their ends.
        .observe_timeout(config.probe.timeout * 2 + Duration::from_secs(15))
        .cancel_limit(longest_end(config));
    if let Some(object) = &config.object {
        agent = agent.object(&object.namespace, &object.name);
    }
    if let Some(graph) = &config.graph {
        agent = agent.graph(graph);
    }
    if let Some(bytes) = config.limits.output {
        agent = agent.output_limit(bytes);
    }
    if let Some(limit) = config.limits.stopping {
        agent = agent.stop_limit(limit);
    }
    if let Some(file) = &config.token_file {
        agent = agent.token_file(file);
    }
    if let Some(most) = config.limits.connections {
        agent = agent.connections(most);
    }
    agent
}

/// Returns how long it takes at most until nothing of an action is left.
fn longest_end(config: &Config) -> Duration {
    let graces = config.states.values().map(|job| job.grace);
    let stops = config.application.as_ref().map(ApplicationConfig::stopping);
    // The agent ends the command, and then stops the application that was started before it.
    graces.max().unwrap_or_default() + stops.unwrap_or_default() + Duration::from_secs(10)
}

/// The signals that end the agent.
struct ShutdownSignals {
    term: Signal,
    int: Signal,
}

impl ShutdownSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
