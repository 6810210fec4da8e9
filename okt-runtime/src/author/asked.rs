//! Calls of the application's code: they hold no place in the queue, panics are contained, and a call that hangs is
//! given up.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use okt_core::reasons;
use okt_reach::Failure;
use okt_wire::object::LifecycleObject;
use okt_wire::texts::{panic_text, seconds};
use tokio::sync::Semaphore;

use crate::cache::cached::PlaceOf;

/// The default time limit of a call.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The default number of calls that may be pending at the same time.
pub(crate) const QUESTIONS: usize = 4096;

/// One of this many permits is for applications that did not answer the last call.
const DOUBTFUL_SHARE: usize = 4;

/// The permits of pending calls.
///
/// Each call costs its future, a few kilobytes, and what the application's code holds (a connection).
/// Applications that did not answer the last call share a part of the permits, so that the others always find one.
#[derive(Debug)]
pub(crate) struct CallPermits {
    all: Semaphore,
    doubtful: Semaphore,
}

impl CallPermits {
    pub(crate) fn new(permits: usize) -> Self {
        let permits = permits.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Semaphore::new(permits),
            doubtful: Semaphore::new(permits.div_ceil(DOUBTFUL_SHARE)),
        }
    }
}

/// Why a call has no answer.
pub(crate) enum Unanswered {
    /// The code panicked with this message.
    Panicked(String),
    /// There was no answer within this time.
    TimedOut(Duration),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(text) => f.write_str(text),
            Self::TimedOut(limit) => {
                write!(
                    f,
                    "no answer within {}; the wait between observations grows",
                    seconds(*limit)
                )
            }
        }
    }
}

impl Unanswered {
    /// Converts it to a failure; the message of a timeout begins with `what`.
    pub(crate) fn failure(self, what: &str) -> Failure {
        match self {
            Self::Panicked(text) => Failure::retry(reasons::PANICKED, text),
            Self::TimedOut(limit) => Failure::retry(
                reasons::TIMED_OUT,
                format!("{what} within {}", seconds(limit)),
            ),
        }
    }
}

/// Calls the application's code for one object.
pub(crate) struct CallGuard<'a, K: LifecycleObject> {
    pub(crate) questions: &'a CallPermits,
    pub(crate) place: &'a PlaceOf<K>,
    /// Whether the application did not answer the last call.
    pub(crate) doubtful: bool,
}

impl<K: LifecycleObject> CallGuard<'_, K> {
    /// Waits for the answer of a call, at most for `limit`.
    ///
    /// # Errors
    ///
    /// If the call panics or hangs; a retry may help.
    pub(crate) async fn ask<T>(
        &self,
        limit: Duration,
        question: impl Future<Output = T>,
    ) -> Result<T, Unanswered> {
        let CallPermits { all, doubtful } = self.questions;
        let answer = async {
            // The semaphores are never closed.
            let _doubtful = if self.doubtful {
                doubtful.acquire().await.ok()
            } else {
                None
            };
            let _place = all.acquire().await.ok();
            let contained = AssertUnwindSafe(question).catch_unwind();
            tokio::time::timeout(limit, contained).await
        };
        let mut answer = std::pin::pin!(answer);
        // A call that answers at once keeps its permit in the queue.
        let answer = match (&mut answer).now_or_never() {
            Some(answer) => answer,
            None => self.place.aside(answer).await,
        };
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(panic)) => Err(Unanswered::Panicked(panic_text(&*panic))),
            Err(_) => Err(Unanswered::TimedOut(limit)),
        }
    }
}
