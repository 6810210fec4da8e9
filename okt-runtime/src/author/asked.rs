//! Asking the author's code something: without a place in the queue, contained where it panics, given up where it hangs.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use okt_core::backoff::Backoff;
use okt_core::{StateId, reasons};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::cache::cached::PlaceOf;
use crate::clock::after;
use crate::failure::Failure;
use crate::texts::{panic_text, seconds};
use crate::wire::object::LifecycleObject;

/// How long an answer may take, by default.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The longest time between two questions to an application that does not answer, where it is not looked at more
/// seldom anyway.
const SELDOM: Duration = Duration::from_mins(5);

/// How many questions may wait for an answer at the same time, by default.
pub(crate) const QUESTIONS: usize = 4096;

/// Of this many places for questions one is left to applications that did not answer before.
const DOUBTFUL_SHARE: usize = 4;

/// The places of questions that wait for an answer.
///
/// Each costs its future, a few kilobytes, and whatever the author's code holds (a connection).
/// Applications that did not answer the last question share a part of the places, so that those that answer always find
/// one.
#[derive(Debug)]
pub(crate) struct Questions {
    all: Semaphore,
    doubtful: Semaphore,
}

impl Questions {
    pub(crate) fn new(places: usize) -> Self {
        let places = places.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Semaphore::new(places),
            doubtful: Semaphore::new(places.div_ceil(DOUBTFUL_SHARE)),
        }
    }
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    /// The code panicked, and said this.
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
                    "no answer within {}; it is asked less and less often",
                    seconds(*limit)
                )
            }
        }
    }
}

impl Unanswered {
    /// The same as a failure; `what` was asked for.
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

/// What asks the author's code about one object.
pub(crate) struct Asker<'a, K: LifecycleObject> {
    pub(crate) questions: &'a Questions,
    pub(crate) place: &'a PlaceOf<K>,
    /// The application did not answer before.
    pub(crate) doubtful: bool,
}

impl<K: LifecycleObject> Asker<'_, K> {
    /// Waits for an answer of the author's code, but no longer than this.
    ///
    /// # Errors
    ///
    /// Where it panics or hangs; asked again, it may do better.
    pub(crate) async fn ask<T>(
        &self,
        limit: Duration,
        question: impl Future<Output = T>,
    ) -> Result<T, Unanswered> {
        let Questions { all, doubtful } = self.questions;
        let answer = async {
            // They are never closed.
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
        // What answers at once need not go and come back.
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

/// How long an application that does not answer a question is not asked again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// How often in a row it has not answered.
    times: u32,
    until: Option<Instant>,
}

impl Silence {
    /// Whether it did answer when it was asked last.
    pub(crate) fn is_none(self) -> bool {
        self.times == 0
    }

    /// Returns how long it is not asked; none where it may be.
    pub(crate) fn left(self) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// It did not answer: the next question comes after a usual wait, and then after longer and longer ones.
    pub(crate) fn lasts(&mut self, usual: Duration, seed: u64) {
        self.times = self.times.saturating_add(1);
        let wait = Backoff::new(usual, usual.max(SELDOM)).wait(self.times, seed);
        self.until = Some(after(wait));
    }

    /// It has answered, or is to be asked at once.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}

/// What is remembered of looks at an application.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// How many failed in a row.
    pub(crate) failed: u32,
    /// How long it is not asked, because it did not answer.
    pub(crate) silence: Silence,
    /// The same of the extra status.
    pub(crate) extra_silence: Silence,
    /// States that the observation named although no edge leads there, as last logged.
    pub(crate) refused_events: Vec<StateId>,
}

impl Sight {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            failed,
            silence,
            extra_silence,
            refused_events,
        } = self;
        *failed == 0 && silence.is_none() && extra_silence.is_none() && refused_events.is_empty()
    }

    /// Whether the application did not answer the last question.
    pub(crate) fn is_silent(&self) -> bool {
        !self.silence.is_none() || !self.extra_silence.is_none()
    }
}
