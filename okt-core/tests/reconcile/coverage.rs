//! This file records the decisions that were taken: a rule about a decision that is never taken proves nothing.

use std::collections::BTreeSet;

use okt_core::decide::{Ending, Run, StayReason, Verdict};

use crate::machine::{Decision, Draft, Effect, NotReadyReason, ResourceStatus, RunEnd, WorkChange};
use crate::world::World;

/// The names of the decisions that were taken.
#[derive(Default)]
pub(crate) struct Coverage(BTreeSet<&'static str>);

impl Coverage {
    /// Records the next decision, if there is one.
    pub(crate) fn note(&mut self, world: &World) {
        if !world.process.is_active() {
            return;
        }
        match world.clone().next_decision() {
            Decision::Rest(next) => {
                self.0.insert(match next.wait() {
                    Some(_) => "rest: for a time",
                    None if next.is_settled() => "rest: settled",
                    None => "rest: others act",
                });
            }
            Decision::Do(effect) => {
                self.0.insert(effect_name(&effect));
                if let Effect::Render(render) = effect {
                    let Draft {
                        step,
                        not_ready,
                        work,
                        ..
                    } = render.draft;
                    let names = [step_name(&step), reason_name(not_ready), work_name(work)];
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
/// It leaves out drafts that `decide` never makes: of a release, of starting work, of a reason that is
/// none. No case has an action that names a state without an edge.
const EXPECTED: &[&str] = &[
    "rest: for a time",
    "rest: settled",
    "rest: others act",
    "effect AddFinalizer",
    "effect DropFinalizer",
    "effect DropFinalizer: abandoned",
    "effect Observe",
    "effect Observe: silent",
    "effect RunPass",
    "effect RunPass: leaving",
    "effect Apply",
    "effect Apply: prunes",
    "effect Clear",
    "effect Render",
    "effect TakeOver",
    "effect Commit",
    "effect ChangeWork",
    "effect RemoveLeftovers",
    "effect ShowFailure",
    "effect ShowUnreadable",
    "effect Start",
    "effect Start: resumed",
    "effect Start: again",
    "effect Cancel",
    "effect Cancel: task",
    "step Stay: Settled",
    "step Stay: Failed",
    "step Stay: Running",
    "step Stay: Waiting",
    "step Stay: Paused",
    "step Stay: LoopGuard",
    "step Stay: Unsure",
    "step Stay: UnknownState",
    "step Go",
    "step Run: Changed",
    "step Run: Amended",
    "step Retry",
    "step End: Well",
    "step End: Failed",
    "not ready: None",
    "not ready: AsBefore",
    "not ready: Unchecked",
    "not ready: Pass: Short",
    "not ready: Pass: Held",
    "not ready: Pass: GaveUp",
    "not ready: Stopping",
    "not ready: Resources: Awaited",
    "not ready: Resources: Failed",
    "work Keep",
    "work New",
    "work None",
    "work Retry",
    "work Wait",
];

fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::AddFinalizer(_) => "effect AddFinalizer",
        Effect::DropFinalizer(drop) if drop.abandoned => "effect DropFinalizer: abandoned",
        Effect::DropFinalizer(_) => "effect DropFinalizer",
        Effect::Observe(observe) if !observe.calls => "effect Observe: silent",
        Effect::Observe(_) => "effect Observe",
        Effect::RunPass(run) if run.leaving => "effect RunPass: leaving",
        Effect::RunPass(_) => "effect RunPass",
        Effect::Apply(apply) if apply.prunes => "effect Apply: prunes",
        Effect::Apply(_) => "effect Apply",
        Effect::Clear(_) => "effect Clear",
        Effect::Render(_) => "effect Render",
        Effect::TakeOver(_) => "effect TakeOver",
        Effect::Commit(_) => "effect Commit",
        Effect::ChangeWork(_) => "effect ChangeWork",
        Effect::RemoveLeftovers(_) => "effect RemoveLeftovers",
        Effect::ShowFailure(_) => "effect ShowFailure",
        Effect::ShowUnreadable(_) => "effect ShowUnreadable",
        Effect::Start(start) if start.continues => "effect Start: again",
        Effect::Start(start) if start.resumed => "effect Start: resumed",
        Effect::Start(_) => "effect Start",
        Effect::Cancel(cancel) if cancel.task.is_some() => "effect Cancel: task",
        Effect::Cancel(_) => "effect Cancel",
    }
}

fn step_name(step: &Verdict) -> &'static str {
    match step {
        Verdict::Stay(StayReason::Settled) => "step Stay: Settled",
        Verdict::Stay(StayReason::Failed) => "step Stay: Failed",
        Verdict::Stay(StayReason::Running) => "step Stay: Running",
        Verdict::Stay(StayReason::Waiting) => "step Stay: Waiting",
        Verdict::Stay(StayReason::Paused) => "step Stay: Paused",
        Verdict::Stay(StayReason::LoopGuard(_)) => "step Stay: LoopGuard",
        Verdict::Stay(StayReason::Unsure) => "step Stay: Unsure",
        Verdict::Stay(StayReason::UnknownState) => "step Stay: UnknownState",
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

fn reason_name(reason: NotReadyReason) -> &'static str {
    match reason {
        NotReadyReason::None => "not ready: None",
        NotReadyReason::AsBefore => "not ready: AsBefore",
        NotReadyReason::Unchecked => "not ready: Unchecked",
        NotReadyReason::Pass(RunEnd::Complete) => "not ready: Pass: Complete",
        NotReadyReason::Pass(RunEnd::Short) => "not ready: Pass: Short",
        NotReadyReason::Pass(RunEnd::Held) => "not ready: Pass: Held",
        NotReadyReason::Pass(RunEnd::GaveUp) => "not ready: Pass: GaveUp",
        NotReadyReason::Stopping => "not ready: Stopping",
        NotReadyReason::Resources(ResourceStatus::AsDeclared) => "not ready: Resources: AsDeclared",
        NotReadyReason::Resources(ResourceStatus::Awaited) => "not ready: Resources: Awaited",
        NotReadyReason::Resources(ResourceStatus::Failed { .. }) => "not ready: Resources: Failed",
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
