//! The shell: it performs the effects that the machine asks for, and reports their results; it makes no decision.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use okt_core::StateId;
use okt_core::pass::PassRun;
use okt_core::record::Recorded;
use okt_core::{Answer, ConditionStatus, Graph, Step};

use crate::event::{EffectOutcome, StepAnswer, Write};
use crate::machine;
use crate::machine::{
    AddFinalizer, Apply, ApplyResult, Clear, ClearResult, Commit, Decision, DropFinalizer, Effect,
    ExtraResult, Machine, ObservationResult, Observe, PassReport, PassResult, PlaceResult, Record,
    RemoveLeftovers, Render, Requeue, ResourceStatus, RunPass, ShowFailure, ShowResult,
    ShowUnreadable, Start, StartResult, StatusDiff, Stored, TakeOver, TakePlace, WorkChange,
    WriteError,
};
use crate::object::{About, Object, Report, Status};
use crate::plant::Bug;
use crate::process::{AtHand, Run, Task};
use crate::translate::WAIT;
use crate::world::{OwnedObject, Permits, Place, Presence, PutObject, World};

impl World {
    /// Gives the machine an input; a planted bug may then change its memory.
    pub(crate) fn machine<T>(&mut self, input: impl FnOnce(&mut Machine) -> T) -> T {
        let machine = &mut self.process.machine;
        let before = self.bug.map(|bug| (bug, machine.clone()));
        let result = input(machine);
        if let Some((bug, before)) = before {
            machine.spoil(bug, &before);
        }
        result
    }

    /// Begins a reconciliation, unless one is under way. Returns how long to wait if the object is too old for one.
    pub(crate) fn begin(&mut self) -> Option<Requeue> {
        if let Some(at_hand) = &mut self.process.at_hand {
            if std::mem::take(&mut self.process.is_reopened)
                && self.bug != Some(Bug::LeaderChangeMissed)
            {
                at_hand.is_reopened = true;
                self.machine(Machine::reopen);
            }
            return None;
        }
        self.process.queued = false;
        let (object, now) = (self.process.cache, self.now);
        if std::mem::take(&mut self.process.is_reopened) {
            self.machine(Machine::reopen);
        }
        if std::mem::take(&mut self.process.is_named) {
            self.machine(Machine::name);
        }
        if self.bug != Some(Bug::OldVersionActedUpon) {
            let version = Some(object.version.of_machine());
            let behind = self.machine(|machine| machine.check_version(version, now));
            if let Some((requeue, _)) = behind {
                return Some(requeue);
            }
        }
        let read = self.read(&object);
        self.machine(|machine| machine.read(&read, now));
        self.process.at_hand = Some(AtHand {
            object,
            effects: 0,
            has_acted: false,
            run: None,
            is_reopened: false,
            asked: self.process.asked,
            shut: self.shut,
            place_failed: false,
            rendered: None,
        });
        None
    }

    /// Returns the decision that comes next.
    pub(crate) fn next_decision(&mut self) -> Decision {
        if let Some(requeue) = self.begin() {
            return Decision::Rest(requeue);
        }
        let recording = self.process.task.filter(|_| self.process.is_recording);
        if let Some(task) = recording {
            self.machine(|machine| machine.ask_to_record(task.id));
        }
        let (setup, operator, now) = (self.setup(), self.operator(), self.now);
        let decision = self.machine(|machine| machine.decide(&setup, operator, now));
        match decision {
            Decision::Do(Effect::Apply(mut apply)) => {
                apply.prunes |= self.bug == Some(Bug::PrunedAfterJump);
                apply.creates |= self.bug == Some(Bug::CreatedWhileDeleting);
                Decision::Do(Effect::Apply(apply))
            }
            Decision::Rest(_)
                if self.bug == Some(Bug::PassedTimeNamed) && self.has_passed_time() =>
            {
                Decision::Rest(Requeue::soon())
            }
            decision => decision,
        }
    }

    fn has_passed_time(&self) -> bool {
        let has_come = |left: Option<Duration>| left.is_some_and(|left| left.is_zero());
        let facts = self.facts();
        has_come(facts.pass.due) || has_come(facts.resources.due)
    }

    /// The operator takes one decision and performs it.
    pub(crate) fn decides(&mut self, outcome: EffectOutcome) {
        if self.process.at_hand.is_none() {
            self.tally.reconciliations += 1;
        }
        self.tally.decisions += 1;
        match self.next_decision() {
            Decision::Rest(next) => self.rests(next),
            Decision::Do(effect) => {
                let Some(mut at_hand) = self.process.at_hand else {
                    return self.breaks("performs an effect outside a reconciliation");
                };
                at_hand.effects += 1;
                self.check_effect(&effect, &at_hand);
                self.perform(effect, outcome, &mut at_hand);
                self.process.at_hand = Some(at_hand);
            }
        }
    }

    fn rests(&mut self, next: Requeue) {
        let is_safety = |wait: &Duration| *wait == Requeue::SAFETY;
        let wait = match self.bug {
            Some(Bug::SafetyForgotten) => next.wait().filter(|wait| !is_safety(wait)),
            _ => next.wait(),
        };
        self.check_rest(wait, next.is_under_way());
        let process = &mut self.process;
        process.at_hand = None;
        process.has_timer = wait.is_some();
        // So short a time counts as none: no other wait is over by then.
        process.queued |= wait == Some(Requeue::SHORTEST);
        process.is_under_way = next.is_under_way();
        if matches!(
            self.bug,
            Some(Bug::FindingKeptOverRequest | Bug::AbandonedPermitKept)
        ) {
            return;
        }
        process.machine.end();
        let last_write = process.machine.at_rest(self.now);
        let forgets =
            (self.bug == Some(Bug::ResultForgottenAtRest)).then(|| *process.machine.last_write());
        if let Some(last_write) = last_write.or(forgets) {
            process.machine = Machine::of(last_write);
        }
    }

    fn perform(&mut self, effect: Effect, outcome: EffectOutcome, at_hand: &mut AtHand) {
        match effect {
            Effect::AddFinalizer(effect) => self.add_finalizer(effect, outcome, at_hand),
            Effect::DropFinalizer(effect) => self.drop_finalizer(effect, outcome, at_hand),
            Effect::Observe(effect) => self.observe(effect, outcome, at_hand),
            Effect::RunPass(effect) => self.run_pass(effect, outcome, at_hand),
            Effect::Apply(effect) => self.apply(effect, outcome, at_hand),
            Effect::Clear(effect) => self.clear(effect, outcome),
            Effect::Render(effect) => self.render(effect, outcome, at_hand),
            Effect::TakeOver(effect) => self.take_over(effect, outcome, at_hand),
            Effect::Commit(effect) => self.commit(effect, outcome, at_hand),
            Effect::Record(effect) => self.record(effect, outcome, at_hand),
            Effect::ChangeWork(effect) => {
                self.check_commit(&effect.draft, at_hand);
                self.took_effect(&effect.draft, at_hand);
                let (setup, now) = (self.setup(), self.now);
                self.machine(|machine| machine.work_changed(effect, &setup, now));
            }
            Effect::RemoveLeftovers(effect) => self.remove_leftovers(effect, outcome, at_hand),
            Effect::ReadRequest(effect) => self.read_request(effect, outcome, at_hand),
            Effect::TakePlace(effect) => self.take_place(effect, outcome, at_hand),
            Effect::Deliver(effect) => self.deliver_outcomes(effect, outcome, at_hand),
            Effect::ShowFailure(effect) => self.show_failure(effect, outcome, at_hand),
            Effect::ShowUnreadable(effect) => self.show_unreadable(effect, outcome, at_hand),
            Effect::Start(effect) => self.start(effect, outcome, at_hand),
            Effect::Cancel(effect) => {
                self.note_cancel(effect.task);
                self.machine(|machine| machine.cancelled(effect));
            }
        }
    }

    fn observe(&mut self, effect: Observe, outcome: EffectOutcome, at_hand: &mut AtHand) {
        if outcome == EffectOutcome::WorkEndsMeanwhile {
            self.action_ends(self.usual_answer());
        }
        let seen = if effect.calls {
            self.sight
        } else {
            ObservationResult::Silent
        };
        let now = self.now;
        at_hand.has_acted = false;
        self.machine(|machine| machine.observed(effect, seen, Vec::new(), now));
    }

    fn run_pass(&mut self, effect: RunPass, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let Some(graph) = self.case.pass else {
            return self.breaks("runs a pass that the application does not declare");
        };
        let unusual = if let EffectOutcome::StepAnswers { step, how } = outcome {
            self.budget.steps -= 1;
            Some((step, how))
        } else {
            None
        };
        let deleting = at_hand.object.spec.deleting;
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
        let report = PassReport {
            is_in_the_way: run.in_the_way().is_some(),
            requeue_after: run.results().requeue_after,
            ..PassReport::of(&run.outcome())
        };
        let (end, leaving) = (report.end, effect.leaving);
        let ran = PassResult { end, leaving };
        at_hand.run = Some(Run { ran, unusual });
        let (setup, now) = (self.setup(), self.now);
        self.machine(|machine| machine.pass_ran(effect, &report, &setup, now));
    }

    fn apply(&mut self, effect: Apply, outcome: EffectOutcome, at_hand: &AtHand) {
        let declares = self.declares_owned(&at_hand.object.status.recorded);
        let before = self.cluster.owned;
        let result = if let EffectOutcome::ClusterFails { permanent } = outcome {
            self.budget.cluster -= 1;
            ApplyResult::Applied {
                status: ResourceStatus::Failed { permanent },
                due: Some(WAIT),
                outdated: None,
                content: None,
            }
        } else {
            let outdated = self.change_outdated(&at_hand.object.status.recorded, declares);
            self.cluster.owned = match before {
                OwnedObject::Absent if declares && effect.creates => OwnedObject::Unready,
                OwnedObject::Unready | OwnedObject::Ready if !declares && effect.prunes => {
                    OwnedObject::Absent
                }
                unchanged => unchanged,
            };
            self.tally.requests += u32::from(before != self.cluster.owned);
            let is_awaited = declares && self.cluster.owned == OwnedObject::Unready;
            ApplyResult::Applied {
                status: if is_awaited {
                    ResourceStatus::Awaited
                } else {
                    ResourceStatus::AsDeclared
                },
                due: None,
                outdated,
                content: Some(0),
            }
        };
        let now = self.now;
        self.machine(|machine| machine.applied(effect, result, now));
    }

    fn take_place(&mut self, effect: TakePlace, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let was_granted = self.place.is_some_and(|place| place.granted);
        let is_free = was_granted || !self.shut;
        let mut result = PlaceResult::None;
        if outcome == EffectOutcome::NotRead || outcome == EffectOutcome::AnswerLost {
            self.budget.faults -= 1;
            at_hand.place_failed = true;
        } else if effect.forced || is_free {
            result = PlaceResult::Taken;
        }
        if outcome != EffectOutcome::NotRead && (effect.forced || is_free) {
            self.place = Some(Place {
                version: at_hand.object.version,
                granted: was_granted || !effect.forced,
            });
        }
        self.machine(|machine| machine.place_taken(effect, result));
    }

    /// Returns the place of the object as the replica that looks after it leaves it.
    pub(crate) fn tended_place(&self) -> Option<Place> {
        let stored = &self.stored;
        let is_gone = self.presence != Presence::Stored;
        match self.place {
            Some(place)
                if is_gone || (!self.is_inside(stored) && place.version != stored.version) =>
            {
                None
            }
            None if !is_gone && self.is_inside(stored) => Some(Place {
                version: stored.version,
                granted: false,
            }),
            place => place,
        }
    }

    /// Changes an outdated object where it may change. Elsewhere, returns the edge that leads there.
    fn change_outdated(&mut self, recorded: &Recorded, declares: bool) -> Option<StateId> {
        let (record, life) = recorded.at().zip(self.case.life)?;
        let changes = life.gates.first().filter(|_| !self.case.has_limit())?;
        let changes = changes.states.first().copied()?;
        if !self.cluster.is_outdated || !declares || self.cluster.owned == OwnedObject::Absent {
            self.cluster.is_outdated &= self.cluster.owned != OwnedObject::Absent;
            return None;
        }
        if record.state == changes {
            self.cluster.is_outdated = false;
            return None;
        }
        let edge = life.get(record.state)?.trigger_to(changes)?;
        Some(edge.to)
    }

    fn clear(&mut self, effect: Clear, outcome: EffectOutcome) {
        let result = match (outcome, self.cluster.put) {
            (EffectOutcome::ClusterFails { permanent }, _) => {
                self.budget.cluster -= 1;
                let due = Some(WAIT);
                ClearResult::Failed { permanent, due }
            }
            (EffectOutcome::Undelivered, PutObject::Absent) => {
                self.budget.cluster -= 1;
                ClearResult::Undelivered { patience: WAIT }
            }
            (_, PutObject::There) => {
                self.cluster.put = PutObject::Deleting;
                self.tally.requests += 1;
                ClearResult::Deleted
            }
            (_, PutObject::Deleting) => ClearResult::Awaited,
            (_, PutObject::Absent) => ClearResult::Cleared,
        };
        let now = self.now;
        self.machine(|machine| machine.cleared(effect, result, now));
    }

    /// Starts the work on record, unless it has to wait for a permit or for the task of a former object.
    fn start(&mut self, effect: Start, outcome: EffectOutcome, at_hand: &mut AtHand) {
        if matches!(outcome, EffectOutcome::NoPermit | EffectOutcome::NotYet) {
            self.budget.permits -= 1;
            self.permits = if outcome == EffectOutcome::NoPermit {
                Permits::Taken
            } else {
                Permits::Later
            };
        }
        let result = match self.permits {
            _ if outcome == EffectOutcome::Outdated => {
                self.budget.permits -= 1;
                StartResult::Outdated(Some(self.stored.version.of_machine()))
            }
            _ if self.former_task_runs => {
                self.process.is_ending = true;
                StartResult::FormerTaskRuns
            }
            Permits::Taken => StartResult::NoPermit(None),
            Permits::Later => StartResult::NoPermit(Some(WAIT)),
            Permits::Free => {
                self.begin_task(&effect, at_hand);
                StartResult::Started
            }
        };
        self.machine(|machine| machine.started(effect, result));
    }

    fn begin_task(&mut self, effect: &Start, at_hand: &AtHand) {
        let id = self.in_flight(&at_hand.object.status.recorded);
        self.note_begin(id, effect.attempt);
        self.process.task = id.map(|work| Task {
            id: effect.task,
            work,
        });
    }

    fn add_finalizer(
        &mut self,
        effect: AddFinalizer,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
    ) {
        let add = |object: &mut Object| object.finalizer = true;
        let now = self.now;
        match self.write(Write::Finalizer, outcome, at_hand, add) {
            Ok(stored) => self.machine(|machine| machine.finalizer_added(effect, &stored, now)),
            Err(error) => self.failed(effect, error),
        }
    }

    fn drop_finalizer(
        &mut self,
        effect: DropFinalizer,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
    ) {
        let (was_held, abandoned) = (self.stored.finalizer, effect.abandoned);
        let drop = |object: &mut Object| object.finalizer = false;
        let before = *at_hand;
        let written = self.write(Write::Finalizer, outcome, at_hand, drop);
        if was_held && !self.stored.finalizer {
            self.check_release(&before, abandoned);
            if !self.others_hold {
                self.presence = Presence::Gone;
            }
        }
        // The answer of a released object is not looked at.
        *at_hand = before;
        self.process.truth.has_let_go = written.is_ok();
        match written {
            Ok(_) => self.machine(|machine| machine.finalizer_dropped(effect)),
            Err(error) => self.failed(effect, error),
        }
    }

    /// Sends a write, and takes the object in its answer to hand.
    fn write(
        &mut self,
        write: Write,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
        change: impl FnOnce(&mut Object),
    ) -> Result<Stored, WriteError> {
        self.request(write, outcome, &at_hand.object, change)?;
        self.process.truth.wrote = self.stored.version;
        at_hand.object = self.stored;
        at_hand.asked = self.process.asked;
        at_hand.shut = self.shut;
        at_hand.place_failed = false;
        Ok(Stored {
            version: Some(self.stored.version.of_machine()),
            object: Some(self.read(&self.stored)),
        })
    }

    fn failed(&mut self, write: impl Into<machine::Write>, error: WriteError) {
        let (setup, now) = (self.setup(), self.now);
        let _ = self.machine(|machine| machine.write_failed(write, error, &setup, now));
    }

    /// Renders the status of a draft, and compares it with the stored one.
    fn render(&mut self, effect: Render, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let status = self.rendered(&effect.draft, at_hand);
        let stored = &at_hand.object.status;
        let but_for_side = Status {
            extra: stored.extra,
            ..status
        };
        let diff = if status == *stored {
            StatusDiff::None
        } else if but_for_side == *stored {
            StatusDiff::Side
        } else {
            StatusDiff::Main
        };
        at_hand.rendered = Some(status);
        let (setup, now) = (self.setup(), self.now);
        let extra = match outcome {
            EffectOutcome::NoExtra => {
                self.budget.sights -= 1;
                ExtraResult::TimedOut
            }
            _ if effect.asks_extra => ExtraResult::Answered,
            _ => ExtraResult::NotAsked,
        };
        self.machine(|machine| {
            machine.rendered(effect, diff, || hash(&status), extra, &setup, now)
        });
    }

    fn take_over(&mut self, effect: TakeOver, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let change = |object: &mut Object| object.status.is_inherited = false;
        let now = self.now;
        match self.write(Write::Status, outcome, at_hand, change) {
            Ok(stored) => self.machine(|machine| machine.taken_over(effect, &stored, now)),
            Err(error) => self.failed(effect, error),
        }
    }

    /// Writes the rendered status. Then, and only if it is stored, the draft takes effect.
    fn commit(&mut self, effect: Commit, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let draft = effect.draft;
        self.check_commit(&draft, at_hand);
        let Some(status) = at_hand.rendered.take() else {
            return self.breaks("writes a status that was not rendered");
        };
        self.check_report(&status, at_hand);
        let before = at_hand.object.version;
        if self.bug == Some(Bug::BegunBeforeRecorded) && draft.work == WorkChange::New {
            let id = self.in_flight(&status.recorded);
            self.note_begin(id, 1);
        }
        // An apply leaves what others own.
        let change = |object: &mut Object| {
            let has_leftovers = object.status.has_leftovers;
            object.status = Status {
                has_leftovers,
                ..status
            };
        };
        let stored = match self.write(Write::Status, outcome, at_hand, change) {
            Ok(stored) => stored,
            Err(error) => {
                self.failed(effect, error);
                if self.bug == Some(Bug::WorkChangedAfterFailedWrite) {
                    let (setup, now) = (self.setup(), self.now);
                    self.machine(|machine| machine.change_work_anyway(&draft, &setup, now));
                }
                return;
            }
        };
        self.tally.patches += 1;
        self.note_newest_work(at_hand);
        let is_vain = at_hand.object.version == before;
        self.process.truth.vain = is_vain.then_some(before);
        let leftovers = at_hand.object.status.has_leftovers;
        if at_hand.object.status.recorded == draft.record {
            self.took_effect(&draft, at_hand);
        }
        let (setup, now) = (self.setup(), self.now);
        let hash = || hash(&status);
        let _ = self
            .machine(|machine| machine.committed(effect, &stored, leftovers, hash, &setup, now));
    }

    /// Records what the handler asks for. Then, and only if it is stored, the handler goes on.
    fn record(&mut self, effect: Record, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let before = at_hand.object.status.records;
        let change = |object: &mut Object| object.status.records += 1;
        let written = self.write(Write::Status, outcome, at_hand, change);
        let is_stored = at_hand.object.status.records > before;
        if is_stored || self.bug == Some(Bug::GoneOnBeforeRecorded) {
            self.process.is_recording = false;
            self.must(is_stored, "lets a handler go on with what is not recorded");
        }
        let now = self.now;
        match written {
            Ok(stored) if is_stored => {
                self.machine(|machine| machine.recorded(effect, &stored, now));
            }
            Ok(_) => self.failed(effect, WriteError::Failed),
            Err(error) => self.failed(effect, error),
        }
    }

    /// Notes that a draft takes effect: a result that it took is recorded.
    fn took_effect(&mut self, draft: &machine::Draft, at_hand: &mut AtHand) {
        if draft.work != WorkChange::Keep {
            at_hand.has_acted = true;
            self.process.truth.result = None;
        }
    }

    fn remove_leftovers(
        &mut self,
        effect: RemoveLeftovers,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
    ) {
        let change = |object: &mut Object| object.status.has_leftovers = false;
        let stored = self.write(Write::Status, outcome, at_hand, change).ok();
        let now = self.now;
        self.machine(|machine| machine.leftovers_removed(effect, stored.as_ref(), now));
    }

    fn show_failure(&mut self, effect: ShowFailure, outcome: EffectOutcome, at_hand: &mut AtHand) {
        let status = standing_still(at_hand, About::FailedWrite);
        let is_news = status != at_hand.object.status;
        let change = |object: &mut Object| object.status = status;
        let written = is_news.then(|| self.write(Write::Status, outcome, at_hand, change));
        let result = match &written {
            None => ShowResult::Unchanged,
            Some(Ok(stored)) => ShowResult::Written(stored),
            Some(Err(_)) => ShowResult::Failed,
        };
        let now = self.now;
        self.machine(|machine| machine.failure_shown(effect, result, now));
    }

    fn show_unreadable(
        &mut self,
        effect: ShowUnreadable,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
    ) {
        let status = standing_still(at_hand, About::Garbled);
        let change = |object: &mut Object| object.status = status;
        match self.write(Write::Status, outcome, at_hand, change) {
            Ok(Stored { version, .. }) => {
                self.machine(|machine| machine.unreadable_shown(effect, version));
            }
            Err(error) => self.failed(effect, error),
        }
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
        let answer = match how.map(|(_, how)| how) {
            None => Ok(next()),
            Some(StepAnswer::Short) => Ok(next().condition(ConditionStatus::False, "Short", "")),
            Some(StepAnswer::Again) => Ok(next().requeue_after(soon)),
            Some(StepAnswer::Waits) => Ok(Step::wait("Waits", soon)),
            Some(StepAnswer::GivesUp) => Ok(Step::give_up()),
            Some(StepAnswer::Fails) => Err(okt_core::pass::Failed::retry("Fails", "")),
        };
        run.take(answer);
        number += 1;
    }
    run
}

/// Returns a status that reports why the object does not move, with everything else as before.
fn standing_still(at_hand: &AtHand, about: About) -> Status {
    let Object { spec, status, .. } = at_hand.object;
    Status {
        generation: spec.generation,
        report: Report {
            about,
            is_ready: false,
            is_stalled: true,
            is_paused: spec.paused,
            conditions: 0,
            ..status.report
        },
        ..status
    }
}

fn hash(status: &Status) -> u64 {
    let mut hasher = DefaultHasher::new();
    status.hash(&mut hasher);
    hasher.finish()
}
