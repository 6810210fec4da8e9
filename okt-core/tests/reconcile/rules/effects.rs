//! The rules about effects.

use okt_core::Mark;
use okt_core::facts::ActionResult;
use okt_core::pass::PassRun;
use okt_core::record::{ActionRecord, Phase as Recording, Recorded};

use crate::machine::{Apply, Effect, Readable, RunEnd, Start, TaskId, WorkId};
use crate::process::{AtHand, Run};
use crate::translate::work_of;
use crate::world::{OwnedObject, PutObject, World};

impl World {
    /// Checks an effect before it is performed.
    pub(crate) fn check_effect(&mut self, effect: &Effect, at_hand: &AtHand) {
        self.check_time(at_hand);
        self.check_may_act(effect, at_hand);
        match effect {
            Effect::RunPass(run) => self.check_run(run.leaving, at_hand),
            Effect::Apply(apply) => self.check_apply(apply, at_hand),
            Effect::Start(start) => self.check_start(start, at_hand),
            Effect::Record(_) => {
                let in_flight = self.in_flight(&at_hand.object.status.recorded);
                let runs = self.process.task.map(|task| task.work) == in_flight;
                self.must(
                    runs && self.process.is_recording,
                    "records something for a handler that does not wait for it",
                );
            }
            Effect::AddFinalizer(_)
            | Effect::DropFinalizer(_)
            | Effect::Observe(_)
            | Effect::Clear(_)
            | Effect::Render(_)
            | Effect::TakeOver(_)
            | Effect::Commit(_)
            | Effect::ChangeWork(_)
            | Effect::RemoveLeftovers(_)
            | Effect::ShowFailure(_)
            | Effect::ShowUnreadable(_)
            | Effect::ReadRequest(_)
            | Effect::Deliver(_)
            | Effect::TakePlace(_)
            | Effect::Cancel(_) => {}
        }
    }

    /// Checks that the machine knows how long the object has been in its state.
    pub(crate) fn check_time(&mut self, at_hand: &AtHand) {
        let in_state = self.in_state(&at_hand.object.status.recorded);
        let is_known = self.facts().life.in_state >= in_state;
        self.must(is_known, "forgets since when the object is in its state");
    }

    /// Checks whether the operator may act upon the object at all.
    fn check_may_act(&mut self, effect: &Effect, at_hand: &AtHand) {
        if matches!(effect, Effect::Cancel(_)) {
            return;
        }
        let (leads, truth) = (self.process.leads, self.process.truth);
        let object = self.read(&at_hand.object);
        self.must(leads, "acts without being the leader");
        self.must(
            at_hand.object.version >= truth.wrote,
            "acts upon an object that is older than the operator's last write",
        );
        self.must(!truth.has_let_go, "acts upon an object that it has let go");
        let is_for_any_object = match effect {
            Effect::DropFinalizer(drop) => drop.abandoned,
            Effect::ShowFailure(_) | Effect::TakeOver(_) => true,
            _ => false,
        };
        self.must(
            !object.newer || is_for_any_object,
            "acts upon an object of a newer operator",
        );
        let is_for_unreadable = match effect {
            Effect::DropFinalizer(drop) => !drop.abandoned,
            Effect::ShowUnreadable(_) => true,
            _ => false,
        };
        self.must(
            object.readable == Readable::Yes || is_for_any_object || is_for_unreadable,
            "acts upon an object that does not decode",
        );
    }

    /// Checks whether anything may be started.
    fn check_may_begin(&mut self, at_hand: &AtHand) {
        let draining = self.process.draining;
        self.must(!draining, "begins something while it stops");
        self.must(
            !at_hand.object.is_paused(),
            "begins something while the object is paused",
        );
    }

    fn check_run(&mut self, leaving: bool, at_hand: &AtHand) {
        self.check_may_begin(at_hand);
        let object = &at_hand.object;
        self.must(
            object.spec.deleting == leaving,
            "runs the wrong way through the pass",
        );
        let is_recorded = object.status.recorded != Recorded::Nothing;
        self.must(
            self.case.life.is_none() || is_recorded || leaving,
            "runs the pass before the position is recorded",
        );
    }

    fn check_apply(&mut self, apply: &Apply, at_hand: &AtHand) {
        let (creates, prunes) = (apply.creates, apply.prunes);
        self.check_may_begin(at_hand);
        let object = &at_hand.object;
        let record = object.status.recorded.at();
        let is_recorded = record.is_some_and(|record| {
            let position = (record.state, record.transition);
            self.history.positions.contains(&position)
        });
        self.must(
            is_recorded,
            "applies resources before the position is recorded",
        );
        self.must(
            !(creates && object.spec.deleting),
            "creates resources of an object that is being deleted",
        );
        // Only the work of the state can show whether the application is where it was observed.
        let is_doubtful = record.is_some_and(|record| {
            let is_done = |action: ActionRecord| action.phase == Recording::Done;
            record.jumped && record.action.is_some_and(|action| !is_done(action))
        });
        self.must(
            !(prunes && is_doubtful),
            "prunes after a jump before the work has succeeded",
        );
        self.must(
            !(prunes && object.spec.deleting && self.case.pass.is_some()),
            "prunes what the pass has put while the object is still there",
        );
        self.must(
            object.spec.deleting || self.is_pass_done(at_hand),
            "applies resources before the pass is done",
        );
    }

    fn is_pass_done(&self, at_hand: &AtHand) -> bool {
        let is_done =
            |run: Run| matches!(run.ran.end, RunEnd::Complete | RunEnd::Short) && !run.ran.leaving;
        self.case.pass.is_none() || at_hand.run.is_some_and(is_done)
    }

    fn check_start(&mut self, start: &Start, at_hand: &AtHand) {
        self.check_may_begin(at_hand);
        let (number, truth) = (self.process.number, self.process.truth);
        let runs = self.process.is_ending || self.process.task.is_some();
        let object = &at_hand.object;
        self.must(!runs, "begins a task while another one runs");
        if let Some(id) = object.status.recorded.at().and_then(work_of) {
            self.must(
                id >= truth.newest_work,
                "begins work that this process knows to be over",
            );
            let work = self.history.works.iter().find(|work| work.id == id);
            let others = work.map_or(0, |work| work.begun_by & !(1 << number));
            self.must(
                start.resumed || others == 0 || truth.begun_last.0 == id,
                "begins work as new that another process has begun",
            );
        }
        if object.spec.deleting {
            return;
        }
        let declares = self.declares_owned(&object.status.recorded);
        self.must(
            !declares || self.cluster.owned == OwnedObject::Ready,
            "begins work before what the state declares is ready",
        );
        self.must(
            self.is_pass_done(at_hand),
            "begins work before the pass is done",
        );
    }

    /// Notes that work is cancelled because the record has left it: its result no longer counts.
    pub(crate) fn note_cancel(&mut self, task: Option<TaskId>) {
        if let Some(task) = task {
            let runs = self.process.task.take_if(|running| running.id == task);
            self.process.is_ending |= runs.is_some();
            self.process.is_recording &= runs.is_none();
            self.must(runs.is_some(), "cancels a task that does not run");
            return;
        }
        let truth = &mut self.process.truth;
        truth.result = None;
        if self.process.machine.work().map(|(id, _)| id) == truth.ended_last {
            truth.ended_last = None;
        }
    }

    /// Notes that a task starts.
    pub(crate) fn note_begin(&mut self, id: Option<WorkId>, attempt: u32) {
        let own = 1 << self.process.number;
        let in_flight = self.in_flight(&self.stored.status.recorded);
        let work = id.and_then(|id| self.history.works.iter_mut().find(|work| work.id == id));
        let Some(work) = work else {
            return self.breaks("begins work that is not recorded");
        };
        // The first list of a process can be old: then work is resumed although its end is recorded.
        if id == in_flight {
            work.begun_by |= own;
        }
        let id = work.id;
        let has_result = self.process.truth.ended_last == Some(id);
        let (last, before) = std::mem::replace(&mut self.process.truth.begun_last, (id, attempt));
        self.must(
            last != id || attempt <= before + 1,
            "leaves out a number of an attempt",
        );
        self.must(
            !has_result,
            "begins work again because it has lost the result",
        );
    }

    /// Checks that the object may be let go, when the finalizer was removed.
    pub(crate) fn check_release(&mut self, at_hand: &AtHand, abandoned: bool) {
        let stored = self.stored;
        self.must(
            stored.spec.deleting,
            "lets an object go that is not being deleted",
        );
        if abandoned {
            return self.must(
                stored.spec.abandoned,
                "abandons an object that the user did not abandon",
            );
        }
        if at_hand.object.spec.garbled {
            return self.must(
                stored.status.recorded == Recorded::Nothing,
                "lets an object go that does not decode and was begun",
            );
        }
        if let (Some(life), Recorded::At(record)) = (self.case.life, stored.status.recorded) {
            let ended_well = self.process.truth.result.is_some_and(|(id, result)| {
                let is_well = matches!(result, ActionResult::Stay | ActionResult::Next);
                is_well && Some(id) == work_of(&record)
            });
            let state = life.get(record.state);
            let is_over = ended_well || !record.in_flight(life);
            self.must(
                state.is_some_and(|state| state.is(Mark::Leaf)) && is_over && !record.failed(life),
                "lets an object go before the work of its leaf has succeeded",
            );
        }
        self.must(
            self.cluster.put == PutObject::Absent,
            "lets an object go although something of it is left",
        );
        let has_way_out = self.case.pass.is_some_and(PassRun::finalizes);
        let is_done = |run: Run| run.ran.leaving && run.ran.end == RunEnd::Complete;
        self.must(
            !has_way_out || at_hand.run.is_some_and(is_done),
            "lets an object go before the pass's path for deletion is done",
        );
        // There are fewer faults than attempts before a deletion goes on.
        let undelivered = self.requests(&at_hand.object, &at_hand.asked).undelivered;
        self.must(
            undelivered == 0,
            "lets an object go before its requests have their outcomes",
        );
    }
}
