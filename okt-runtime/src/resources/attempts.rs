//! Backoff of attempts on owned resources: OKT slows down if another controller reverts a change or a request fails.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::StateId;
use okt_core::backoff::Backoff;
use okt_reach::Failure;
use tokio::time::Instant;

use super::names::Key;

/// The shortest time without an attempt after which the next attempt need not wait.
const QUIET: Duration = Duration::from_secs(30);

/// The generation of the spec and the state: if either changes, the backoff starts anew.
pub(crate) type Occasion = (Option<i64>, StateId);

/// The parameters of the backoff between attempts.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Attempts count from the first one of an occasion.
    pub occasion: Occasion,
    /// How long attempts wait.
    pub backoff: Backoff,
    /// What the jitter of this object comes from.
    pub seed: u64,
}

/// The last of some attempts on one subject: it decides how long the next one waits.
#[derive(Debug)]
pub(super) struct LastAttempt {
    occasion: Occasion,
    times: u32,
    first: Instant,
    last: Instant,
    /// The failure of the last attempt, if it failed.
    failure: Option<Failure>,
    /// The uid of the object that existed at the last failure.
    uid: Option<String>,
    /// Who changed the object before the attempt, if that is known.
    changed_by: Option<String>,
}

impl LastAttempt {
    /// Notes an attempt after earlier ones.
    pub(super) fn after(before: Option<&Self>, pace: &Pace, failure: Option<Failure>) -> Self {
        let before = before.filter(|it| it.occasion == pace.occasion);
        let now = Instant::now();
        Self {
            occasion: pace.occasion,
            times: before.map_or(0, |it| it.times).saturating_add(1),
            first: before.map_or(now, |it| it.first),
            last: now,
            failure,
            uid: None,
            changed_by: None,
        }
    }

    /// Returns the time since the first attempt.
    pub(super) fn age(&self) -> Duration {
        self.first.elapsed()
    }

    /// Returns how long the next attempt waits from the last one.
    pub(super) fn backoff(&self, pace: &Pace) -> Duration {
        match &self.failure {
            // OKT retries a permanent failure after the longest wait.
            Some(failure) if failure.is_permanent() => pace.backoff.longest(),
            failure => {
                let asked = failure.as_ref().and_then(Failure::retry_after);
                let wait = pace.backoff.wait(self.times, pace.seed);
                wait.max(asked.unwrap_or_default())
            }
        }
    }

    /// Returns how long the next attempt still has to wait; none if it need not wait.
    ///
    /// Unrelated events do not shorten the wait.
    pub(super) fn wait(&self, pace: &Pace) -> Option<Duration> {
        let is_asked = self
            .failure
            .as_ref()
            .is_some_and(|it| it.retry_after().is_some());
        if self.occasion != pace.occasion && !is_asked {
            return None;
        }
        let left = self.backoff(pace).checked_sub(self.last.elapsed())?;
        (!left.is_zero()).then_some(left)
    }
}

/// The recent attempts on the resources of an object.
#[derive(Debug)]
pub(super) struct Attempts<K = Key>(BTreeMap<K, LastAttempt>);

impl<K> Default for Attempts<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Attempts<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets attempts that are long ago.
    pub(super) fn forget_old(&mut self, pace: &Pace) {
        self.0.retain(|_, attempt| {
            let quiet = attempt.backoff(pace).saturating_mul(2);
            attempt.last.elapsed() < quiet.max(QUIET)
        });
    }

    /// Forgets a permanent failure if another object exists now than at that attempt: a retry may succeed.
    pub(super) fn forget_if_replaced(&mut self, key: &K, uid: Option<&str>) {
        let is_over = |attempt: &LastAttempt| {
            attempt.uid.as_deref() != uid
                && attempt.failure.as_ref().is_some_and(Failure::is_permanent)
        };
        if self.0.get(key).is_some_and(is_over) {
            self.0.remove(key);
        }
    }

    /// Returns how long the next attempt has to wait, and the failure of the last one; none if it need not wait.
    pub(super) fn wait(&self, key: &K, pace: &Pace) -> Option<(Duration, Option<&Failure>)> {
        let attempt = self.0.get(key)?;
        Some((attempt.wait(pace)?, attempt.failure.as_ref()))
    }

    /// Notes an attempt that succeeded, and returns how long the next one has to wait.
    pub(super) fn succeeded(&mut self, key: &K, pace: &Pace) -> Duration {
        self.note(key, pace, LastAttempt::after(self.0.get(key), pace, None))
    }

    /// Notes an attempt that failed, and returns how long the retry has to wait. `uid` is that of the object that
    /// existed.
    pub(super) fn failed(
        &mut self,
        key: &K,
        pace: &Pace,
        failure: Failure,
        uid: Option<&str>,
    ) -> Duration {
        let attempt = LastAttempt::after(self.0.get(key), pace, Some(failure));
        let uid = uid.map(str::to_owned);
        self.note(key, pace, LastAttempt { uid, ..attempt })
    }

    /// Notes who had changed the object before the last attempt.
    pub(super) fn note_change(&mut self, key: &K, by: Option<String>) {
        if let Some(attempt) = self.0.get_mut(key) {
            attempt.changed_by = by;
        }
    }

    /// Returns who had changed the object before the last attempt, if that is known.
    pub(super) fn changed_by(&self, key: &K) -> Option<&str> {
        self.0.get(key)?.changed_by.as_deref()
    }

    fn note(&mut self, key: &K, pace: &Pace, attempt: LastAttempt) -> Duration {
        let wait = attempt.backoff(pace);
        self.0.insert(key.clone(), attempt);
        wait
    }
}
