//! Why work failed, and whether trying again helps.

use std::fmt;

use okt_core::pass::Failed;

/// The failure of a handler or an observation.
///
/// Any error converts into one that is tried again, so `?` works in handlers; the errors of this crate (`reach`) know
/// better whether trying again helps, also behind another error.
/// It is no error itself, because of that.
///
/// ```
/// use okt_runtime::Failure;
///
/// fn read() -> Result<String, Failure> {
///     Ok(std::fs::read_to_string("/nowhere")?)
/// }
/// assert_eq!(read().unwrap_err().reason(), "Error");
/// let wrong = Failure::permanent("BadStorageSize", "spec.storage: `lots` is no quantity");
/// assert!(wrong.is_permanent());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(Failed);

impl Failure {
    /// A failure that trying again may mend; the waits between attempts grow.
    ///
    /// `reason` is one word in `PascalCase`, shown in conditions; `message` is for people and must be the
    /// same for the same failure: no times, counters or addresses that change.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Failed::retry(reason, message))
    }

    /// A failure that only a change of the spec can mend.
    ///
    /// The object takes the `on_error` trigger of its state, or stands still until its spec changes.
    pub fn permanent(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Failed::permanent(reason, message))
    }

    /// The failure of a step.
    pub(crate) fn of_step(failed: Failed) -> Self {
        Self(failed)
    }

    /// The same with more to say.
    #[cfg(feature = "reach")]
    pub(crate) fn saying(mut self, more: &str) -> Self {
        if !more.is_empty() {
            self.0.message.push_str(": ");
            self.0.message.push_str(more);
        }
        self
    }

    /// One word for machines.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The details for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether trying again is of no use.
    pub fn is_permanent(&self) -> bool {
        self.0.permanent
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason(), self.message())
    }
}
