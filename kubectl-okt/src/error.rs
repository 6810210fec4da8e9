//! The errors of a command, each with its exit code.

use kube::runtime::watcher;
use okt_view::RequestError;
use okt_wire::texts::chain;

/// An error of a command: what happened, to what, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The cluster does not answer, does not permit the request, or does not have the object.
    #[error("{0}")]
    Failed(String),
    /// The API server does not answer, or does not permit the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// The graph, or another owner of a field, does not permit the change; or a check found something.
    #[error("{0}")]
    Refused(String),
    /// The time to wait is over.
    #[error("{0}")]
    TimedOut(String),
}

/// What the exit codes mean, for the help and the man page.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  done
  1  the cluster does not answer, does not permit it, or does not have the object; or a file cannot be read
  2  the command line is wrong
  3  refused: the graph has no such way, another manager owns the field, a check found something, or a request did not
     reach its state
  4  the time to wait is over";

impl Error {
    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Request(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
            Self::TimedOut(_) => 4,
        }
    }

    /// Returns the error of a watch that no retry mends; none if one may.
    pub(crate) fn of_watch(what: &str, error: &watcher::Error) -> Option<Self> {
        match error {
            watcher::Error::InitialListFailed(error @ kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(error @ kube::Error::Api(status)) => {
                let is_lasting = [400, 401, 403, 404].contains(&status.code);
                is_lasting.then(|| RequestError::new(what, error).into())
            }
            _ => None,
        }
    }
}

/// Returns the text of an error of a watch; of an answer of the API only the message.
pub(crate) fn watch_message(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.message.clone(),
        error => chain(error),
    }
}
