//! The lifecycle of five states as you would write it without OKT: one `match`, nothing general.
//!
//! It takes the same record and facts and decides the same for these five states: new objects, deletion, pause, work in
//! flight, observation, visit, desired state and revision. It has no loop guard, no re-entry from a leaf, and no state
//! of another version.

use okt_core::decide::{By, Ending, Go, Run, StayReason, Verdict, Why};
use okt_core::facts::{ActionResult, LifecycleFacts, Named, Observed, Task};
use okt_core::record::{Phase, Record, Recorded, VisitOutcome};
use okt_core::{Event, StateId};

const START: StateId = StateId(0);
const RUNNING: StateId = StateId(1);
const SERVICING: StateId = StateId(2);
const STOPPING: StateId = StateId(3);
const END: StateId = StateId(4);

const fn go(to: StateId, by: By, why: Why) -> Verdict {
    Verdict::Go(Go { to, by, why })
}

pub(crate) fn decide(recorded: &Recorded, facts: &LifecycleFacts<'_>) -> Verdict {
    let decision = match recorded {
        Recorded::Nothing => match facts.observed {
            Observed::In(state) => go(state, By::Jump, Why::Adopted),
            Observed::Absent
            | Observed::Unobserved
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => go(START, By::Entry, Why::Created),
        },
        Recorded::At(record) => at(record, facts),
    };
    match decision {
        Verdict::Stay(_) => decision,
        _ if facts.paused && !facts.deleting => Verdict::Stay(StayReason::Paused),
        _ => decision,
    }
}

fn at(record: &Record, facts: &LifecycleFacts<'_>) -> Verdict {
    let phase = record.action.map(|action| action.phase);
    if phase == Some(Phase::Pending) {
        return match facts.task {
            Task::Absent => Verdict::Run(Run::Resume),
            Task::New => Verdict::Run(Run::Begin),
            Task::Running => Verdict::Stay(StayReason::Running),
            Task::Waiting | Task::Ended(ActionResult::Wait(_)) => {
                Verdict::Stay(StayReason::Waiting)
            }
            Task::Due => Verdict::Run(Run::Again),
            Task::Ended(ActionResult::Failed { permanent: false }) => {
                Verdict::Retry { counted: false }
            }
            Task::Ended(ActionResult::Failed { permanent: true }) => Verdict::End(Ending::Failed),
            Task::Ended(ActionResult::To(to)) => go(to, By::Child, Why::Handler),
            Task::Ended(ActionResult::Next) => onwards(record, facts),
            Task::Ended(ActionResult::Stay) => Verdict::End(Ending::Well),
        };
    }
    match record.state {
        END if facts.deleting => Verdict::Release,
        END => Verdict::Stay(StayReason::Settled),
        RUNNING => at_rest(record, facts),
        _ if phase == Some(Phase::Failed) => Verdict::Stay(StayReason::Failed),
        _ => onwards(record, facts),
    }
}

fn at_rest(record: &Record, facts: &LifecycleFacts<'_>) -> Verdict {
    if facts.deleting {
        return go(STOPPING, By::Child, Why::Deletion);
    }
    match facts.observed {
        Observed::Absent | Observed::In(START) => return go(START, By::Jump, Why::Observed),
        Observed::In(END) => return go(END, By::Jump, Why::Observed),
        Observed::In(to @ (SERVICING | STOPPING)) => return go(to, By::Child, Why::Observed),
        Observed::In(_)
        | Observed::Unobserved
        | Observed::Unforeseen
        | Observed::Unreachable { .. }
        | Observed::Failed { .. } => {}
    }
    if wants_service(record, facts) {
        return go(SERVICING, By::Child, Why::Visit);
    }
    match facts.desired.state {
        Some(Named::Known(END)) => go(STOPPING, By::Child, Why::DesiredState),
        _ if facts.revision != record.revision => Verdict::Run(Run::Changed),
        _ => Verdict::Stay(StayReason::Settled),
    }
}

fn onwards(record: &Record, facts: &LifecycleFacts<'_>) -> Verdict {
    let to_end = facts.desired.state == Some(Named::Known(END));
    match record.state {
        SERVICING | STOPPING if facts.deleting => go(END, By::Child, Why::Deletion),
        SERVICING | STOPPING if to_end => go(END, By::Child, Why::DesiredState),
        START | SERVICING => go(RUNNING, By::Child, Why::DesiredState),
        RUNNING => go(STOPPING, By::Child, Why::Next),
        STOPPING => go(END, By::Child, Why::Next),
        _ => Verdict::Stay(StayReason::UnknownState),
    }
}

fn wants_service(record: &Record, facts: &LifecycleFacts<'_>) -> bool {
    facts.visit.is_some_and(|visit| {
        let pending = |outcome| outcome == VisitOutcome::Pending;
        visit.state == Named::Known(SERVICING)
            && (visit.fresh || record.visit.is_some_and(|made| pending(made.outcome)))
    })
}

/// Returns the first child that is named, else the last for Next.
pub(crate) fn next(state: StateId, events: &[Event]) -> Option<StateId> {
    let named = |to| events.contains(&Event::To(to));
    let next = events.contains(&Event::Next);
    match state {
        START if named(RUNNING) || next => Some(RUNNING),
        RUNNING if named(SERVICING) => Some(SERVICING),
        RUNNING if named(STOPPING) || next => Some(STOPPING),
        SERVICING if named(RUNNING) => Some(RUNNING),
        SERVICING | STOPPING if named(END) || next => Some(END),
        _ => None,
    }
}
