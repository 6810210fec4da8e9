//! This file checks the rules about effects.

use okt_core::Mark;
use okt_core::facts::ActionResult;
use okt_core::pass::PassRun;
use okt_core::reconcile::{Effect, Readable, RunEnd};
use okt_core::record::{ActionRecord, Phase as Recording, Recorded};

use crate::memory::{Phase, WorkId};
use crate::operator::{Round, Run};
use crate::world::{OwnedObject, PutObject, World};

impl World {
    /// Checks an effect before it is performed.
    pub(crate) fn check_effect(&mut self, effect: Effect, round: &Round) {
        self.check_may_act(effect, round);
        match effect {
            Effect::RunPass { leaving } => self.check_run(leaving, round),
            Effect::Apply { creates, prunes } => self.check_apply(creates, prunes, round),
            Effect::Start { resumed } => self.check_start(resumed, round),
            Effect::AddFinalizer
            | Effect::DropFinalizer { .. }
            | Effect::Observe
            | Effect::Clear
            | Effect::Draft(_)
            | Effect::Commit { .. }
            | Effect::ShowFailure
            | Effect::ShowUnreadable
            | Effect::Cancel => {}
        }
    }

    /// Checks whether the operator may act upon the object at all.
    fn check_may_act(&mut self, effect: Effect, round: &Round) {
        let operator = self.operator;
        let asked = self.facts(round).asked;
        self.must(operator.leads, "acts without being the leader");
        self.must(
            round.object.version >= operator.memory.seen.version,
            "acts upon an object that is older than the operator's last write",
        );
        if effect == Effect::Cancel {
            return;
        }
        self.must(
            !operator.has_let_go,
            "acts upon an object that it has let go",
        );
        let is_for_any_object = matches!(
            effect,
            Effect::DropFinalizer { abandoned: true } | Effect::ShowFailure
        );
        self.must(
            !asked.newer || is_for_any_object,
            "acts upon an object of a newer operator",
        );
        let is_for_unreadable = matches!(
            effect,
            Effect::DropFinalizer { abandoned: false } | Effect::ShowUnreadable
        );
        self.must(
            asked.readable == Readable::Yes || is_for_any_object || is_for_unreadable,
            "acts upon an object that does not decode",
        );
    }

    /// Checks whether anything may be started.
    fn check_may_begin(&mut self, round: &Round) {
        let draining = self.operator.draining;
        self.must(!draining, "begins something while it stops");
        self.must(
            !round.object.is_paused(),
            "begins something while the object is paused",
        );
    }

    fn check_run(&mut self, leaving: bool, round: &Round) {
        self.check_may_begin(round);
        let object = &round.object;
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

    fn check_apply(&mut self, creates: bool, prunes: bool, round: &Round) {
        self.check_may_begin(round);
        let object = &round.object;
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
            object.spec.deleting || self.is_pass_done(round),
            "applies resources before the pass is done",
        );
    }

    fn is_pass_done(&self, round: &Round) -> bool {
        let is_done =
            |run: Run| matches!(run.ran.end, RunEnd::Complete | RunEnd::Short) && !run.ran.leaving;
        self.case.pass.is_none() || round.run.is_some_and(is_done)
    }

    fn check_start(&mut self, resumed: bool, round: &Round) {
        self.check_may_begin(round);
        let operator = self.operator;
        let object = &round.object;
        self.must(
            !operator.memory.is_ending && !operator.memory.runs(),
            "begins a task while another one runs",
        );
        if let Some(id) = object.status.recorded.at().and_then(WorkId::of) {
            self.must(
                id >= operator.newest_work,
                "begins work that this process knows to be over",
            );
            let work = self.history.works.iter().find(|work| work.id == id);
            let others = work.map_or(0, |work| work.begun_by & !(1 << operator.number));
            self.must(
                resumed || others == 0 || operator.begun_last.0 == id,
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
            self.is_pass_done(round),
            "begins work before the pass is done",
        );
    }

    /// Notes that work is cancelled because the record has left it: its result no longer counts.
    pub(crate) fn note_cancel(&mut self) {
        let cancelled = self.operator.memory.piece.map(|piece| piece.id);
        if cancelled == self.operator.ended_last {
            self.operator.ended_last = None;
        }
    }

    /// Notes that a task starts.
    pub(crate) fn note_begin(&mut self, id: Option<WorkId>, attempt: u32) {
        let own = 1 << self.operator.number;
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
        let has_result = self.operator.ended_last == Some(id);
        let (last, before) = std::mem::replace(&mut self.operator.begun_last, (id, attempt));
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
    pub(crate) fn check_release(&mut self, round: &Round, abandoned: bool) {
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
        if round.object.spec.garbled {
            return self.must(
                stored.status.recorded == Recorded::Nothing,
                "lets an object go that does not decode and was begun",
            );
        }
        if let (Some(life), Recorded::At(record)) = (self.case.life, stored.status.recorded) {
            let ended_well = self.operator.memory.piece.is_some_and(|piece| {
                let is_well = matches!(
                    piece.phase,
                    Phase::Ended(ActionResult::Stay | ActionResult::Next)
                );
                is_well && Some(piece.id) == WorkId::of(&record)
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
            !has_way_out || round.run.is_some_and(is_done),
            "lets an object go before the pass's path for deletion is done",
        );
    }
}
