//! Why a pod or a Service could not be reached, or a command in a container did not succeed.

use std::time::Duration;

use super::output::Output;
use crate::failure::Failure;
use crate::texts::chain;

/// Why a pod or a Service could not be reached, or a command in a container did not succeed.
///
/// It converts into a [`Failure`](crate::Failure) whose reason is the name of the variant;
/// [`retry_helps`](Self::retry_helps) says whether that is one that is tried again.
///
/// A message says how much a command printed, not what: it may be secret, and a failure goes into the status of the
/// object and into events, which more people read than the application's Secrets.
/// The text is in the log at level `debug`, and in a failure that you make with [`with_output`](Self::with_output).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// What was asked for cannot be: a name that is none, no command.
    #[error("cannot ask for {what}: {why}")]
    Unaskable {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such pod, container, Service or port (yet); nothing was done.
    #[error("{what}: {why}")]
    TargetNotFound {
        /// What was asked for.
        what: String,
        /// What is missing.
        why: String,
    },
    /// The container does not run, or no pod of the Service is ready; a command may have been begun before.
    #[error("{what}: {why}")]
    TargetNotRunning {
        /// What was asked for.
        what: String,
        /// What the cluster says of it.
        why: String,
    },
    /// The client's permissions do not suffice; see [`Watches::execs`](crate::Watches::execs) and
    /// [`Watches::forwards`](crate::Watches::forwards).
    #[error("{what}: forbidden: {why}")]
    Forbidden {
        /// What was asked for.
        what: String,
        /// What the API server says.
        why: String,
    },
    /// The API server or the node said no, for another reason.
    #[error("{what}: refused: {why}")]
    Refused {
        /// What was asked for.
        what: String,
        /// What it says.
        why: String,
    },
    /// The connection broke or ended too early: nobody knows how far it came.
    #[error("{what}: {why}")]
    ConnectionLost {
        /// What was asked for.
        what: String,
        /// What became of the connection.
        why: String,
    },
    /// It took too long; a command may run on.
    #[error("{what}: not done within {} s", .after.as_secs_f64())]
    TimedOut {
        /// What was asked for.
        what: String,
        /// How long was waited.
        after: Duration,
    },
    /// The command printed more than was to be read of it; it may run on.
    #[error("{what}: more than {limit} bytes on its standard output")]
    OutputTooLong {
        /// What was asked for.
        what: String,
        /// How many bytes were to be read.
        limit: usize,
    },
    /// The command ended with another exit code than 0.
    #[error("{what}: exit code {code} ({})", .output.size())]
    CommandFailed {
        /// What was asked for.
        what: String,
        /// The exit code.
        code: i32,
        /// What it printed.
        output: Output,
    },
}

impl ReachError {
    /// Whether the same may succeed later, though nobody has changed what was asked for.
    pub fn retry_helps(&self) -> bool {
        !matches!(self, Self::Unaskable { .. } | Self::OutputTooLong { .. })
    }

    /// A failure whose message has the end of what the command printed, for one that prints no secrets.
    ///
    /// It is the end of the standard error, or of the standard output where that is empty, 256 bytes at most.
    /// Every other error is the failure that `?` makes of it.
    ///
    /// ```no_run
    /// use okt_runtime::Failure;
    /// use okt_runtime::reach::{Reach, ReachError};
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

    /// What is asked of the cluster before something can be connected to may take only so long.
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

    /// One word for machines.
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

    /// What an error of the client comes to.
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
