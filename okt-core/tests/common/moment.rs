//! Random records and facts, possible or not: a decision must accept all of them.

use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::decide::Why;
use okt_core::facts::NextRequest;
use okt_core::facts::{
    ActionResult, DesiredState, DesiredVisit, LifecycleFacts, Named, Observed, Task,
};
use okt_core::record::{
    ActionRecord, DesiredRecord, Phase, Record, Recorded, VisitOutcome, VisitRecord, WaitRecord,
};
use okt_core::request::{RequestOutcome, RequestRecord};
use okt_core::{GateId, Gates, Graph, Parts, Plan, StateId};

use crate::ids::any_id;
use crate::rng::Rng;

/// Returns a record and facts about a graph.
pub(crate) fn moment(rng: &mut Rng, graph: &Graph<'_>) -> (Recorded, LifecycleFacts<'static>) {
    let count = graph.states.len();
    let record = record(rng, count);
    let mut facts = facts(rng, count);
    if let Some(visit) = &mut facts.visit {
        // A visit that is not recorded is new.
        visit.fresh |= record.visit.is_none();
    }
    if rng.one_in(8) {
        (Recorded::Nothing, facts)
    } else {
        (Recorded::At(record), facts)
    }
}

fn record(rng: &mut Rng, count: usize) -> Record {
    Record {
        state: any_id(rng, count),
        left: any_id(rng, count),
        transition: rng.next() % 4,
        jumps: rng.next() % 4,
        jumped: rng.one_in(4),
        rounds: small(rng, 30),
        deleting: rng.one_in(3),
        desired: DesiredRecord {
            state: named(rng, count),
            transition: rng.next() % 4,
            reached: rng.one_in(2),
        },
        visit: rng.one_in(2).then(|| VisitRecord {
            state: named(rng, count),
            transition: rng.next() % 4,
            outcome: [
                VisitOutcome::Pending,
                VisitOutcome::Reached,
                VisitOutcome::Refused,
                VisitOutcome::Overtaken,
                VisitOutcome::NotReplayed,
            ][rng.below(5)],
        }),
        request: rng.one_in(4).then(|| RequestRecord {
            state: named(rng, count),
            token: rng.next() % 2,
            transition: rng.next() % 4,
            outcome: [
                RequestOutcome::Running,
                RequestOutcome::Reached,
                RequestOutcome::Failed,
            ][rng.below(3)],
        }),
        revision: rng.next() % 2,
        changed: rng.next() % 2,
        action: (!rng.one_in(5)).then(|| ActionRecord {
            run: small(rng, 3),
            attempt: small(rng, 5),
            phase: [Phase::Pending, Phase::Done, Phase::Failed][rng.below(3)],
            generation: generation(rng),
            leaving: rng.one_in(3),
        }),
        waiting: rng.one_in(3).then(|| WaitRecord {
            gate: gate(rng),
            to: any_id(rng, count),
            why: [Why::Handler, Why::DesiredState][rng.below(2)],
            plan: rng.one_in(2).then(|| Plan(small(rng, 2))),
        }),
        returned: rng.next() % 2,
    }
}

fn facts(rng: &mut Rng, count: usize) -> LifecycleFacts<'static> {
    let events: Vec<StateId> = (0..rng.below(3)).map(|_| any_id(rng, count)).collect();
    LifecycleFacts {
        desired: DesiredState {
            state: rng.one_in(2).then(|| named(rng, count)),
            fresh: rng.one_in(3),
            requested: rng.one_in(3),
        },
        visit: rng.one_in(2).then(|| DesiredVisit {
            state: named(rng, count),
            fresh: rng.one_in(2),
        }),
        request: rng.one_in(4).then(|| NextRequest {
            state: any_id(rng, count),
            token: rng.next() % 2,
        }),
        is_aborted: rng.one_in(6),
        generation: generation(rng),
        revision: rng.next() % 2,
        parts: Parts(u32::from(rng.one_in(4))),
        outdated: rng.one_in(4).then(|| any_id(rng, count)),
        content: rng.one_in(2).then(|| rng.next() % 2),
        has_unused_place: rng.one_in(8),
        uid: rng.next() % 2,
        approved: rng.one_in(2).then(|| Plan(small(rng, 2))),
        shut: if rng.one_in(2) {
            Gates::NONE.with(gate(rng))
        } else {
            Gates::NONE
        },
        deleting: rng.one_in(4),
        paused: rng.one_in(4),
        observed: observed(rng, count),
        events: Box::leak(events.into_boxed_slice()),
        owned: rng.one_in(2),
        task: task(rng, count),
        attempt: small(rng, 5),
        started_under: generation(rng),
        in_state: Duration::from_secs(rng.next() % 900),
        in_deadline: Duration::from_secs(rng.next() % 900),
        backoff: Backoff::default(),
        seed: rng.next(),
    }
}

fn gate(rng: &mut Rng) -> GateId {
    [GateId(0), GateId(1), GateId(40)][rng.below(3)]
}

fn named(rng: &mut Rng, count: usize) -> Named {
    if rng.one_in(6) {
        Named::Unknown
    } else {
        Named::Known(any_id(rng, count))
    }
}

fn observed(rng: &mut Rng, count: usize) -> Observed {
    let failures = small(rng, 6);
    match rng.below(6) {
        0 => Observed::Unobserved,
        1 => Observed::In(any_id(rng, count)),
        2 => Observed::Absent,
        3 => Observed::Unforeseen,
        4 => Observed::Unreachable { failures },
        _ => Observed::Failed { failures },
    }
}

fn task(rng: &mut Rng, count: usize) -> Task {
    let permanent = rng.one_in(2);
    match rng.below(10) {
        0 => Task::Absent,
        1 => Task::Running,
        2 => Task::Waiting,
        3 => Task::Due,
        4 => Task::Ended(ActionResult::Stay),
        5 => Task::Ended(ActionResult::Next),
        6 => Task::Ended(ActionResult::To(any_id(rng, count))),
        7 => Task::Ended(ActionResult::Wait(Duration::ZERO)),
        8 => Task::New,
        _ => Task::Ended(ActionResult::Failed { permanent }),
    }
}

fn small(rng: &mut Rng, limit: usize) -> u32 {
    u32::try_from(rng.below(limit)).expect("small")
}

fn generation(rng: &mut Rng) -> i64 {
    i64::try_from(rng.below(3)).expect("small")
}
