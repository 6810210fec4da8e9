//! Why work failed, and whether a retry helps.

use std::fmt;
use std::time::Duration;

use okt_core::pass::Failed;

/// The failure of a handler or an observation.
///
/// Any error converts into a failure that is retried, so `?` works in handlers, also with `anyhow`, `eyre` and boxed
/// errors. The errors of `reach` decide themselves whether a retry helps, also as the source of another error. For other
/// errors, [`ResultExt`](crate::ResultExt) says the reason, and whether a retry helps.
/// A failure does not implement [`Error`](std::error::Error), because that would conflict with this conversion.
///
/// ```
/// use okt::Failure;
///
/// fn read() -> Result<String, Failure> {
///     Ok(std::fs::read_to_string("/nowhere")?)
/// }
/// assert_eq!(read().unwrap_err().reason(), "Error");
/// let wrong = Failure::permanent("BadStorageSize", "spec.storage: `lots` is no quantity");
/// assert!(wrong.is_permanent());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    failed: Failed,
    /// How long the API server asks to wait before the next attempt.
    retry_after: Option<Duration>,
}

impl Failure {
    /// Creates a failure that a retry may fix; OKT retries with backoff.
    ///
    /// `reason` is one word in `PascalCase`, shown in conditions; `message` is for people and must be the
    /// same for the same failure: no times, counters or addresses that change.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of_step(Failed::retry(reason, message))
    }

    /// Creates a failure that only a change of the spec can fix.
    ///
    /// The object takes the `on_error` trigger of its state. Without that trigger the work is not repeated until the spec
    /// changes; a resting object still follows its desired state and its observation.
    pub fn permanent(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of_step(Failed::permanent(reason, message))
    }

    /// Converts the failure of a step.
    #[doc(hidden)]
    pub fn of_step(failed: Failed) -> Self {
        Self {
            failed,
            retry_after: None,
        }
    }

    /// Notes how long the API server asks to wait.
    #[must_use]
    #[doc(hidden)]
    pub fn after(self, retry_after: Option<Duration>) -> Self {
        Self {
            retry_after,
            ..self
        }
    }

    /// Returns how long the API server asks to wait before the next attempt, if it does.
    #[doc(hidden)]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Appends a text to the message.
    #[must_use]
    #[doc(hidden)]
    pub fn saying(mut self, more: &str) -> Self {
        if !more.is_empty() {
            self.failed.message.push_str(": ");
            self.failed.message.push_str(more);
        }
        self
    }

    /// Returns the reason, one word for machines.
    pub fn reason(&self) -> &str {
        &self.failed.reason
    }

    /// Returns the message, for people.
    pub fn message(&self) -> &str {
        &self.failed.message
    }

    /// Returns whether a retry does not help.
    pub fn is_permanent(&self) -> bool {
        self.failed.permanent
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        failure.failed
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason(), self.message())
    }
}
