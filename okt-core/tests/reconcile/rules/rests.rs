//! The rules about the end of a reconciliation.

use std::time::Duration;

use okt_core::decide::{StayReason, Verdict};
use okt_core::facts::Task;
use okt_core::{Cause, Graph};

use crate::machine::{Facts, MAX_EFFECTS, Readable, Requeue, ResourceStatus, RunEnd};
use crate::world::World;

impl World {
    /// Checks the end of a reconciliation: how long the object waits for the next one, and whether an operator that
    /// shuts down waits for the object.
    pub(crate) fn check_rest(&mut self, wait: Option<Duration>, is_under_way: bool) {
        let Some(at_hand) = self.process.at_hand else {
            // The object was too old for a reconciliation.
            let has_timer = wait.is_some();
            return self.must(has_timer, "has no timer in case an event is lost");
        };
        self.check_time(&at_hand);
        if !self.process.leads {
            return;
        }
        let is_continued = at_hand.is_reopened || at_hand.effects >= MAX_EFFECTS;
        let is_left = is_continued || self.process.draining;
        let facts = self.facts();
        let cannot_record = facts.work.to_record
            && (facts.object.readable != Readable::Yes || facts.writes.refused);
        let runs = self.process.task.is_some() && !cannot_record || self.process.is_ending;
        // An absence may have come to its end since the last observation.
        let is_observed = facts.is_observed && !facts.is_observation_spent;
        let is_observed_next = facts.observe_after.is_zero() && !is_observed;
        let has_timer = is_left || !awaits_an_event(&facts) || wait.is_some();
        let may_write = !facts.writes.behind && facts.writes.wait.is_none();
        let may_record = may_write && !is_left_alone(&facts) && !is_continued;
        let soonest = soonest(self.case.life, &facts).filter(|_| !is_left);
        self.must(
            is_continued || is_observed_next || wait.is_none_or(|wait| wait > Requeue::SHORTEST),
            "uses a time that is over: it spins",
        );
        self.must(
            !runs || is_under_way,
            "does not wait for a task that runs, when it stops",
        );
        self.must(has_timer, "has no timer in case an event is lost");
        self.must(
            !(self.process.is_recording && may_record && !(cannot_record && self.process.draining)),
            "rests while a handler waits until something is recorded",
        );
        if let Some(soonest) = soonest {
            self.must(
                wait.is_some_and(|wait| wait <= soonest),
                "sleeps although something is due before",
            );
        }
    }
}

/// Returns the shortest time that something waits for.
fn soonest(life: Option<&Graph<'_>>, facts: &Facts<'_>) -> Option<Duration> {
    if facts.writes.behind || is_left_alone(facts) {
        return None;
    }
    if facts.writes.wait.is_some() {
        return facts.writes.wait;
    }
    let draft = facts.writes.draft;
    let is_loop_guarded = draft
        .is_some_and(|(draft, _)| matches!(draft.step, Verdict::Stay(StayReason::LoopGuard(_))));
    let is_work_held = facts.object.is_paused() || is_loop_guarded;
    let retry = facts.work.due.filter(|_| !is_work_held);
    let record = facts.object.recorded.at();
    let recorded = record.zip(life);
    let state = recorded.and_then(|(record, life)| life.get(record.state));
    let triggers = state.into_iter().flat_map(|state| state.triggers);
    let deadlines = triggers.filter_map(|trigger| match trigger.cause {
        Cause::After(time) | Cause::Deadline(time) => time.checked_sub(facts.life.in_state),
        Cause::Named
        | Cause::OnError { .. }
        | Cause::OnDelete
        | Cause::OnChange
        | Cause::OnChangeOf(_)
        | Cause::OnGiveUp
        | Cause::OnAbort => None,
    });
    [retry, facts.pass.due, facts.resources.due]
        .into_iter()
        .flatten()
        .chain(deadlines)
        .filter(|left| !left.is_zero())
        .min()
}

/// Returns whether the operator has nothing to do with the object until a user or another operator changes it.
fn is_left_alone(facts: &Facts<'_>) -> bool {
    let object = facts.object;
    object.newer || object.readable != Readable::Yes || (object.deleting && !facts.finalizer)
}

/// Returns whether only an event brings something that is needed.
fn awaits_an_event(facts: &Facts<'_>) -> bool {
    if facts.writes.behind {
        return true;
    }
    if is_left_alone(facts) {
        return false;
    }
    let deleting = facts.object.deleting;
    let awaits_run = facts.pass.ran.is_some_and(|ran| match ran.end {
        RunEnd::Complete => false,
        RunEnd::Short | RunEnd::Held => true,
        RunEnd::GaveUp => deleting,
    });
    let awaits_owned = match facts.resources.status {
        None | Some(ResourceStatus::AsDeclared) => false,
        Some(ResourceStatus::Awaited) => !deleting,
        Some(ResourceStatus::Failed { .. }) => true,
    };
    facts.life.task == Task::Running
        || facts.work.waits.is_some()
        || awaits_run
        || awaits_owned
        || facts.resources.cleared == Some(false)
}
