//! The time when an object is reconciled next, unless an event comes first.

use core::time::Duration;

use super::draft::{NotReadyReason, ResourceStatus, RunEnd};
use super::facts::{Facts, OperatorFacts, Waits};
use crate::decide::{StayReason, Verdict};
use crate::facts::Task;
use crate::gate::GateKind;
use crate::graph::{Cause, Mark, State};

/// The time when an object is reconciled next, unless an event comes first.
///
/// Only a decision creates one that is settled, and only if nothing is left to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Requeue {
    when: When,
    under_way: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum When {
    /// Nothing is left to do.
    Settled,
    /// The queue requeues every object when the operator may act again.
    MayAct,
    /// The next operator continues.
    Handover,
    After(Duration),
}

impl Requeue {
    /// The shortest time until an object is reconciled again.
    pub const SHORTEST: Duration = Duration::from_millis(10);

    /// The requeue time if an event is expected, in case the event is lost.
    pub const SAFETY: Duration = Duration::from_mins(1);

    /// The longest time until an object that waits before a gate is reconciled, so that a clock that was set is noticed.
    pub(super) const GATE: Duration = Duration::from_hours(1);

    /// The time until an object that waits for a place in a limit asks again, in case an event was lost.
    const LIMIT: Duration = Duration::from_secs(30);

    /// The requeue time for an object without a record, or in an unknown state.
    const UNSURE: Duration = Duration::from_secs(30);

    const fn new(when: When, under_way: bool) -> Self {
        Self { when, under_way }
    }

    /// Lets other objects be reconciled first: a reconciliation with many effects continues after them.
    pub const fn soon() -> Self {
        Self::new(When::After(Self::SHORTEST), true)
    }

    /// Requeues an object after the code of its application panicked.
    pub const fn after_panic() -> Self {
        Self::new(When::After(Self::UNSURE), false)
    }

    pub(super) fn after(time: Duration, f: &Facts<'_>) -> Self {
        Self::new(When::After(time.max(Self::SHORTEST)), f.is_under_way())
    }

    /// Requeues when the operator may act again, if it may not act now. Nothing that is under way can be recorded
    /// before.
    pub fn when_it_may_act(operator: OperatorFacts) -> Option<Self> {
        (!operator.may_act).then_some(Self::new(When::MayAct, false))
    }

    /// Requeues while the object at hand is older than the operator's last write: the event of that write brings the
    /// newer one.
    pub fn while_behind(is_under_way: bool) -> Self {
        Self::new(When::After(Self::SAFETY), is_under_way)
    }

    pub(super) fn handover(f: &Facts<'_>) -> Option<Self> {
        (f.operator.draining && !f.is_under_way()).then_some(Self::new(When::Handover, false))
    }

    /// Settles an object: nothing is left to do, or the operator has nothing to do with it until it changes.
    pub(super) fn settled(f: &Facts<'_>) -> Self {
        Self::new(When::Settled, f.is_under_way())
    }

    /// Returns the time to wait, or nothing if only an event requeues the object.
    pub fn wait(self) -> Option<Duration> {
        match self.when {
            When::After(time) => Some(time),
            When::Settled | When::MayAct | When::Handover => None,
        }
    }

    /// Returns whether nothing is left to do.
    pub fn is_settled(self) -> bool {
        self.when == When::Settled
    }

    /// Returns whether an operator that shuts down waits for the object's work.
    pub fn is_under_way(self) -> bool {
        self.under_way
    }
}

/// Returns when an object at rest is reconciled next: after the shortest time of all that is left to do.
pub(super) fn requeue(
    step: &Verdict,
    not_ready: NotReadyReason,
    write_wait: Option<Duration>,
    f: &Facts<'_>,
) -> Requeue {
    let is_held_back = matches!(f.life.task, Task::Ended(_));
    let mut soonest: Option<Duration> = None;
    let mut note = |left: Option<Duration>| soonest = soonest.into_iter().chain(left).min();
    if let Some(life) = f.graphs.life {
        let record = f.object.recorded.at();
        match record.and_then(|record| life.get(record.state)) {
            Some(state) => {
                note(next_deadline(state, f));
                // While a result is held back, nothing is observed: a time that has come would be used again and again.
                let shortest = if is_held_back {
                    Requeue::UNSURE
                } else {
                    Duration::ZERO
                };
                note((!state.is(Mark::Leaf)).then_some(f.observe_after.max(shortest)));
            }
            None => note(Some(Requeue::UNSURE.max(f.observe_after))),
        }
    }
    match step {
        // The end of the pause is an event.
        Verdict::Stay(StayReason::Paused) => {}
        Verdict::Stay(StayReason::LoopGuard(left)) => note(Some(*left)),
        Verdict::Stay(_)
        | Verdict::Go(_)
        | Verdict::Run(_)
        | Verdict::Retry { .. }
        | Verdict::End(_)
        | Verdict::Release => note(to_come(f.work.due)),
    }
    if let Some(Waits::Permit(Some(left))) = f.work.waits {
        note(Some(left));
    }
    // A time that has passed without effect is not used again: the object would be reconciled without pause.
    note(to_come(f.resources.due));
    note(to_come(f.pass.due));
    note(write_wait);
    note(f.requests.wait);
    let waits = f.object.recorded.at().and_then(|record| record.waiting);
    note(
        waits
            .and(f.gates_change)
            .map(|left| left.min(Requeue::GATE)),
    );
    let gates = f.graphs.life.map_or(&[][..], |life| life.gates);
    let gate = waits.and_then(|waits| gates.get(waits.gate.index()));
    note(
        gate.filter(|gate| gate.kind == GateKind::Limit)
            .map(|_| Requeue::LIMIT),
    );
    note(to_come(f.object.requests.expires));
    let is_undone = match not_ready {
        NotReadyReason::None
        | NotReadyReason::AsBefore
        | NotReadyReason::Pass(RunEnd::Complete)
        | NotReadyReason::Resources(ResourceStatus::AsDeclared) => false,
        // An object that is being deleted is reconciled again.
        NotReadyReason::Pass(RunEnd::GaveUp) => f.object.deleting,
        NotReadyReason::Unchecked
        | NotReadyReason::Stopping
        | NotReadyReason::Requests
        | NotReadyReason::Pass(RunEnd::Short | RunEnd::Held)
        | NotReadyReason::Resources(ResourceStatus::Awaited | ResourceStatus::Failed { .. }) => {
            true
        }
    };
    let is_busy = f.life.task == Task::Running || f.work.waits.is_some();
    note((is_undone || is_busy).then_some(Requeue::SAFETY));
    let requeue = match soonest {
        Some(time) => Requeue::after(time, f),
        None => Requeue::settled(f),
    };
    Requeue {
        // A result that is not taken by now is held back by the loop guard, or by a write that changes nothing: the
        // next operator takes it.
        under_way: requeue.under_way && !is_held_back,
        ..requeue
    }
}

/// Returns how long until the first trigger by time of a state.
///
/// A deadline that has passed without a move is held back by something that has its own time.
fn next_deadline(state: &State<'_>, f: &Facts<'_>) -> Option<Duration> {
    let deadlines = state
        .triggers
        .iter()
        .filter_map(|trigger| match trigger.cause {
            Cause::After(time) => to_come(time.checked_sub(f.life.in_state)),
            Cause::Deadline(time) => to_come(time.checked_sub(f.life.in_deadline)),
            Cause::Named
            | Cause::OnError { .. }
            | Cause::OnDelete
            | Cause::OnChange
            | Cause::OnChangeOf(_)
            | Cause::OnGiveUp
            | Cause::OnAbort => None,
        });
    deadlines.min()
}

fn to_come(left: Option<Duration>) -> Option<Duration> {
    left.filter(|left| !left.is_zero())
}
