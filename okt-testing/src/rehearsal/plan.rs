//! [`RehearsalPlan`]: the fault of a run; all plans are derived from the undisturbed run.

use std::fmt;
use std::time::Duration;

use okt_runtime::__testing::AttemptFault;

use super::writes::ObservedWrite;

/// The environment variable that names the plans to run.
pub(super) const CHOSEN: &str = "OKT_REHEARSAL";

/// How many versions of its object back a restarted operator is shown the past; the first version is shown too.
const PAST: usize = 6;

/// The minimum length of a stay that is interrupted.
const LONG: Duration = Duration::from_secs(10);

/// The counts and changes of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    /// The write requests of the operator.
    pub(super) writes: Vec<ObservedWrite>,
    /// The number of events about the object that were sent to the operator's watch.
    pub(super) events: u64,
    /// The number of attempts that began.
    pub(super) attempts: usize,
    /// Every write request for the object by any client, in order: its time after the beginning of the run, and
    /// whether it was carried out.
    pub(super) changes: Vec<(Duration, bool)>,
    /// The duration of the run.
    pub(super) took: Duration,
}

/// The fault of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RehearsalPlan {
    Undisturbed,
    /// The operator crashes at its write of this number, before or after the server carries it out.
    Crash {
        write: u64,
        after: bool,
    },
    /// The write of this number gets no response.
    Unanswered {
        write: u64,
        after: bool,
    },
    /// The write of this number is refused.
    Refused {
        write: u64,
        how: PlannedRefusal,
    },
    /// The event of this number is lost, merged, doubled or ends its watch.
    Event {
        event: u64,
        becomes: Becomes,
    },
    /// The operator is restarted when the object is changed for the `at`-th time, and shown the object after the
    /// `shown`-th change.
    Past {
        at: usize,
        shown: usize,
    },
    /// The operator is restarted in the middle of the stay after this change.
    Restart {
        after: usize,
        wait: Duration,
    },
    /// The attempt of this number has this fault.
    Attempt {
        attempt: usize,
        fault: AttemptFault,
    },
    /// The object is deleted when it is changed for the `at`-th time.
    Deletion {
        at: usize,
    },
    /// Two operators run at once.
    Two,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedRefusal {
    Conflict,
    Unavailable,
    TooMany,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    Lost,
    Merged,
    Doubled,
    Broken,
    Expired,
}

impl RehearsalPlan {
    /// Returns every plan for the course of an undisturbed run.
    pub(super) fn all(course: &Course) -> Vec<Self> {
        let mut plans = Vec::new();
        for write in 1..=course.writes.len() as u64 {
            for after in [false, true] {
                plans.push(Self::Crash { write, after });
                plans.push(Self::Unanswered { write, after });
            }
            let refusals = [
                PlannedRefusal::Conflict,
                PlannedRefusal::Unavailable,
                PlannedRefusal::TooMany,
            ];
            plans.extend(refusals.map(|how| Self::Refused { write, how }));
        }
        for event in 1..=course.events {
            let faults = [
                Becomes::Lost,
                Becomes::Merged,
                Becomes::Doubled,
                Becomes::Broken,
                Becomes::Expired,
            ];
            plans.extend(faults.map(|becomes| Self::Event { event, becomes }));
        }
        let changes: Vec<usize> = (1..=course.changes.len())
            .filter(|change| course.changes[change - 1].1)
            .collect();
        for (place, at) in changes.iter().enumerate() {
            let first = changes.first().filter(|_| place > PAST);
            let past = changes[place.saturating_sub(PAST)..=place].iter();
            plans.extend(first.into_iter().chain(past).map(|shown| Self::Past {
                at: *at,
                shown: *shown,
            }));
            plans.push(Self::Deletion { at: *at });
            let next = changes.get(place + 1);
            let left = next.map_or(course.took, |next| course.changes[next - 1].0);
            let stay = left.saturating_sub(course.changes[at - 1].0);
            if stay >= LONG {
                let wait = stay / 2;
                plans.push(Self::Restart { after: *at, wait });
            }
        }
        for attempt in 1..=course.attempts {
            let faults = [
                AttemptFault::Lost,
                AttemptFault::Unanswered,
                AttemptFault::Twice,
            ];
            plans.extend(faults.map(|fault| Self::Attempt { attempt, fault }));
        }
        plans.push(Self::Two);
        plans
    }

    /// Returns the number of the write that the fault strikes, if it strikes one.
    pub(super) fn write(&self) -> Option<u64> {
        match self {
            Self::Crash { write, .. }
            | Self::Unanswered { write, .. }
            | Self::Refused { write, .. } => Some(*write),
            Self::Undisturbed
            | Self::Event { .. }
            | Self::Past { .. }
            | Self::Restart { .. }
            | Self::Attempt { .. }
            | Self::Deletion { .. }
            | Self::Two => None,
        }
    }

    /// Returns the sort of plan.
    pub(super) fn sort(&self) -> &'static str {
        match self {
            Self::Undisturbed => "undisturbed",
            Self::Crash { .. } => "a crash at a write",
            Self::Unanswered { .. } => "a write without an answer",
            Self::Refused { .. } => "a refused write",
            Self::Event { .. } => "an event that is lost, merged, doubled or ends its watch",
            Self::Past { .. } => "a restart into the past",
            Self::Restart { .. } => "a restart during a stay",
            Self::Attempt { .. } => "work that is lost, done twice or ends unheard",
            Self::Deletion { .. } => "a deletion",
            Self::Two => "two operators",
        }
    }

    /// Returns whether an operator may begin work again that is already finished, under the same id.
    pub(super) fn repeats_work(&self) -> bool {
        matches!(
            self,
            Self::Crash { .. }
                | Self::Past { .. }
                | Self::Restart { .. }
                | Self::Two
                | Self::Attempt {
                    fault: AttemptFault::Lost | AttemptFault::Unanswered | AttemptFault::Twice,
                    ..
                }
        )
    }
}

impl fmt::Display for RehearsalPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |after: &bool| if *after { "after" } else { "before" };
        match self {
            Self::Undisturbed => f.write_str("undisturbed"),
            Self::Crash { write, after } => write!(f, "crash {} write {write}", side(after)),
            Self::Unanswered { write, after } => {
                write!(
                    f,
                    "no answer to write {write}, lost {} the server",
                    side(after)
                )
            }
            Self::Refused { write, how } => {
                let how = match how {
                    PlannedRefusal::Conflict => "409",
                    PlannedRefusal::Unavailable => "503",
                    PlannedRefusal::TooMany => "429",
                };
                write!(f, "{how} to write {write}")
            }
            Self::Event { event, becomes } => {
                let becomes = match becomes {
                    Becomes::Lost => "is lost",
                    Becomes::Merged => "is merged with the next",
                    Becomes::Doubled => "comes twice",
                    Becomes::Broken => "breaks the watch",
                    Becomes::Expired => "is a 410",
                };
                write!(f, "event {event} {becomes}")
            }
            Self::Past { at, shown } => {
                write!(f, "restart after change {at}, shown change {shown}")
            }
            Self::Restart { after, wait } => {
                write!(f, "restart {} s after change {after}", wait.as_secs())
            }
            Self::Attempt { attempt, fault } => {
                let fault = match fault {
                    AttemptFault::Runs => "runs",
                    AttemptFault::Lost => "is lost",
                    AttemptFault::Unanswered => "ends unheard",
                    AttemptFault::Twice => "is done twice",
                };
                write!(f, "attempt {attempt} {fault}")
            }
            Self::Deletion { at } => write!(f, "deletion after change {at}"),
            Self::Two => f.write_str("two operators"),
        }
    }
}
