//! When an object is reconciled next, unless an event brings it before.

use core::time::Duration;

use super::draft::{Hold, RunEnd, Standing};
use super::facts::{Facts, Graphs, Operator, Waits};
use crate::decide::{Decision as Step, Stand};
use crate::facts::Task;
use crate::graph::{Cause, Mark};
use crate::record::Recorded;

/// When an object is reconciled next, unless an event brings it before.
///
/// Only a decision gives one: where something is left undone it has a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Requeue {
    when: When,
    under_way: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum When {
    /// Nothing is left undone.
    Settled,
    /// The queue brings every object when the operator may act again.
    MayAct,
    /// The next operator goes on.
    Handover,
    After(Duration),
}

/// The proof that nothing is left undone: [`left`] gives it, and an object that is not the operator's.
struct NothingLeft(());

impl Requeue {
    /// The shortest time until an object is reconciled again.
    pub const SHORTEST: Duration = Duration::from_millis(10);

    /// The time for what an event should bring, in case the event is lost.
    pub const SAFETY: Duration = Duration::from_mins(1);

    /// The time for an object of which nothing is recorded, or whose state is unknown.
    const UNSURE: Duration = Duration::from_secs(30);

    /// After other objects had their turn: a reconciliation that takes many effects goes on then.
    pub const fn soon() -> Self {
        Self {
            when: When::After(Self::SHORTEST),
            under_way: true,
        }
    }

    /// After the code of an application panicked.
    pub const fn after_panic() -> Self {
        Self {
            when: When::After(Self::UNSURE),
            under_way: false,
        }
    }

    pub(super) fn after(time: Duration, f: &Facts<'_>) -> Self {
        Self {
            when: When::After(time.max(Self::SHORTEST)),
            under_way: f.is_under_way(),
        }
    }

    /// When the operator may act again, if it may not now. Whatever is under way cannot be recorded before.
    pub fn when_it_may_act(operator: Operator) -> Option<Self> {
        (!operator.may_act).then_some(Self {
            when: When::MayAct,
            under_way: false,
        })
    }

    /// While the object at hand is older than the last own write: its event brings the newer one.
    pub fn while_behind(is_under_way: bool) -> Self {
        Self {
            when: When::After(Self::SAFETY),
            under_way: is_under_way,
        }
    }

    pub(super) fn handover(f: &Facts<'_>) -> Option<Self> {
        (f.operator.draining && !f.is_under_way()).then_some(Self {
            when: When::Handover,
            under_way: false,
        })
    }

    /// The operator has nothing to do with the object until somebody changes it.
    pub(super) fn not_ours(f: &Facts<'_>) -> Self {
        Self::settled(NothingLeft(()), f)
    }

    fn settled(_: NothingLeft, f: &Facts<'_>) -> Self {
        Self {
            when: When::Settled,
            under_way: f.is_under_way(),
        }
    }

    /// Returns the time to wait; none where only an event brings the object.
    pub fn wait(self) -> Option<Duration> {
        match self.when {
            When::After(time) => Some(time),
            When::Settled | When::MayAct | When::Handover => None,
        }
    }

    /// Whether nothing is left undone.
    pub fn is_settled(self) -> bool {
        self.when == When::Settled
    }

    /// Whether an operator that stops waits for the object's work.
    pub fn is_under_way(self) -> bool {
        self.under_way
    }
}

/// When an object at rest is reconciled next.
pub(super) fn requeue(
    graphs: Graphs<'_>,
    recorded: &Recorded,
    step: &Step,
    hold: Hold,
    side: Option<Duration>,
    f: &Facts<'_>,
) -> Requeue {
    let requeue = match left(graphs, recorded, step, hold, side, f) {
        Ok(nothing) => Requeue::settled(nothing, f),
        Err(time) => Requeue::after(time, f),
    };
    Requeue {
        // A result that is not taken by now is held back, by the loop guard or by a write in vain: the next operator
        // takes it.
        under_way: requeue.under_way && !matches!(f.work.task, Task::Ended(_)),
        ..requeue
    }
}

/// The soonest of the times of all that is left undone; the proof where there is nothing.
fn left(
    graphs: Graphs<'_>,
    recorded: &Recorded,
    step: &Step,
    hold: Hold,
    side: Option<Duration>,
    f: &Facts<'_>,
) -> Result<NothingLeft, Duration> {
    let mut soonest: Option<Duration> = None;
    let mut note = |left: Option<Duration>| soonest = soonest.into_iter().chain(left).min();
    if let Some(life) = graphs.life {
        match recorded.at().and_then(|record| life.get(record.state)) {
            Some(state) => {
                // A deadline that has come and moved nothing is held back by something that has its own time.
                let deadlines = state
                    .triggers
                    .iter()
                    .filter_map(|trigger| match trigger.cause {
                        Cause::After(time) => to_come(time.checked_sub(f.time.in_state)),
                        Cause::Named
                        | Cause::OnError { .. }
                        | Cause::OnDelete
                        | Cause::OnChange
                        | Cause::OnGiveUp => None,
                    });
                note(deadlines.min());
                note((!state.is(Mark::Leaf)).then_some(f.time.observe_after));
            }
            None => note(Some(Requeue::UNSURE.max(f.time.observe_after))),
        }
    }
    match step {
        // The end of the pause is an event.
        Step::Stand(Stand::Paused) => {}
        Step::Stand(Stand::Braking(left)) => note(Some(*left)),
        Step::Stand(_)
        | Step::Go(_)
        | Step::Run(_)
        | Step::Retry { .. }
        | Step::End(_)
        | Step::Release { .. } => note(to_come(f.work.due)),
    }
    if let Some(Waits::Place(Some(left))) = f.work.waits {
        note(Some(left));
    }
    // A time that has come and moved nothing is not named again: it would spin.
    note(to_come(f.owned.due));
    note(to_come(f.pass.due));
    note(side);
    let is_undone = match hold {
        Hold::None
        | Hold::AsBefore
        | Hold::Pass(RunEnd::Complete)
        | Hold::Resources(Standing::AsDeclared) => false,
        // An object that is being deleted is not forgotten.
        Hold::Pass(RunEnd::GaveUp) => f.asked.deleting,
        Hold::Unchecked
        | Hold::Stopping
        | Hold::Pass(RunEnd::Short | RunEnd::Held)
        | Hold::Resources(Standing::Awaited | Standing::Failed { .. }) => true,
    };
    let is_busy = f.work.task == Task::Running || f.work.waits.is_some();
    note((is_undone || is_busy).then_some(Requeue::SAFETY));
    match soonest {
        Some(time) => Err(time),
        None => Ok(NothingLeft(())),
    }
}

fn to_come(left: Option<Duration>) -> Option<Duration> {
    left.filter(|left| !left.is_zero())
}
