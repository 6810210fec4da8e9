//! This file records the decisions that were taken: a rule about a decision that is never taken proves nothing.

use std::collections::BTreeSet;

use okt_core::decide::{Ending, Run, Stand, Verdict};
use okt_core::facts::Task;
use okt_core::reconcile::{Decision, Draft, Effect, Hold, RunEnd, Standing, WorkChange};

use crate::world::World;

/// The names of the decisions that were taken.
#[derive(Default)]
pub(crate) struct Coverage(BTreeSet<&'static str>);

impl Coverage {
    /// Records the next decision, if there is one.
    pub(crate) fn note(&mut self, world: &World) {
        if !world.operator.is_active() {
            return;
        }
        let round = world.operator.round();
        match world.decision(&round) {
            Decision::Rest(next) => {
                self.0.insert(match next.wait() {
                    Some(_) => "rest: for a time",
                    None if next.is_settled() => "rest: settled",
                    None => "rest: others act",
                });
            }
            Decision::Do(effect) => {
                let is_due = world.facts(&round).work.task == Task::Due;
                let is_again = is_due && matches!(effect, Effect::Start { .. });
                self.0.insert(if is_again {
                    "effect Start: again"
                } else {
                    effect_name(&effect)
                });
                if let Effect::Draft(Draft {
                    step, hold, work, ..
                }) = effect
                {
                    let names = [step_name(&step), hold_name(hold), work_name(work)];
                    self.0.extend(names);
                }
            }
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the names of [`EXPECTED`] that are missing.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let is_missing = |name: &&&str| !self.0.contains(**name);
        EXPECTED.iter().filter(is_missing).copied().collect()
    }
}

/// The decisions that some case reaches.
///
/// It leaves out drafts that `decide` never makes: of a release, of starting work, of a hold that holds
/// nothing. No case has an action that names a state without an edge.
const EXPECTED: &[&str] = &[
    "rest: for a time",
    "rest: settled",
    "rest: others act",
    "effect AddFinalizer",
    "effect DropFinalizer",
    "effect DropFinalizer: abandoned",
    "effect Observe",
    "effect RunPass",
    "effect RunPass: leaving",
    "effect Apply",
    "effect Apply: prunes",
    "effect Clear",
    "effect Draft",
    "effect Commit",
    "effect Commit: patch",
    "effect ShowFailure",
    "effect ShowUnreadable",
    "effect Start",
    "effect Start: resumed",
    "effect Start: again",
    "effect Cancel",
    "step Stand: Settled",
    "step Stand: Failed",
    "step Stand: Running",
    "step Stand: Waiting",
    "step Stand: Paused",
    "step Stand: LoopGuard",
    "step Stand: Unsure",
    "step Stand: UnknownState",
    "step Go",
    "step Run: Changed",
    "step Run: Amended",
    "step Retry",
    "step End: Well",
    "step End: Failed",
    "hold None",
    "hold AsBefore",
    "hold Unchecked",
    "hold Pass: Short",
    "hold Pass: Held",
    "hold Pass: GaveUp",
    "hold Stopping",
    "hold Resources: Awaited",
    "hold Resources: Failed",
    "work Keep",
    "work New",
    "work None",
    "work Retry",
    "work Wait",
];

fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::AddFinalizer => "effect AddFinalizer",
        Effect::DropFinalizer { abandoned: false } => "effect DropFinalizer",
        Effect::DropFinalizer { abandoned: true } => "effect DropFinalizer: abandoned",
        Effect::Observe => "effect Observe",
        Effect::RunPass { leaving: false } => "effect RunPass",
        Effect::RunPass { leaving: true } => "effect RunPass: leaving",
        Effect::Apply { prunes: false, .. } => "effect Apply",
        Effect::Apply { prunes: true, .. } => "effect Apply: prunes",
        Effect::Clear => "effect Clear",
        Effect::Draft(_) => "effect Draft",
        Effect::Commit { patch: false, .. } => "effect Commit",
        Effect::Commit { patch: true, .. } => "effect Commit: patch",
        Effect::ShowFailure => "effect ShowFailure",
        Effect::ShowUnreadable => "effect ShowUnreadable",
        Effect::Start { resumed: false } => "effect Start",
        Effect::Start { resumed: true } => "effect Start: resumed",
        Effect::Cancel => "effect Cancel",
    }
}

fn step_name(step: &Verdict) -> &'static str {
    match step {
        Verdict::Stand(Stand::Settled) => "step Stand: Settled",
        Verdict::Stand(Stand::Failed) => "step Stand: Failed",
        Verdict::Stand(Stand::Running) => "step Stand: Running",
        Verdict::Stand(Stand::Waiting) => "step Stand: Waiting",
        Verdict::Stand(Stand::Paused) => "step Stand: Paused",
        Verdict::Stand(Stand::LoopGuard(_)) => "step Stand: LoopGuard",
        Verdict::Stand(Stand::Unsure) => "step Stand: Unsure",
        Verdict::Stand(Stand::UnknownState) => "step Stand: UnknownState",
        Verdict::Go(_) => "step Go",
        Verdict::Run(Run::Resume) => "step Run: Resume",
        Verdict::Run(Run::Begin) => "step Run: Begin",
        Verdict::Run(Run::Again) => "step Run: Again",
        Verdict::Run(Run::Changed) => "step Run: Changed",
        Verdict::Run(Run::Amended) => "step Run: Amended",
        Verdict::Retry { .. } => "step Retry",
        Verdict::End(Ending::Well) => "step End: Well",
        Verdict::End(Ending::Failed) => "step End: Failed",
        Verdict::End(Ending::Refused(_)) => "step End: Refused",
        Verdict::Release => "step Release",
    }
}

fn hold_name(hold: Hold) -> &'static str {
    match hold {
        Hold::None => "hold None",
        Hold::AsBefore => "hold AsBefore",
        Hold::Unchecked => "hold Unchecked",
        Hold::Pass(RunEnd::Complete) => "hold Pass: Complete",
        Hold::Pass(RunEnd::Short) => "hold Pass: Short",
        Hold::Pass(RunEnd::Held) => "hold Pass: Held",
        Hold::Pass(RunEnd::GaveUp) => "hold Pass: GaveUp",
        Hold::Stopping => "hold Stopping",
        Hold::Resources(Standing::AsDeclared) => "hold Resources: AsDeclared",
        Hold::Resources(Standing::Awaited) => "hold Resources: Awaited",
        Hold::Resources(Standing::Failed { .. }) => "hold Resources: Failed",
    }
}

fn work_name(work: WorkChange) -> &'static str {
    match work {
        WorkChange::Keep => "work Keep",
        WorkChange::New => "work New",
        WorkChange::None => "work None",
        WorkChange::Retry => "work Retry",
        WorkChange::Wait => "work Wait",
    }
}
