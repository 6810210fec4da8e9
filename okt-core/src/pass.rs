//! A pass: what each of its steps says, and the walk from its entry to a leaf; no I/O, no clock.

mod walk;

use alloc::string::String;
use core::time::Duration;

pub(crate) use self::walk::Said;
pub use self::walk::{Operations, Outcome, Results, Visited, Walk};
use crate::graph::ConditionStatus;

/// How one step of a pass ended: what its handler answers.
///
/// A step that fails answers with an error instead: one that is tried again, or one for good.
///
/// ```
/// use core::time::Duration;
/// use okt_core::{ConditionStatus, Step};
///
/// # #[derive(PartialEq, Debug)]
/// # enum AfterGather { Apply }
/// # fn steps() -> [Step<AfterGather>; 5] { [
/// Step::done(AfterGather::Apply),
/// Step::done(AfterGather::Apply).text("3 of 3 are there").again(Duration::from_mins(10)),
/// Step::done(AfterGather::Apply).condition(ConditionStatus::False, "Degraded", "2 of 3 are there"),
/// Step::wait("WaitingForSecret", Duration::from_secs(5)).text("there is no secret db-password"),
/// Step::give_up(),
/// # ] }
/// # assert_eq!(steps().len(), 5);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step<S> {
    pub(crate) end: End<S>,
    pub(crate) text: Option<String>,
    /// Status and reason of the condition, instead of the declared ones.
    pub(crate) own: Option<(ConditionStatus, String)>,
    pub(crate) again: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End<S> {
    Done(S),
    Wait { reason: String, growing: bool },
    GiveUp,
}

impl<S> Step<S> {
    /// The step is done, and the walk goes on here.
    pub fn done(to: S) -> Self {
        Self::ended(End::Done(to))
    }

    /// The step has to wait, for the reason given (one word in `PascalCase`): the walk stops, and begins anew after this
    /// time, or when something it depends on changes.
    pub fn wait(reason: impl Into<String>, time: Duration) -> Self {
        let reason = reason.into();
        Self::ended(End::Wait {
            reason,
            growing: false,
        })
        .again(time)
    }

    /// The same with waits that grow, as after a failure; it counts as none.
    pub fn retry(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::ended(End::Wait {
            reason,
            growing: true,
        })
    }

    /// There is nothing to be done, and it is no failure: the walk stops, and begins anew when something changes.
    pub fn give_up() -> Self {
        Self::ended(End::GiveUp)
    }

    fn ended(end: End<S>) -> Self {
        Self {
            end,
            text: None,
            own: None,
            again: None,
        }
    }

    /// The message of the state's condition, or of `Ready` where the state declares none.
    ///
    /// It is for people, and the same for the same matter: without times and counters.
    #[must_use]
    pub fn text(mut self, message: impl Into<String>) -> Self {
        self.text = Some(message.into());
        self
    }

    /// Status, reason (one word in `PascalCase`) and message of the state's condition, instead of the declared ones.
    ///
    /// Of a step that is done; others say why they are not. Where the status is not the declared one, the object is not ready, although the walk goes on.
    #[must_use]
    pub fn condition(
        mut self,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        self.own = Some((status, reason.into()));
        self.text(message)
    }

    /// The next walk begins after this time at the latest; of several the smallest counts.
    ///
    /// It says nothing against the object being ready.
    #[must_use]
    pub fn again(mut self, time: Duration) -> Self {
        self.again = Some(self.again.map_or(time, |before| before.min(time)));
        self
    }

    /// The same with another successor.
    #[must_use]
    pub fn map<T>(self, to: impl FnOnce(S) -> T) -> Step<T> {
        Step {
            end: match self.end {
                End::Done(next) => End::Done(to(next)),
                End::Wait { reason, growing } => End::Wait { reason, growing },
                End::GiveUp => End::GiveUp,
            },
            text: self.text,
            own: self.own,
            again: self.again,
        }
    }
}

/// How a step failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// One word in `PascalCase`.
    pub reason: String,
    /// The details for people.
    pub message: String,
    /// Whether trying again is of no use.
    pub permanent: bool,
}

impl Failed {
    /// A failure that trying again may mend.
    pub fn retry(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            permanent: false,
        }
    }

    /// A failure that only a change can mend.
    pub fn permanent(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            permanent: true,
            ..Self::retry(reason, message)
        }
    }
}
