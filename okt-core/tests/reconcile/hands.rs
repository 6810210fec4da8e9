//! This file performs decisions; it makes none.

use std::time::Duration;

use okt_core::pass::{Failed, PassOutcome, PassRun};
use okt_core::reconcile::{Decision, Effect, Ran, Requeue, RunEnd, Standing, Waits};
use okt_core::{Answer, ConditionStatus, Graph, Step};

use crate::event::{EffectOutcome, StepAnswer};
use crate::facts::WAIT;
use crate::memory::{Due, Phase, Piece};
use crate::operator::{Round, Run};
use crate::plant::Bug;
use crate::world::{OwnedObject, Permits, PutObject, World};

/// After this many effects other objects are reconciled.
const FUSE: u8 = 32;

impl World {
    /// The operator takes one decision and performs it.
    pub(crate) fn decides(&mut self, outcome: EffectOutcome) {
        let mut round = self.operator.round();
        if self.operator.round.take().is_none() {
            self.operator.queued = false;
            self.operator.memory.is_named = false;
            self.tally.reconciliations += 1;
        }
        self.tally.decisions += 1;
        round.effects += 1;
        if round.effects > FUSE {
            self.operator.queued = true;
            return;
        }
        match self.decision(&round) {
            Decision::Rest(next) => self.rests(next, &round),
            Decision::Do(effect) => {
                self.check_effect(effect, &round);
                self.perform(effect, outcome, &mut round);
                self.operator.round = Some(round);
            }
        }
    }

    fn rests(&mut self, next: Requeue, round: &Round) {
        let is_safety = |wait: &Duration| *wait == Requeue::SAFETY;
        let wait = match self.bug {
            Some(Bug::SafetyForgotten) => next.wait().filter(|wait| !is_safety(wait)),
            _ => next.wait(),
        };
        self.check_rest(wait, next.is_under_way(), round);
        let operator = &mut self.operator;
        operator.has_timer = wait.is_some();
        // So short a time counts as none: no other wait is over by then.
        operator.queued |= wait == Some(Requeue::SHORTEST);
        operator.is_under_way = next.is_under_way();
        if next.is_settled() {
            operator.memory.failed = None;
        }
        operator.memory.compact();
    }

    fn perform(&mut self, effect: Effect, outcome: EffectOutcome, round: &mut Round) {
        match effect {
            Effect::AddFinalizer => self.add_finalizer(outcome, round),
            Effect::DropFinalizer { abandoned } => self.drop_finalizer(abandoned, outcome, round),
            Effect::Observe => {
                round.observed = Some(self.sight);
                round.has_acted = false;
            }
            Effect::RunPass { leaving } => self.run_pass(leaving, outcome, round),
            Effect::Apply { creates, prunes } => self.apply(creates, prunes, outcome, round),
            Effect::Clear => self.clear(outcome, round),
            Effect::Draft(draft) => self.draft(draft, round),
            Effect::Commit { draft, patch } => self.commit(&draft, patch, outcome, round),
            Effect::ShowFailure => self.show_failure(outcome, round),
            Effect::ShowUnreadable => self.show_unreadable(outcome, round),
            Effect::Start { .. } => self.start(outcome, round),
            Effect::Cancel => {
                self.note_cancel();
                self.operator.memory.cancel();
            }
        }
    }

    fn run_pass(&mut self, leaving: bool, outcome: EffectOutcome, round: &mut Round) {
        let Some(graph) = self.case.pass else {
            return self.breaks("runs a pass that the application does not declare");
        };
        let unusual = if let EffectOutcome::StepAnswers { step, how } = outcome {
            self.budget.steps -= 1;
            Some((step, how))
        } else {
            None
        };
        let deleting = round.object.spec.deleting;
        let mut puts = Vec::from([self.cluster.put]);
        let run = ran(graph, deleting, unusual, |step| {
            let put = puts[puts.len() - 1];
            match step {
                "Apply" if put == PutObject::Absent => puts.push(PutObject::There),
                "Finalize" if put != PutObject::Absent => puts.push(PutObject::Absent),
                _ => {}
            }
        });
        self.cluster.put = puts[puts.len() - 1];
        self.tally.requests += u32::try_from(puts.len() - 1).unwrap_or(u32::MAX);
        let end = RunEnd::from(&run.outcome());
        self.remember_run(&run, end, round);
        round.run = Some(Run {
            ran: Ran { end, leaving },
            unusual,
        });
    }

    /// Remembers how a run of the pass ended and when the next one is due, as the runtime does.
    fn remember_run(&mut self, run: &PassRun<'_>, end: RunEnd, round: &Round) {
        let spec = round.object.spec;
        let gave_up = end == RunEnd::GaveUp;
        // Nothing is repeated after a give-up; but an object that is being deleted is reconciled again.
        let is_left = run.in_the_way().is_some() && (spec.deleting || !gave_up);
        let is_asked_for = run.results().requeue_after.is_some() && !gave_up;
        let has_failed = matches!(run.outcome(), PassOutcome::Failed(_));
        let is_alone = self.case.life.is_none();
        let is_forgotten = self.bug == Some(Bug::FindingsForgotten);
        let memory = &mut self.operator.memory;
        memory.seen.reported &= is_forgotten;
        let pass = &mut memory.pass;
        pass.last = Some(end);
        pass.backoff = has_failed.then_some(spec.generation);
        pass.due = if is_left || is_asked_for {
            Due::Ahead
        } else {
            Due::Nothing
        };
        pass.is_unwritten = is_alone && !is_forgotten;
    }

    fn apply(&mut self, creates: bool, prunes: bool, outcome: EffectOutcome, round: &mut Round) {
        let declares = self.declares_owned(&round.object.status.recorded);
        let before = self.cluster.owned;
        let standing = if let EffectOutcome::ClusterFails { permanent } = outcome {
            self.budget.cluster -= 1;
            Standing::Failed { permanent }
        } else {
            self.cluster.owned = match before {
                OwnedObject::Absent if declares && creates => OwnedObject::Unready,
                OwnedObject::Unready | OwnedObject::Ready if !declares && prunes => {
                    OwnedObject::Absent
                }
                unchanged => unchanged,
            };
            self.tally.requests += u32::from(before != self.cluster.owned);
            if declares && self.cluster.owned == OwnedObject::Unready {
                Standing::Awaited
            } else {
                Standing::AsDeclared
            }
        };
        let memory = &mut self.operator.memory.owned;
        memory.due = if matches!(standing, Standing::Failed { .. }) {
            Due::Ahead
        } else {
            Due::Nothing
        };
        let transition = round.object.status.recorded.at().map(|it| it.transition);
        memory.last = transition.map(|transition| (transition, standing));
        round.standing = Some(standing);
    }

    fn clear(&mut self, outcome: EffectOutcome, round: &mut Round) {
        let is_cleared = if let EffectOutcome::ClusterFails { .. } = outcome {
            self.budget.cluster -= 1;
            false
        } else {
            if self.cluster.put == PutObject::There {
                self.cluster.put = PutObject::Deleting;
                self.tally.requests += 1;
            }
            self.cluster.put == PutObject::Absent
        };
        self.operator.memory.owned.due = if is_cleared { Due::Nothing } else { Due::Ahead };
        round.cleared = Some(is_cleared);
    }

    /// Starts the work on record, unless it has to wait for a place or for the task of a former object.
    pub(crate) fn start(&mut self, outcome: EffectOutcome, round: &mut Round) {
        if self.former_task_runs {
            self.operator.memory.is_ending = true;
            return;
        }
        if matches!(outcome, EffectOutcome::NoPermit | EffectOutcome::NotYet) {
            self.budget.permits -= 1;
            self.permits = if outcome == EffectOutcome::NoPermit {
                Permits::Taken
            } else {
                Permits::Later
            };
        }
        let left = match self.permits {
            Permits::Free => return self.begin(round),
            Permits::Taken => None,
            Permits::Later => Some(WAIT),
        };
        if self.bug != Some(Bug::PermitForgotten) {
            round.waits = Some(Waits::Permit(left));
        }
    }

    fn begin(&mut self, round: &Round) {
        let work = self.facts(round).work;
        let id = self.in_flight(&round.object.status.recorded);
        self.note_begin(id, work.attempt);
        self.operator.memory.piece = id.map(|id| Piece {
            id,
            attempt: work.attempt,
            started_under: round.object.spec.generation,
            phase: Phase::Running,
        });
    }
}

/// Runs a pass. `done` takes the name of each step that is done.
pub(crate) fn ran(
    graph: &'static Graph<'static>,
    deleting: bool,
    unusual: Option<(u8, StepAnswer)>,
    mut done: impl FnMut(&str),
) -> PassRun<'static> {
    let soon = Duration::from_secs(5);
    let mut run = PassRun::begin(graph, deleting);
    let mut number = 0;
    while let Some(at) = run.at() {
        let mut next = || {
            done(graph.name_of(at));
            Step::done(Answer::Next)
        };
        let how = unusual.filter(|(which, _)| *which == number);
        let said = match how.map(|(_, how)| how) {
            None => Ok(next()),
            Some(StepAnswer::Short) => Ok(next().condition(ConditionStatus::False, "Short", "")),
            Some(StepAnswer::Again) => Ok(next().requeue_after(soon)),
            Some(StepAnswer::Waits) => Ok(Step::wait("Waits", soon)),
            Some(StepAnswer::GivesUp) => Ok(Step::give_up()),
            Some(StepAnswer::Fails) => Err(Failed::retry("Fails", "")),
        };
        run.take(said);
        number += 1;
    }
    run
}
