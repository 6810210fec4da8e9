//! How often something was tried of late, so that nobody is fought, and nobody who refuses is asked, at full speed.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::StateId;
use okt_core::backoff::Backoff;
use tokio::time::Instant;

use super::index::Key;
use crate::failure::Failure;

/// How long nothing was done at least, until it is done again without a wait.
const QUIET: Duration = Duration::from_secs(30);

/// What makes one declaration another: a spec, a state.
pub(crate) type Occasion = (Option<i64>, StateId);

/// How the waits between efforts grow.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) occasion: Occasion,
    pub(crate) backoff: Backoff,
    pub(crate) seed: u64,
}

/// What an effort is about: one object, or all that is declared.
pub(crate) type Subject = Option<Key>;

/// What was tried for an object of late.
#[derive(Debug, Default)]
pub(crate) struct Efforts(BTreeMap<Subject, Effort>);

/// How often something was tried.
#[derive(Debug)]
struct Effort {
    occasion: Occasion,
    times: u32,
    last: Instant,
    /// What has gone wrong at last.
    failure: Option<Failure>,
    /// The uid of the object that was there then.
    seen: Option<String>,
}

impl Effort {
    fn wait(&self, pace: &Pace) -> Duration {
        match &self.failure {
            // What can only be mended by somebody is tried again seldom.
            Some(failure) if failure.is_permanent() => pace.backoff.longest(),
            Some(_) | None => pace.backoff.wait(self.times, pace.seed),
        }
    }
}

impl Efforts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what is long ago.
    pub(crate) fn rest(&mut self, pace: &Pace) {
        self.0.retain(|_, effort| {
            let quiet = effort.wait(pace).saturating_mul(2);
            effort.last.elapsed() < quiet.max(QUIET)
        });
    }

    /// Whether the last effort has failed.
    pub(crate) fn has_failed(&self, subject: &Subject) -> bool {
        (self.0.get(subject)).is_some_and(|effort| effort.failure.is_some())
    }

    /// Forgets what has come out well.
    pub(crate) fn forget(&mut self, subject: &Subject) {
        self.0.remove(subject);
    }

    /// Notes which object was there when the last effort failed.
    pub(crate) fn saw(&mut self, subject: &Subject, uid: Option<&str>) {
        if let Some(effort) = self.0.get_mut(subject) {
            effort.seen = uid.map(str::to_owned);
        }
    }

    /// What was refused for good with another object there, or none, may be taken now.
    pub(crate) fn sees(&mut self, subject: &Subject, uid: Option<&str>) {
        let is_over = |effort: &Effort| {
            effort.seen.as_deref() != uid
                && effort.failure.as_ref().is_some_and(Failure::is_permanent)
        };
        if self.0.get(subject).is_some_and(is_over) {
            self.0.remove(subject);
        }
    }

    /// How long the next effort has to wait, and what went wrong with the last one.
    ///
    /// Unrelated events do not bring it forward.
    pub(crate) fn wait(
        &self,
        subject: &Subject,
        pace: &Pace,
    ) -> Option<(Duration, Option<&Failure>)> {
        let effort = (self.0.get(subject)).filter(|effort| effort.occasion == pace.occasion)?;
        let left = effort.wait(pace).checked_sub(effort.last.elapsed())?;
        (!left.is_zero()).then_some((left, effort.failure.as_ref()))
    }

    /// Notes an effort; how long the next one has to wait.
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
