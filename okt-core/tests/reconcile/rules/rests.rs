//! This file checks the rules about the end of a reconciliation.

use std::time::Duration;

use okt_core::Cause;
use okt_core::decide::{Stand, Verdict};
use okt_core::facts::Task;
use okt_core::reconcile::{Facts, Readable, Requeue, RunEnd, Standing, Waits};

use crate::operator::Round;
use crate::world::World;

impl World {
    /// Checks the end of a reconciliation: how long the object waits for the next one, and whether an operator that
    /// shuts down waits for the object.
    pub(crate) fn check_rest(&mut self, wait: Option<Duration>, is_under_way: bool, round: &Round) {
        let facts = self.facts(round);
        // After the operator has acted it may continue at once, with another observation.
        self.must(
            round.has_acted || wait.is_none_or(|wait| wait > Requeue::SHORTEST),
            "uses a time that is over: it spins",
        );
        if !facts.operator.may_act {
            return;
        }
        let runs = facts.work.task == Task::Running || facts.work.waits == Some(Waits::Ending);
        self.must(
            !runs || is_under_way,
            "does not wait for a task that runs, when it stops",
        );
        if facts.operator.draining {
            return;
        }
        self.must(
            !awaits_an_event(&facts) || wait.is_some(),
            "has no timer in case an event is lost",
        );
        if let Some(soonest) = self.soonest(&facts, round) {
            self.must(
                wait.is_some_and(|wait| wait <= soonest),
                "sleeps although something is due before",
            );
        }
    }

    /// Returns the shortest time that something waits for.
    fn soonest(&self, facts: &Facts<'_>, round: &Round) -> Option<Duration> {
        if facts.writes.behind || is_left_alone(facts) {
            return None;
        }
        if facts.writes.wait.is_some() {
            return facts.writes.wait;
        }
        let is_loop_guarded = round
            .draft
            .is_some_and(|(draft, _)| matches!(draft.step, Verdict::Stand(Stand::LoopGuard(_))));
        let is_work_held = facts.asked.is_paused() || is_loop_guarded;
        let retry = facts.work.due.filter(|_| !is_work_held);
        let record = round.object.status.recorded.at();
        let state = (record.zip(self.case.life)).and_then(|(record, life)| life.get(record.state));
        let triggers = state.into_iter().flat_map(|state| state.triggers);
        let deadlines = triggers.filter_map(|trigger| match trigger.cause {
            Cause::After(time) | Cause::Deadline(time) => time.checked_sub(facts.time.in_state),
            Cause::Named
            | Cause::OnError { .. }
            | Cause::OnDelete
            | Cause::OnChange
            | Cause::OnGiveUp => None,
        });
        [retry, facts.pass.due, facts.owned.due]
            .into_iter()
            .flatten()
            .chain(deadlines)
            .filter(|left| !left.is_zero())
            .min()
    }
}

/// Returns whether the operator has nothing to do with the object until a user or another operator changes it.
fn is_left_alone(facts: &Facts<'_>) -> bool {
    let asked = &facts.asked;
    asked.newer || asked.readable != Readable::Yes || (asked.deleting && !asked.finalizer)
}

/// Returns whether only an event brings something that is needed.
fn awaits_an_event(facts: &Facts<'_>) -> bool {
    if facts.writes.behind {
        return true;
    }
    if is_left_alone(facts) {
        return false;
    }
    let deleting = facts.asked.deleting;
    let awaits_run = facts.pass.ran.is_some_and(|ran| match ran.end {
        RunEnd::Complete => false,
        RunEnd::Short | RunEnd::Held => true,
        RunEnd::GaveUp => deleting,
    });
    let awaits_owned = match facts.owned.standing {
        None | Some(Standing::AsDeclared) => false,
        Some(Standing::Awaited) => !deleting,
        Some(Standing::Failed { .. }) => true,
    };
    facts.work.task == Task::Running
        || facts.work.waits.is_some()
        || awaits_run
        || awaits_owned
        || facts.owned.cleared == Some(false)
}
