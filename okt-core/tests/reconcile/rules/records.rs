//! The rules about the status that is written.

use okt_core::Mark;
use okt_core::decide::{By, Go, Verdict, Why};
use okt_core::facts::Task;
use okt_core::record::{Record, Recorded};

use crate::machine::{Draft, WorkChange};
use crate::object::Status;
use crate::process::AtHand;
use crate::translate::work_of;
use crate::world::{OwnedObject, RecordedWork, World};

impl World {
    /// Checks a commit before it is performed.
    pub(crate) fn check_commit(&mut self, draft: &Draft, at_hand: &AtHand) {
        let task = self.facts().life.task;
        if let (Task::Ended(result), true) = (task, draft.work != WorkChange::Keep) {
            let work = self.in_flight(&at_hand.object.status.recorded);
            let is_given = self.process.truth.result == work.map(|work| (work, result));
            self.must(
                is_given,
                "takes a result that the work on record did not give",
            );
        }
        if let Verdict::Go(go) = draft.step {
            self.tally.triggered += u32::from(go.by == By::Trigger);
            self.must(
                !(at_hand.has_acted && matches!(go.why, Why::Observed | Why::Adopted)),
                "follows an observation that is older than its own last act",
            );
            let gated = at_hand.object.status.recorded.at().zip(self.case.life);
            let gated = gated.is_some_and(|(from, life)| {
                let waits = life.waits_on(from.state, go.to).next().is_some();
                waits && !at_hand.object.spec.deleting
            });
            let is_chosen =
                go.why != Why::Observed && (go.by == By::Child || go.why == Why::OnChange);
            let is_limit = self.case.has_limit();
            self.must(
                !(gated && is_chosen && at_hand.shut && !is_limit),
                "goes through a gate that is shut",
            );
            self.check_place(go, gated && is_chosen, at_hand);
        }
        self.must(
            !matches!(draft.step, Verdict::Release),
            "records that the object is let go",
        );
    }

    /// Checks a move into a limit.
    fn check_place(&mut self, go: Go, is_chosen: bool, at_hand: &AtHand) {
        let gate = self.case.life.and_then(|life| life.gates.first());
        let enters = gate.is_some_and(|gate| gate.states.contains(&go.to))
            && !self.is_inside(&at_hand.object)
            && self.case.has_limit();
        let place = self.place.filter(|it| it.version == at_hand.object.version);
        // Somebody else has changed the object: then the write is refused.
        let is_refused = at_hand.object.version != self.stored.version;
        self.must(
            !(enters && is_chosen) || is_refused || place.is_some_and(|place| place.granted),
            "moves into a limit without a place by this version",
        );
        self.must(
            !enters || is_refused || place.is_some() || at_hand.place_failed,
            "moves into a limit without being registered",
        );
    }

    /// Checks the conditions that are about to be written.
    pub(crate) fn check_report(&mut self, status: &Status, at_hand: &AtHand) {
        let before = &at_hand.object.status;
        let is_news = !before.report.is_ready || before.recorded != status.recorded;
        let is_claimed = status.report.is_ready && is_news && self.declares_owned(&status.recorded);
        self.must(
            !is_claimed || self.cluster.owned == OwnedObject::Ready,
            "reports Ready before what the state declares is ready",
        );
    }

    /// Notes the work on record as the newest that this process knows.
    pub(crate) fn note_newest_work(&mut self, at_hand: &AtHand) {
        if let Some(id) = at_hand.object.status.recorded.at().and_then(work_of) {
            self.process.truth.newest_work = id;
        }
    }

    /// Checks and notes the record that was just stored in place of another one.
    pub(crate) fn note_record(&mut self, before: &Recorded) {
        let Recorded::At(record) = self.stored.status.recorded else {
            return;
        };
        self.check_edge(before, &record);
        let position = (record.state, record.transition);
        if !self.history.positions.contains(&position) {
            self.history.positions.push(position);
        }
        let in_flight = self.in_flight(&Recorded::At(record));
        let Some(id) = work_of(&record) else {
            return;
        };
        let works = &mut self.history.works;
        match works.iter_mut().find(|work| work.id == id) {
            // Work that is started once more is known to have ended before.
            Some(known) if in_flight.is_none() => {
                known.begun_by = 0;
                self.process.truth.ended_last = None;
            }
            Some(known) => {
                let is_same = (known.state, known.revision) == (record.state, record.revision);
                self.must(is_same, "records one id for two pieces of work");
            }
            None => works.push(RecordedWork {
                id,
                state: record.state,
                revision: record.revision,
                begun_by: 0,
            }),
        }
    }

    fn check_edge(&mut self, before: &Recorded, to: &Record) {
        let Some(life) = self.case.life else {
            return;
        };
        let entry = life.entry();
        let Recorded::At(from) = before else {
            return self.must(
                entry == Some(to.state) || to.jumped,
                "begins in a state that is not the entry",
            );
        };
        if from.state == to.state {
            return self.must(
                from.transition == to.transition,
                "moves from a state to itself",
            );
        }
        let is_edge = life.get(from.state).is_some_and(|state| {
            (state.is(Mark::Leaf) && entry == Some(to.state))
                || state.targets().any(|target| target == to.state)
        });
        self.must(
            is_edge || to.jumps > from.jumps,
            "moves along no declared edge",
        );
        self.must(
            to.transition == from.transition + 1,
            "leaves out a transition",
        );
    }
}
