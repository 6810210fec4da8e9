//! Calls of the application's code: they hold no place in the queue, panics are contained, and a call that hangs is
//! given up.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use okt_core::backoff::Backoff;
use okt_core::{Lifecycle, StateId, reasons};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::author::observation::Observation;
use crate::cache::cached::PlaceOf;
use crate::clock::after;
use crate::failure::Failure;
use crate::texts::{panic_text, seconds};
use crate::wire::object::LifecycleObject;

/// The default time limit of a call.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The longest wait between two calls of an application that does not answer, unless its usual wait is longer.
const SELDOM: Duration = Duration::from_mins(5);

/// The default number of calls that may be pending at the same time.
pub(crate) const QUESTIONS: usize = 4096;

/// One of this many permits is for applications that did not answer the last call.
const DOUBTFUL_SHARE: usize = 4;

/// The permits of pending calls.
///
/// Each call costs its future, a few kilobytes, and what the application's code holds (a connection).
/// Applications that did not answer the last call share a part of the permits, so that the others always find one.
#[derive(Debug)]
pub(crate) struct Questions {
    all: Semaphore,
    doubtful: Semaphore,
}

impl Questions {
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
            Self::Panicked(said) => f.write_str(said),
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
            Self::Panicked(said) => Failure::retry(reasons::PANICKED, said),
            Self::TimedOut(limit) => Failure::retry(
                reasons::TIMED_OUT,
                format!("{what} within {}", seconds(limit)),
            ),
        }
    }
}

/// Calls the application's code for one object.
pub(crate) struct Asker<'a, K: LifecycleObject> {
    pub(crate) questions: &'a Questions,
    pub(crate) place: &'a PlaceOf<K>,
    /// Whether the application did not answer the last call.
    pub(crate) doubtful: bool,
}

impl<K: LifecycleObject> Asker<'_, K> {
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
        let Questions { all, doubtful } = self.questions;
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

/// The backoff for an application that does not answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// The number of calls in a row without an answer.
    times: u32,
    until: Option<Instant>,
}

impl Silence {
    /// Returns whether the application answered the last call.
    pub(crate) fn is_none(self) -> bool {
        self.times == 0
    }

    /// Returns how long the application is not called; none if it may be called.
    pub(crate) fn left(self) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Notes a call without an answer: the next call comes after `usual`, and later ones after longer and longer waits.
    pub(crate) fn lasts(&mut self, usual: Duration, seed: u64) {
        self.times = self.times.saturating_add(1);
        let wait = Backoff::new(usual, usual.max(SELDOM)).wait(self.times, seed);
        self.until = Some(after(wait));
    }

    /// Ends the backoff: the application has answered, or is to be called at once.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}

/// The memory of the observations of an application.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// The number of observations in a row that failed.
    pub(crate) failed: u32,
    /// Since when every observation that succeeded has found no application.
    pub(crate) absent_since: Option<Instant>,
    /// When an absence counts, if it does not yet.
    pub(crate) absent_at: Option<Instant>,
    /// The backoff for observations.
    pub(crate) silence: Silence,
    /// The backoff for the extra status.
    pub(crate) extra_silence: Silence,
    /// The states that the observation named as events although no edge leads there, as last logged.
    pub(crate) refused_events: Vec<StateId>,
}

impl Sight {
    /// Returns whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            failed,
            absent_since,
            // It is set only with the other.
            absent_at: _,
            silence,
            extra_silence,
            refused_events,
        } = self;
        *failed == 0
            && absent_since.is_none()
            && silence.is_none()
            && extra_silence.is_none()
            && refused_events.is_empty()
    }

    /// Returns the observation as it counts: without its state while an absence is tolerated. `in_state` is the time since
    /// the object entered its state, in which an application may begin anew.
    pub(crate) fn counted<S: Lifecycle>(
        &mut self,
        observation: Observation<S>,
        in_state: Duration,
    ) -> Observation<S> {
        self.absent_at = None;
        let Some(tolerance) = observation.absence() else {
            if !observation.is_unreachable() {
                self.absent_since = None;
            }
            return observation;
        };
        let since = *self.absent_since.get_or_insert_with(Instant::now);
        let left = tolerance.saturating_sub(since.elapsed().min(in_state));
        if left.is_zero() {
            return observation;
        }
        self.absent_at = Some(after(left));
        observation.without_state()
    }

    /// Returns the time until the application is observed again although nothing happened, if it is usually this one.
    pub(crate) fn observe_after(&self, usual: Duration) -> Duration {
        // The application is not called before its backoff ends.
        let silence = self.silence.left().unwrap_or_default();
        let absence = self
            .absent_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        usual.min(absence.unwrap_or(usual)).max(silence)
    }

    /// Returns whether the application did not answer the last call.
    pub(crate) fn is_silent(&self) -> bool {
        !self.silence.is_none() || !self.extra_silence.is_none()
    }
}
