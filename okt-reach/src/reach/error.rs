//! The error of reaching a pod or a Service, or of running a command in a container.

use std::time::Duration;

use okt_wire::texts::chain;

use super::output::Output;
use crate::failure::Failure;

/// The error of reaching a pod or a Service, or of running a command in a container.
///
/// It converts into a [`Failure`](crate::Failure) whose reason is the name of the variant;
/// [`retry_helps`](Self::retry_helps) decides whether the failure is permanent.
///
/// A message has the size of a command's output, not its content: the content may be secret, and a failure goes into
/// the status of the object and into events, which more people read than the application's Secrets.
/// The output is in the log at level `debug`, and in a failure that you create with [`with_output`](Self::with_output).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// The request is invalid: a name cannot be the name of an object, or the command is empty.
    #[error("cannot ask for {what}: {why}")]
    Unaskable {
        /// The request.
        what: String,
        /// The cause.
        why: String,
    },
    /// There is no such pod, container, Service or port (yet); nothing was done.
    #[error("{what}: {why}")]
    TargetNotFound {
        /// The request.
        what: String,
        /// The missing object.
        why: String,
    },
    /// The container does not run, or no pod of the Service is ready; a command may have started before.
    #[error("{what}: {why}")]
    TargetNotRunning {
        /// The request.
        what: String,
        /// The state of the target in the cluster.
        why: String,
    },
    /// The client's permissions do not suffice; see [`Watches::execs`](https://docs.rs/okt/latest/okt/struct.Watches.html#method.execs) and
    /// [`Watches::forwards`](https://docs.rs/okt/latest/okt/struct.Watches.html#method.forwards).
    #[error("{what}: forbidden: {why}")]
    Forbidden {
        /// The request.
        what: String,
        /// The message of the API server.
        why: String,
    },
    /// The API server or the node refused the request for another reason.
    #[error("{what}: refused: {why}")]
    Refused {
        /// The request.
        what: String,
        /// The message of the server.
        why: String,
    },
    /// The connection broke or ended too early: it is unknown how much was done.
    #[error("{what}: {why}")]
    ConnectionLost {
        /// The request.
        what: String,
        /// What happened to the connection.
        why: String,
    },
    /// The request took too long; a command may run on.
    #[error("{what}: not done within {} s", .after.as_secs_f64())]
    TimedOut {
        /// The request.
        what: String,
        /// The timeout.
        after: Duration,
    },
    /// The standard output of the command exceeds the limit; the command may run on.
    #[error("{what}: more than {limit} bytes on its standard output")]
    OutputTooLong {
        /// The request.
        what: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The command ended with an exit code other than 0.
    #[error("{what}: exit code {code} ({})", .output.size())]
    CommandFailed {
        /// The request.
        what: String,
        /// The exit code.
        code: i32,
        /// The output of the command.
        output: Output,
    },
}

impl ReachError {
    /// Returns whether the same request may succeed later.
    pub fn retry_helps(&self) -> bool {
        !matches!(self, Self::Unaskable { .. } | Self::OutputTooLong { .. })
    }

    /// Converts the error into a failure whose message quotes the end of the command's output.
    ///
    /// Use it only for a command that prints no secrets.
    /// The quote is from the standard error, or from the standard output if that is empty, 256 bytes at most.
    /// Every other error becomes the same failure as with `?`.
    ///
    /// ```no_run
    /// use okt::Failure;
    /// use okt::reach::{Reach, ReachError};
    ///
    /// # async fn example(reach: Reach) -> Result<(), Failure> {
    /// let vacuum = reach.exec("team-a", "db-0", ["vacuumdb", "--all"]);
    /// vacuum.run().await.map_err(ReachError::with_output)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_output(self) -> Failure {
        let output = match &self {
            Self::CommandFailed { output, .. } => output.shown(),
            _ => String::new(),
        };
        Failure::from(self).saying(&output)
    }

    /// Limits the time of a request to the cluster that precedes a connection.
    pub(super) async fn within<T>(
        after: Duration,
        what: String,
        asked: impl Future<Output = Result<T, Self>>,
    ) -> Result<T, Self> {
        match tokio::time::timeout(after, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Self::TimedOut { what, after }),
        }
    }

    /// Returns the reason of the failure, one word.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Unaskable { .. } => "Unaskable",
            Self::TargetNotFound { .. } => "TargetNotFound",
            Self::TargetNotRunning { .. } => "TargetNotRunning",
            Self::Forbidden { .. } => "Forbidden",
            Self::Refused { .. } => "Refused",
            Self::ConnectionLost { .. } => "ConnectionLost",
            Self::TimedOut { .. } => "TimedOut",
            Self::OutputTooLong { .. } => "OutputTooLong",
            Self::CommandFailed { .. } => "CommandFailed",
        }
    }

    /// Converts an error of the Kubernetes client.
    pub(super) fn of(what: &str, error: kube::Error) -> Self {
        let what = what.to_owned();
        match error {
            kube::Error::Api(status) => {
                let why = status.message;
                match status.code {
                    401 | 403 => Self::Forbidden { what, why },
                    404 => Self::TargetNotFound { what, why },
                    _ => Self::Refused { what, why },
                }
            }
            kube::Error::BuildRequest(error) => Self::Unaskable {
                what,
                why: chain(&error),
            },
            kube::Error::UpgradeConnection(error) => Self::Refused {
                what,
                why: chain(&error),
            },
            error => Self::ConnectionLost {
                what,
                why: chain(&error),
            },
        }
    }
}
