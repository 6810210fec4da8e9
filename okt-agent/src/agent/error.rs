//! The errors of starting and serving an agent.

use std::io;
use std::path::PathBuf;

use super::tls::TlsError;
use super::token::TokenError;

/// An error that keeps an agent from serving.
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
    /// The address is not loopback, and requests would not be authenticated. Use a token, client certificates or
    /// loopback.
    #[error(
        "listen on {0}: a token, or certificates of clients, are needed on anything but loopback"
    )]
    NoToken(String),
    /// There is no address and no socket to listen on.
    #[error("an agent needs an address or a socket to listen on")]
    Nowhere,
    /// The address is in use or not permitted. A retry may help.
    #[error("listen on {place}")]
    Listen {
        /// The address or socket.
        place: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The agent has ended unexpectedly, which is a bug. A new start continues with its journal.
    #[error("the agent has ended by itself")]
    Ended,
}

/// An error that keeps a journal from being used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another agent uses the journal. A retry helps after that agent has ended.
    #[error("the journal {} belongs to an agent that runs", .0.display())]
    Locked(PathBuf),
    /// The directory cannot be used. A retry helps after its cause is fixed.
    #[error("open the journal {}", .path.display())]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The journal holds a line that no agent has written. Only a person can find out what was done.
    #[error("{0}")]
    Damaged(String),
}
