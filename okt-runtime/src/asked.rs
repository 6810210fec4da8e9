//! Asking the author's code something in a turn: contained where it panics, given up where it hangs.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

use crate::failure::Failure;
use crate::work::panic_text;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Why there is no answer.
pub(crate) enum Unanswered {
    Panicked(String),
    TimedOut,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(said) => f.write_str(said),
            Self::TimedOut => f.write_str("no answer within 10 s"),
        }
    }
}

impl Unanswered {
    /// The same as a failure; a question that hangs is told so.
    pub(crate) fn failure(self, too_late: &str) -> Failure {
        match self {
            Self::Panicked(said) => Failure::retry("Panicked", said),
            Self::TimedOut => Failure::retry("TimedOut", too_late),
        }
    }
}

/// Waits for an answer of the author's code, but not for ever.
///
/// # Errors
///
/// Where it panics or hangs; asked again, it may do better.
pub(crate) async fn asked<T>(question: impl Future<Output = T>) -> Result<T, Unanswered> {
    asked_within(LIMIT, question).await
}

/// The same with a limit of one's own.
pub(crate) async fn asked_within<T>(
    limit: Duration,
    question: impl Future<Output = T>,
) -> Result<T, Unanswered> {
    let contained = AssertUnwindSafe(question).catch_unwind();
    match tokio::time::timeout(limit, contained).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(panic)) => Err(Unanswered::Panicked(panic_text(&*panic))),
        Err(_) => Err(Unanswered::TimedOut),
    }
}
