//! Why an agent cannot serve.

use std::io;
use std::path::PathBuf;

use super::tls::TlsError;
use super::token::TokenError;

/// An agent cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Others than this machine could give orders; a token helps, or certificates of clients, or an address of loopback.
    #[error(
        "listen on {0}: a token, or certificates of clients, are needed on anything but loopback"
    )]
    NoToken(String),
    /// The agent would listen nowhere.
    #[error("an agent needs an address or a socket to listen on")]
    Nowhere,
    /// The place is taken, or not allowed; a retry may help.
    #[error("listen on {place}")]
    Listen {
        /// Where it should have listened.
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// The agent has ended without being told to, which is a mistake in it; a new start goes on with its journal.
    #[error("the agent has ended by itself")]
    Ended,
}

/// A journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another agent uses it; ends with that agent.
    #[error("the journal {} belongs to an agent that runs", .0.display())]
    Locked(PathBuf),
    /// The directory cannot be used; a retry helps once somebody has mended it.
    #[error("open the journal {}", .path.display())]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something stands in it that no agent has written; only a person can tell what was done.
    #[error("{0}")]
    Damaged(String),
}
