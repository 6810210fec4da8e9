//! Backoff of attempts on owned resources: OKT slows down if another controller reverts a change or a request fails.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::StateId;
use okt_core::backoff::Backoff;
use tokio::time::Instant;

use super::index::Key;
use crate::failure::Failure;

/// The shortest time without an attempt after which the next attempt need not wait.
const QUIET: Duration = Duration::from_secs(30);

/// The generation of the spec and the state: if either changes, the backoff starts anew.
pub(crate) type Occasion = (Option<i64>, StateId);

/// The parameters of the backoff between attempts.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) occasion: Occasion,
    pub(crate) backoff: Backoff,
    pub(crate) seed: u64,
}

/// The subject of an attempt: one object, or all declared resources (none).
pub(crate) type Subject = Option<Key>;

/// The recent attempts on the resources of an object.
#[derive(Debug, Default)]
pub(crate) struct Efforts(BTreeMap<Subject, Effort>);

/// The attempts on one subject.
#[derive(Debug)]
struct Effort {
    occasion: Occasion,
    times: u32,
    last: Instant,
    /// The failure of the last attempt, if it failed.
    failure: Option<Failure>,
    /// The uid of the object that existed at the last failure.
    seen: Option<String>,
}

impl Effort {
    fn wait(&self, pace: &Pace) -> Duration {
        match &self.failure {
            // OKT retries a permanent failure after the longest wait.
            Some(failure) if failure.is_permanent() => pace.backoff.longest(),
            Some(_) | None => pace.backoff.wait(self.times, pace.seed),
        }
    }
}

impl Efforts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets attempts that are long ago.
    pub(crate) fn rest(&mut self, pace: &Pace) {
        self.0.retain(|_, effort| {
            let quiet = effort.wait(pace).saturating_mul(2);
            effort.last.elapsed() < quiet.max(QUIET)
        });
    }

    /// Returns whether the last attempt failed.
    pub(crate) fn has_failed(&self, subject: &Subject) -> bool {
        (self.0.get(subject)).is_some_and(|effort| effort.failure.is_some())
    }

    /// Forgets the attempts on a subject.
    pub(crate) fn forget(&mut self, subject: &Subject) {
        self.0.remove(subject);
    }

    /// Notes which object existed when the last attempt failed.
    pub(crate) fn saw(&mut self, subject: &Subject, uid: Option<&str>) {
        if let Some(effort) = self.0.get_mut(subject) {
            effort.seen = uid.map(str::to_owned);
        }
    }

    /// Forgets a permanent failure if another object exists now than at that attempt: a retry may succeed.
    pub(crate) fn sees(&mut self, subject: &Subject, uid: Option<&str>) {
        let is_over = |effort: &Effort| {
            effort.seen.as_deref() != uid
                && effort.failure.as_ref().is_some_and(Failure::is_permanent)
        };
        if self.0.get(subject).is_some_and(is_over) {
            self.0.remove(subject);
        }
    }

    /// Returns how long the next attempt has to wait, and the last failure; none if it need not wait.
    ///
    /// Unrelated events do not shorten the wait.
    pub(crate) fn wait(
        &self,
        subject: &Subject,
        pace: &Pace,
    ) -> Option<(Duration, Option<&Failure>)> {
        let effort = (self.0.get(subject)).filter(|effort| effort.occasion == pace.occasion)?;
        let left = effort.wait(pace).checked_sub(effort.last.elapsed())?;
        (!left.is_zero()).then_some((left, effort.failure.as_ref()))
    }

    /// Notes an attempt, and returns how long the next one has to wait.
    pub(crate) fn made(
        &mut self,
        subject: Subject,
        pace: &Pace,
        failure: Option<Failure>,
    ) -> Duration {
        let before = (self.0.get(&subject)).filter(|it| it.occasion == pace.occasion);
        let times = before.map_or(0, |it| it.times).saturating_add(1);
        let effort = Effort {
            occasion: pace.occasion,
            times,
            last: Instant::now(),
            failure,
            seen: None,
        };
        let wait = effort.wait(pace);
        self.0.insert(subject, effort);
        wait
    }
}
