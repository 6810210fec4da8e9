//! The events that can happen in a world.

use okt_core::facts::ActionResult;
use okt_core::{Graph, Mark, State, StateId};

use crate::cases::Special;
use crate::event::{EffectOutcome, Event, Fault, StepAnswer, Write};
use crate::machine::{Decision, Effect, ObservationResult};
use crate::requests::ASKED;
use crate::translate::LONG;
use crate::translate::WAIT;
use crate::world::{OwnedObject, Permits, Presence, PutObject, World};

impl World {
    /// Returns every event that can happen now.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.broken.is_some() || self.presence == Presence::Forgotten {
            return events;
        }
        self.decisions(&mut events);
        self.surroundings(&mut events);
        let process = &self.process;
        if process.has_timer && process.at_hand.is_none() && self.budget.ticks > 0 {
            events.extend([Event::TimePasses, Event::Requeued]);
        }
        if self.presence == Presence::Gone {
            return events;
        }
        if process.may_end() && self.budget.answers > 0 {
            let results = [
                ActionResult::Failed { permanent: true },
                ActionResult::Failed { permanent: false },
                ActionResult::Wait(WAIT),
            ];
            events.extend(results.map(Event::ActionEnds));
        }
        if process.may_end() && self.budget.records > 0 {
            events.push(Event::AsksToRecord);
        }
        if process.task.is_some() && self.budget.crashes > 0 {
            events.push(Event::ActionIsLost);
        }
        self.processes(&mut events);
        if self.budget.user > 0 {
            self.requests_of_the_user(&mut events);
        }
        self.requests_of_others(&mut events);
        self.application(&mut events);
        self.special(&mut events);
        events
    }

    /// Returns the events that happen sooner or later without anything unexpected: the next decision of the operator,
    /// and the events of its surroundings.
    pub(crate) fn calm_events(&self) -> (Option<Event>, Vec<Event>) {
        let mut surroundings = Vec::new();
        if self.presence == Presence::Forgotten {
            return (None, surroundings);
        }
        self.surroundings(&mut surroundings);
        let decision = Event::Decides(EffectOutcome::Works);
        (self.process.is_active().then_some(decision), surroundings)
    }

    /// Adds the next decision of the operator, with every outcome that it may have.
    fn decisions(&self, events: &mut Vec<Event>) {
        if !self.process.is_active() {
            return;
        }
        events.push(Event::Decides(EffectOutcome::Works));
        let Decision::Do(effect) = self.clone().next_decision() else {
            return;
        };
        let mut may_come_to = |outcomes: &[EffectOutcome]| {
            events.extend(outcomes.iter().copied().map(Event::Decides));
        };
        let budget = &self.budget;
        match effect {
            Effect::AddFinalizer(_)
            | Effect::DropFinalizer(_)
            | Effect::TakeOver(_)
            | Effect::Commit(_)
            | Effect::Record(_)
            | Effect::RemoveLeftovers(_)
            | Effect::ShowFailure(_)
            | Effect::ShowUnreadable(_)
                if budget.faults > 0 && self.failing.is_none() =>
            {
                let faults = [Fault::Refused, Fault::Unavailable, Fault::AnswerLost];
                may_come_to(&faults.map(EffectOutcome::WriteFails));
                let is_status = matches!(effect, Effect::Commit(_) | Effect::Record(_));
                if is_status && self.case.special == Special::Webhook {
                    may_come_to(&[EffectOutcome::WriteFails(Fault::Undone)]);
                }
            }
            Effect::ReadRequest(_) if budget.faults > 0 => may_come_to(&[EffectOutcome::NotRead]),
            Effect::TakePlace(_) | Effect::Deliver(_) if budget.faults > 0 => {
                may_come_to(&[EffectOutcome::NotRead, EffectOutcome::AnswerLost]);
            }
            Effect::RunPass(_) if budget.steps > 0 => {
                for step in 0..2 {
                    may_come_to(
                        &StepAnswer::ALL.map(|how| EffectOutcome::StepAnswers { step, how }),
                    );
                }
            }
            Effect::Apply(_) if budget.cluster > 0 => {
                may_come_to(
                    &[true, false].map(|permanent| EffectOutcome::ClusterFails { permanent }),
                );
            }
            Effect::Clear(_) if budget.cluster > 0 => {
                let failed = EffectOutcome::ClusterFails { permanent: false };
                may_come_to(&[failed, EffectOutcome::Undelivered]);
            }
            Effect::Render(_) if budget.sights > 0 && self.case.special == Special::Extra => {
                may_come_to(&[EffectOutcome::NoExtra]);
            }
            Effect::Start(_) if budget.permits > 0 && self.permits == Permits::Free => {
                may_come_to(&[EffectOutcome::NoPermit, EffectOutcome::NotYet]);
                if self.stored.version > self.process.object().version {
                    may_come_to(&[EffectOutcome::Outdated]);
                }
            }
            Effect::Observe(_) if self.process.may_end() => {
                may_come_to(&[EffectOutcome::WorkEndsMeanwhile]);
            }
            // Their budget is spent, or they cannot fail.
            Effect::AddFinalizer(_)
            | Effect::DropFinalizer(_)
            | Effect::Observe(_)
            | Effect::RunPass(_)
            | Effect::Apply(_)
            | Effect::Clear(_)
            | Effect::Render(_)
            | Effect::TakeOver(_)
            | Effect::Commit(_)
            | Effect::Record(_)
            | Effect::ChangeWork(_)
            | Effect::RemoveLeftovers(_)
            | Effect::ShowFailure(_)
            | Effect::ShowUnreadable(_)
            | Effect::ReadRequest(_)
            | Effect::Deliver(_)
            | Effect::TakePlace(_)
            | Effect::Start(_)
            | Effect::Cancel(_) => {}
        }
    }

    /// Adds the events that happen sooner or later around the operator.
    fn surroundings(&self, events: &mut Vec<Event>) {
        let process = &self.process;
        if process.cache.version < self.stored.version || self.presence == Presence::Gone {
            events.push(Event::Deliver);
        }
        if self.presence == Presence::Gone {
            return;
        }
        if self.tended_place() != self.place {
            events.push(Event::TendsPlaces);
        }
        let news = (0..ASKED).filter(|it| process.asked[*it] != self.asked[*it]);
        events.extend(news.map(Event::RequestArrives));
        if process.may_end() {
            events.push(Event::ActionEnds(self.usual_answer()));
        }
        if process.is_ending || self.former_task_runs {
            events.push(Event::CancelledTaskEnds);
        }
        if self.cluster.owned == OwnedObject::Unready {
            events.push(Event::OwnedIsReady);
        }
        if self.cluster.put == PutObject::Deleting {
            events.push(Event::PutIsGone);
        }
        if self.permits == Permits::Taken {
            events.push(Event::PermitIsFree);
        }
        if self.others_hold && self.stored.spec.deleting && !self.stored.finalizer {
            events.push(Event::OthersLetGo);
        }
    }

    /// Returns the answer of the running action, if nothing unexpected happens.
    pub(crate) fn usual_answer(&self) -> ActionResult {
        let state = self
            .process
            .task
            .and_then(|task| self.history.works.iter().find(|work| work.id == task.work))
            .zip(self.case.life)
            .and_then(|(work, life)| life.get(work.state));
        if state.is_some_and(State::is_passing) {
            ActionResult::Next
        } else {
            ActionResult::Stay
        }
    }

    /// Adds crashes, changes of leadership, and the end of the process.
    fn processes(&self, events: &mut Vec<Event>) {
        let (process, budget) = (&self.process, &self.budget);
        if budget.crashes > 0 {
            events.extend((0..self.versions.len()).map(Event::Restart));
        } else if process.draining && !process.is_active() {
            events.push(Event::Restart(0));
        }
        if process.leads {
            if budget.lead > 0 {
                events.push(Event::LosesLead);
            }
        } else {
            events.push(Event::GetsLead);
            // A replica that stood still may still be in the middle of a reconciliation.
            if budget.lead > 0 {
                events.extend([true, false].map(|ends| Event::AnotherLeads { ends }));
            }
        }
        if budget.drains > 0 && !process.draining {
            events.push(Event::Drain);
        }
    }

    fn requests_of_the_user(&self, events: &mut Vec<Event>) {
        let deleting = self.stored.spec.deleting;
        if let (Some(life), false) = (self.case.life, deleting) {
            let asked = |to: &StateId| life.get(*to).is_some_and(|it| it.is(Mark::Args));
            let states = life.desirable_states().filter(|to| !asked(to));
            events.extend(states.map(|to| {
                let is_visit = life.get(to).is_some_and(|state| state.is(Mark::Visit));
                if is_visit {
                    Event::Visit(to)
                } else {
                    Event::DesiredState(to)
                }
            }));
        }
        events.extend([Event::Change, Event::Pause]);
        events.push(if deleting {
            Event::Abandon
        } else {
            Event::Delete
        });
        if self.case.special == Special::Webhook {
            events.push(Event::Label);
        }
        if self.case.special == Special::Garbled {
            events.push(Event::Garble);
        }
    }

    /// Adds what the authors of requests do.
    fn requests_of_others(&self, events: &mut Vec<Event>) {
        let serves = |life: &Graph<'_>| life.states.iter().any(|state| state.is(Mark::Args));
        if self.budget.asks == 0 || !self.case.life.is_some_and(serves) {
            return;
        }
        if self.asked.iter().any(|it| !it.is_made) {
            events.push(Event::Asks);
        }
        let there = (0..ASKED).filter(|it| self.asked[*it].is_open());
        events.extend(there.map(Event::Withdraws));
    }

    fn application(&self, events: &mut Vec<Event>) {
        let Some(life) = self.case.life.filter(|_| self.budget.sights > 0) else {
            return;
        };
        if self.case.special == Special::Leftovers {
            return;
        }
        if self.case.special == Special::Extra {
            events.push(Event::ExtraChanges);
            return;
        }
        let tolerance = std::time::Duration::ZERO;
        let elsewhere = [
            ObservationResult::Absent { tolerance },
            ObservationResult::Unforeseen,
            ObservationResult::Unreachable,
            ObservationResult::TimedOut,
            ObservationResult::Failed,
            ObservationResult::Absent { tolerance: LONG },
        ];
        let states = life.iter().map(|(id, _)| ObservationResult::In(id));
        events.extend(elsewhere.into_iter().chain(states).map(Event::Shows));
    }

    /// Adds the events that happen only in some cases.
    fn special(&self, events: &mut Vec<Event>) {
        if self.budget.turns > 0 && self.case.has_gates() {
            events.push(Event::Turns);
        }
        // Where an outdated object may change, it is declared too.
        if self.budget.releases > 0 && self.case.owns.contains(&"Swapping") {
            events.push(Event::Releases);
        }
        if self.case.special == Special::FailsForEver {
            if self.failing.is_some() {
                events.push(Event::Mends);
            } else if self.budget.faults > 0 {
                for write in [Write::Status, Write::Finalizer] {
                    let faults = [Fault::Refused, Fault::Unavailable];
                    events.extend(faults.map(|fault| Event::FailsForEver(write, fault)));
                }
            }
        }
        let may_leave = self.case.special == Special::Leftovers && self.budget.sights > 0;
        if may_leave && !self.stored.status.has_leftovers {
            events.push(Event::OthersWrite);
        }
        if self.case.special == Special::NewerOperator && !self.process.leads {
            let has_record = self.stored.status.recorded.at().is_some();
            if self.stored.status.newer {
                events.push(Event::NewerGoes);
            } else if has_record && self.budget.lead > 0 {
                events.push(Event::NewerMoves);
            }
        }
    }
}
