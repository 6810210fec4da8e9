//! The time for which operators act on an object in a state: deadlines count it, and neither pauses nor the time in which
//! no operator is there.
//!
//! The status has the time so far, and when that was. What passed between then and the moment at which this process began
//! to act on the object may have been time of an earlier process that it had not recorded yet: a quarter of the deadline
//! counts at most, and as much is recorded at the latest, so an operator that restarts often comes to an end all the same.

use std::time::Duration;

use jiff::Timestamp;
use okt_core::{Cause, Lifecycle, State};
use okt_wire::status::{ActingTime, Position};

/// How long a process that begins to act looks at what is there before a deadline comes.
const LOOK: Duration = Duration::from_mins(1);

/// The time in a state, and under its deadline over several states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Elapsed {
    pub(crate) in_state: Duration,
    pub(crate) in_deadline: Duration,
}

/// The first deadlines of a state: by a time in the state, and over several states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DeadlineLimits {
    in_state: Option<Duration>,
    in_deadline: Option<Duration>,
}

impl DeadlineLimits {
    /// Returns those of a state; none if it has no deadline.
    pub(crate) fn of(state: &State<'_>) -> Option<Self> {
        let triggers = state.triggers.iter();
        let after = triggers.filter_map(|trigger| match trigger.cause {
            Cause::After(time) => Some(time),
            _ => None,
        });
        let limits = Self {
            in_state: after.min(),
            in_deadline: state.deadline().map(|(_, time)| time),
        };
        (limits != Self::default()).then_some(limits)
    }

    /// Returns those of the state on record; none if it has no deadline, or is not in the graph.
    pub(crate) fn at<S: Lifecycle>(position: &Position<S>) -> Option<Self> {
        let state = S::from_name(position.state.as_str())?;
        Self::of(S::GRAPH.get(state.id())?)
    }

    /// Returns the time after which what has passed is recorded.
    fn step(self) -> Duration {
        let limits = self.in_state.into_iter().chain(self.in_deadline);
        limits.min().map_or(Duration::MAX, |limit| limit / 4)
    }
}

/// Returns the time that deadlines count. `begun` is when this process began to act on the object, if that time counts and
/// not the wall time; `is_paused` is whether the status reports a pause.
pub(crate) fn elapsed<S: Lifecycle>(
    position: &Position<S>,
    is_paused: bool,
    begun: Option<Timestamp>,
    now: Timestamp,
) -> Elapsed {
    let wall = |now: Timestamp| Elapsed {
        in_state: position.since.map_or(Duration::ZERO, |it| since(it, now)),
        in_deadline: position
            .deadline_since
            .map_or(Duration::ZERO, |it| since(it, now)),
    };
    let (Some(begun), Some(limits)) = (begun, DeadlineLimits::at(position)) else {
        return wall(now);
    };
    let Some(acting) = &position.acting else {
        // An earlier release, or another writer, recorded none.
        return looking(wall(begun), limits).and(since(begun, now));
    };
    let recorded = Elapsed {
        in_state: Duration::from_millis(acting.in_state),
        in_deadline: Duration::from_millis(acting.in_deadline),
    };
    if is_paused {
        recorded
    } else if (begun..=now).contains(&acting.at) {
        recorded.and(since(acting.at, now))
    } else {
        // Another process wrote it, perhaps by a clock that is ahead.
        let unknown = since(acting.at, begun).min(limits.step());
        looking(recorded.and(unknown), limits).and(since(begun, now))
    }
}

/// Returns the time when a process begins to act: no deadline comes before it has looked at what is there.
fn looking(elapsed: Elapsed, limits: DeadlineLimits) -> Elapsed {
    let before = |elapsed: Duration, limit: Option<Duration>| match limit {
        Some(limit) => elapsed.min(limit.saturating_sub(LOOK.min(limit / 4))),
        None => elapsed,
    };
    Elapsed {
        in_state: before(elapsed.in_state, limits.in_state),
        in_deadline: before(elapsed.in_deadline, limits.in_deadline),
    }
}

impl Elapsed {
    fn and(self, time: Duration) -> Self {
        Self {
            in_state: self.in_state.saturating_add(time),
            in_deadline: self.in_deadline.saturating_add(time),
        }
    }

    /// Returns the time for the status.
    pub(crate) fn recorded(self, at: Timestamp) -> ActingTime {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        ActingTime {
            at,
            in_state: millis(self.in_state),
            in_deadline: millis(self.in_deadline),
        }
    }
}

/// Returns whether so much time has passed since the status was written that it should be recorded.
pub(crate) fn is_due<S: Lifecycle>(old: &Position<S>, next: &Position<S>) -> bool {
    let (Some(now), Some(limits)) = (&next.acting, DeadlineLimits::at(next)) else {
        return false;
    };
    let Some(before) = &old.acting else {
        return true;
    };
    let passed = now.in_state.saturating_sub(before.in_state);
    Duration::from_millis(passed) >= limits.step()
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(then).try_into().unwrap_or_default()
}
