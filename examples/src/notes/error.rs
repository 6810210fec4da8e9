//! This file defines the errors, and whether a retry helps.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use okt_agent::client::EndpointError;

use super::files::PATH_BYTES;
use super::schema::SCHEMA_VERSION;

/// An error of an instance.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An id or a name cannot be part of a file name. A retry does not help.
    #[error(
        "make a file name of {name:?}: use 1 to 128 of the characters A-Z a-z 0-9 . _ -, a dot not first"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// The path of the directory is too long for a socket in it. A retry does not help; a directory with a shorter
    /// one does.
    #[error("put a socket into {}: the path has {} bytes; use at most {PATH_BYTES}", data.display(), data.as_os_str().len())]
    Path {
        /// The data directory.
        data: PathBuf,
    },
    /// There is no database. [`Instance::prepare`](super::Instance::prepare) makes it.
    #[error("find the database in {}: the directory is not prepared", data.display())]
    NotPrepared {
        /// The data directory.
        data: PathBuf,
    },
    /// No process serves the directory. [`Instance::start`](super::Instance::start) starts one.
    #[error("reach the server of {}: it is not running", data.display())]
    NotRunning {
        /// The data directory.
        data: PathBuf,
    },
    /// A process holds the directory and does not answer, because it is starting, or hangs. A retry may help.
    #[error("reach the server of {}: it runs but does not answer: {why}", data.display())]
    NotAnswering {
        /// The data directory.
        data: PathBuf,
        /// Why there is no answer.
        why: String,
    },
    /// The process ended before it answered. A retry helps if it was killed, or if the cause, which is in its log, is
    /// gone.
    #[error("start the server of {}: it ended with {status}: {log}", data.display())]
    Ended {
        /// The data directory.
        data: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// An operation was not done in time. A retry continues to wait.
    #[error("wait for the server of {} {what}: it took longer than {limit:?}; its notes.log may say why", data.display())]
    Slow {
        /// The data directory.
        data: PathBuf,
        /// What it should have done.
        what: &'static str,
        /// The time limit.
        limit: std::time::Duration,
    },
    /// A process holds the directory, which the work needs for itself. A retry helps once it is stopped.
    #[error("take {} for this work: {} serves it", data.display(), holder(*pid))]
    InUse {
        /// The data directory.
        data: PathBuf,
        /// The process, if it has written its pid.
        pid: Option<u32>,
    },
    /// The recorded process is another program. Nothing was signalled; a retry does not help.
    #[error("signal process {pid}: its command line does not name {}", data.display())]
    NotOurs {
        /// The data directory.
        data: PathBuf,
        /// The process that was not signalled.
        pid: u32,
    },
    /// The server refused a request. A retry helps with status 503, when it is draining, once it was restarted.
    #[error("{action}: the server refused with {status}: {message}")]
    Refused {
        /// Verb and object.
        action: &'static str,
        /// The HTTP status code.
        status: u16,
        /// The message of the server.
        message: String,
    },
    /// The request or its answer was lost. A retry helps when the process did not end.
    #[error("{action}")]
    Request {
        /// Verb and object.
        action: &'static str,
        /// The error of the HTTP client.
        source: reqwest::Error,
    },
    /// A call of the agent failed; see the inner error.
    #[error(transparent)]
    Agent(#[from] EndpointError),
    /// The database failed; see the inner error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file operation failed. A retry helps when the disk was full.
    #[error("{action} {}", path.display())]
    File {
        /// Verb and object.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns whether the same call may succeed later without a change of the call, the program or the data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotAnswering { .. }
            | Self::Slow { .. }
            | Self::InUse { .. }
            | Self::Request { .. }
            | Self::File { .. } => true,
            Self::Name { .. }
            | Self::Path { .. }
            | Self::NotPrepared { .. }
            | Self::NotRunning { .. }
            | Self::NotOurs { .. } => false,
            // A process that ends on its own has a reason that persists.
            Self::Ended { status, .. } => status.signal().is_some(),
            Self::Refused { status, .. } => *status >= 500,
            Self::Agent(error) => !error.is_permanent(),
            Self::Store(error) => error.is_transient(),
        }
    }

    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File {
            action,
            path: path.into(),
            source,
        }
    }
}

/// An error of a database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file. A retry does not help; preparing does.
    #[error("open database {}: there is no such file; prepare its directory first", path.display())]
    Missing {
        /// The expected path.
        path: PathBuf,
    },
    /// The file is empty, as after an interrupted creation. Preparing again completes it.
    #[error("open database {}: it has no schema yet; prepare its directory again", path.display())]
    Unprepared {
        /// The file.
        path: PathBuf,
    },
    /// `SQLite` cannot read the content, or it belongs to another program. A retry does not help; a backup does.
    #[error("read database {}: it is damaged or no database of notes ({why}); restore a backup", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The fault that was found.
        why: String,
    },
    /// Another version of this program wrote it. A retry does not help.
    #[error("open database {}: its schema has version {found}, and this program knows {SCHEMA_VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its `user_version`.
        found: i64,
    },
    /// `SQLite` failed. A retry helps when the disk was full or the database busy.
    #[error("{action} in database {}", path.display())]
    Refused {
        /// Verb and object.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of `SQLite`.
        source: rusqlite::Error,
    },
    /// A file next to the database could not be written. A retry helps when the disk was full.
    #[error("{action} {}", path.display())]
    File {
        /// Verb and object.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The copy is incomplete. A retry makes another one.
    #[error("check backup {}: it holds {found} documents instead of {expected}", path.display())]
    Incomplete {
        /// The unfinished copy.
        path: PathBuf,
        /// Counted in the copy.
        found: u64,
        /// Counted in the database when the copy began.
        expected: u64,
    },
    /// The work was stopped. A retry does it.
    #[error("{action}: it was stopped because the process is ending")]
    Stopped {
        /// Verb and object.
        action: &'static str,
    },
}

impl StoreError {
    /// Returns whether the same call may succeed later without a change of the program or the data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::File { .. }
            | Self::Incomplete { .. }
            | Self::Stopped { .. } => true,
            Self::Missing { .. }
            | Self::Unprepared { .. }
            | Self::Corrupt { .. }
            | Self::Version { .. } => false,
        }
    }

    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File {
            action,
            path: path.into(),
            source,
        }
    }
}

/// Returns an error and its causes in one line, for a log or an answer that cannot hold the chain.
pub(super) fn sentence(error: &dyn std::error::Error) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        sentence.push_str(": ");
        sentence.push_str(&error.to_string());
        cause = error.source();
    }
    sentence
}

/// Describes a process whose pid may be unknown.
pub(super) fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}
