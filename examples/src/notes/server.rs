//! This file runs one server process: it locks the directory, serves it, and shuts down in order.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use okt_agent::{Agent, Listen};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task;
use tokio::time::timeout;

use super::error::{StoreError, holder, sentence};
use super::files::{self, ANNOUNCEMENT, BACKUPS, DATABASE, JOURNAL, PARTIAL, SOCKET};
use super::library::{Library, blocking};
use super::process::{Lock, Taken};
use super::routes::{Desk, router};
use super::wire::Announcement;
use super::work::Service;

/// How often the agent observes the server.
const OBSERVE_EVERY: Duration = Duration::from_secs(1);
/// How long a process that ends waits for open connections.
const CONNECTION_GRACE: Duration = Duration::from_secs(5);

/// What a server is started with.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// The directory of the data; it must have been prepared.
    #[arg(long)]
    pub data: PathBuf,
    /// The name of the agent.
    #[arg(long, default_value = "notes")]
    pub name: String,
    /// The pause after each step of a backup, unless configured otherwise.
    #[arg(long, default_value_t = 0)]
    pub backup_pause_ms: u64,
}

/// Why a process did not serve, or did not shut down in order.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("serve {}: it is no directory; prepare it first", data.display())]
    NoDirectory { data: PathBuf },
    #[error("serve {}: {} serves it already", data.display(), holder(*pid))]
    Served { data: PathBuf, pid: Option<u32> },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Agent(#[from] okt_agent::ServeError),
    #[error("{action}")]
    System {
        action: &'static str,
        source: std::io::Error,
    },
}

/// Serves a directory until it is asked to end by SIGTERM or SIGINT.
///
/// Prints to the standard error why it did not serve, or did not end in order.
///
/// # Flow
///
/// Take the lock, check the database, listen on a free port of the loopback interface for documents and on a socket
/// in the directory for the agent, write `notes.json`, serve; refuse new documents, stop the agent, finish the open
/// requests, checkpoint, leave.
///
/// Clients that may add documents need not be allowed to stop the server: the agent has its own socket, which only the
/// user of the server can use, and which no other process gets when this one is killed.
///
/// # Example
///
/// ```no_run
/// use okt_examples::notes::{ServeArgs, serve};
///
/// # async fn example() -> std::process::ExitCode {
/// serve(ServeArgs { data: "/var/lib/notes".into(), name: "notes".into(), backup_pause_ms: 0 }).await
/// # }
/// ```
pub async fn serve(args: ServeArgs) -> ExitCode {
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not through tracing, which may be filtered: `Instance::start` passes this line on.
            eprintln!("notes: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(args: ServeArgs) -> Result<(), ServeError> {
    let ServeArgs {
        data,
        name,
        backup_pause_ms,
    } = args;
    let lock = lock(data.clone()).await?;
    let announcement = data.join(ANNOUNCEMENT);
    // The announcement of a killed process; no client may trust it while this process gets ready.
    files::remove_file(&announcement).map_err(system("remove stale notes.json"))?;
    let library = Arc::new(open(data.clone()).await?);
    let pause = Duration::from_millis(backup_pause_ms);
    let service = Service::new(Arc::clone(&library), data.clone(), pause);
    // A backup would delay the end of the process for its whole duration; the next process continues it.
    let agent = Agent::new(service, data.join(JOURNAL))
        .name(name, env!("CARGO_PKG_VERSION"))
        .observe_every(OBSERVE_EVERY)
        .stop_limit(Duration::ZERO)
        .bind([Listen::unix(data.join(SOCKET))])
        .await?;
    // Before any client can know this process: an earlier signal just ends it.
    let mut signals = Signals::new().map_err(system("listen to signals"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(system("listen on the loopback"))?;

    let now = Timestamp::now();
    let desk = Arc::new(Desk {
        boot_id: format!("{:x}-{:x}", now.as_nanosecond(), std::process::id()),
        library: Arc::clone(&library),
    });
    let address = listener
        .local_addr()
        .map_err(system("listen on the loopback"))?;
    let content = serde_json::to_vec_pretty(&Announcement {
        boot_id: desk.boot_id.clone(),
        address,
    })
    .expect("an announcement has string keys only");

    let (leave, leaving) = oneshot::channel::<()>();
    let server = axum::serve(listener, router(desk)).with_graceful_shutdown(async {
        // A dropped sender means the same.
        let _ = leaving.await;
    });
    let server = tokio::spawn(server.into_future());
    files::write_atomically(&announcement, &content).map_err(system("write notes.json"))?;
    tracing::info!(%address, data = %data.display(), "serving");

    let told = async {
        signals.next().await;
        library.close().await;
    };
    agent.run(told).await?;
    // The receiver is gone only if the server is.
    let _ = leave.send(());
    if timeout(CONNECTION_GRACE, server).await.is_err() {
        tracing::warn!("leaving although a connection is open");
    }
    let folded = library.checkpoint().await;
    files::remove_file(&announcement).map_err(system("remove notes.json"))?;
    drop(lock);
    Ok(folded?)
}

async fn lock(data: PathBuf) -> Result<Lock, ServeError> {
    if !data.is_dir() {
        return Err(ServeError::NoDirectory { data });
    }
    let directory = data.clone();
    let taken = task::spawn_blocking(move || Lock::take(&directory))
        .await
        .map_err(std::io::Error::other);
    match taken
        .and_then(|taken| taken)
        .map_err(system("lock the directory"))?
    {
        Taken::Lock(lock) => Ok(lock),
        Taken::Held(pid) => Err(ServeError::Served { data, pid }),
    }
}

async fn open(data: PathBuf) -> Result<Library, StoreError> {
    blocking(move || {
        let library = Library::open(&data.join(DATABASE))?;
        let backups = data.join(BACKUPS);
        remove_unfinished(&backups).map_err(StoreError::file("clear", &backups))?;
        Ok(library)
    })
    .await
}

/// Removes the unfinished backups that a killed process left.
fn remove_unfinished(backups: &Path) -> std::io::Result<()> {
    fs::create_dir_all(backups)?;
    for entry in fs::read_dir(backups)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(PARTIAL))
            || path.to_string_lossy().contains(".partial-")
        {
            files::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The signals that ask a process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn system(action: &'static str) -> impl FnOnce(std::io::Error) -> ServeError {
    move |source| ServeError::System { action, source }
}
