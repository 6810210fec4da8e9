//! This file performs the effects that write the object, and remembers their results.

use std::hash::{DefaultHasher, Hash, Hasher};

use okt_core::facts::Observed;
use okt_core::reconcile::{Draft, News, WorkChange};

use crate::event::{EffectOutcome, Failure, Write};
use crate::memory::{FailedWrite, Phase, Piece};
use crate::object::{About, Object, Report, Status};
use crate::operator::Round;
use crate::plant::Bug;
use crate::world::{Presence, World};

impl World {
    pub(crate) fn add_finalizer(&mut self, outcome: EffectOutcome, round: &mut Round) {
        let add = |object: &mut Object| object.finalizer = true;
        let written = self.request(Write::Finalizer, outcome, &round.object, add);
        self.wrote(written, round);
        if written.is_ok() {
            self.operator.memory.seen.reported = false;
        }
    }

    pub(crate) fn drop_finalizer(
        &mut self,
        abandoned: bool,
        outcome: EffectOutcome,
        round: &mut Round,
    ) {
        let was_held = self.stored.finalizer;
        let drop = |object: &mut Object| object.finalizer = false;
        let written = self.request(Write::Finalizer, outcome, &round.object, drop);
        if was_held && !self.stored.finalizer {
            self.check_release(round, abandoned);
            if !self.others_hold {
                self.presence = Presence::Gone;
            }
        }
        self.operator.has_let_go = written.is_ok();
        self.wrote(written, round);
    }

    /// Remembers the result of a write.
    fn wrote(&mut self, written: Result<(), Failure>, round: &mut Round) {
        let memory = &mut self.operator.memory;
        match written {
            Ok(()) => {
                memory.failed = None;
                memory.seen.version = self.stored.version;
                round.object = self.stored;
            }
            Err(_) if self.bug == Some(Bug::FailedWriteForgotten) => {}
            Err(failure) => {
                memory.failed = Some(FailedWrite::of(failure, &round.object, memory.failed));
            }
        }
    }

    /// Renders the status of a draft, and compares it with the stored one.
    pub(crate) fn draft(&mut self, draft: Draft, round: &mut Round) {
        let status = self.drafted(&draft, round);
        let stored = &round.object.status;
        let but_for_side = Status {
            extra: stored.extra,
            ..status
        };
        let news = if status == *stored {
            News::None
        } else if self.operator.memory.vain == Some((round.object.version, hash(&status))) {
            News::Vain
        } else if but_for_side == *stored {
            News::Side
        } else {
            News::Main
        };
        round.draft = Some((draft, news));
        if matches!(news, News::None | News::Vain) {
            self.is_reported(round);
        }
    }

    /// Remembers that the drafted status is the stored one.
    fn is_reported(&mut self, round: &Round) {
        if self.case.life.is_none() {
            let memory = &mut self.operator.memory;
            memory.seen.version = round.object.version;
            memory.seen.reported = true;
            memory.pass.is_unwritten = false;
        }
    }

    /// Writes the drafted status. Then, and only if it is stored, changes the work as the draft says.
    pub(crate) fn commit(
        &mut self,
        draft: &Draft,
        patch: bool,
        outcome: EffectOutcome,
        round: &mut Round,
    ) {
        self.check_commit(draft, round);
        let drafted = round.draft.take();
        let is_side = drafted.is_some_and(|(_, news)| news == News::Side);
        if patch && !self.writes_status(draft, is_side, outcome, round) {
            return;
        }
        round.written = patch.then_some(*draft);
        if draft.work != WorkChange::Keep {
            round.has_acted = true;
            if self.bug != Some(Bug::ObservationNotSpent) {
                round.observed.get_or_insert(Observed::Unobserved);
                round.is_observation_spent = true;
            }
        }
        if draft.is_move() {
            round.standing = None;
            round.cleared = None;
        }
        self.change(draft);
    }

    /// Writes the drafted status. Returns whether its record is stored, as far as the operator knows.
    fn writes_status(
        &mut self,
        draft: &Draft,
        is_side: bool,
        outcome: EffectOutcome,
        round: &mut Round,
    ) -> bool {
        let status = self.drafted(draft, round);
        let before = round.object.version;
        self.check_report(&status, round);
        if self.bug == Some(Bug::BegunBeforeRecorded) && draft.work == WorkChange::New {
            let mut ahead = *round;
            ahead.object.status = status;
            self.start(EffectOutcome::Works, &mut ahead);
        }
        let change = |object: &mut Object| object.status = status;
        let written = self.request(Write::Status, outcome, &round.object, change);
        self.wrote(written, round);
        if written.is_err() {
            if self.bug == Some(Bug::WorkChangedAfterFailedWrite) {
                self.change(draft);
            }
            return false;
        }
        self.tally.patches += 1;
        let is_vain = round.object.version == before;
        let memory = &mut self.operator.memory;
        memory.vain = is_vain.then(|| (before, hash(&status)));
        memory.seen.side |= is_side;
        self.is_reported(round);
        self.note_newest_work(round);
        round.object.status.recorded == draft.record
    }

    /// Changes the work as the draft says.
    fn change(&mut self, draft: &Draft) {
        let in_flight = self.in_flight(&draft.record);
        let memory = &mut self.operator.memory;
        match (draft.work, &mut memory.piece) {
            (WorkChange::Keep, _) | (WorkChange::Retry | WorkChange::Wait, None) => {}
            (WorkChange::New, _) => {
                memory.cancel();
                memory.piece = in_flight.map(|id| Piece {
                    id,
                    attempt: 1,
                    started_under: 0,
                    phase: Phase::New,
                });
            }
            (WorkChange::None, _) => memory.cancel(),
            (WorkChange::Retry, Some(piece)) => {
                piece.attempt += 1;
                piece.phase = Phase::Waiting { asked: false };
            }
            (WorkChange::Wait, Some(piece)) => piece.phase = Phase::Waiting { asked: true },
        }
    }

    pub(crate) fn show_failure(&mut self, outcome: EffectOutcome, round: &mut Round) {
        if let Some(failed) = &mut self.operator.memory.failed {
            failed.is_shown = true;
        }
        let status = standing_still(round, About::FailedWrite);
        if status == round.object.status {
            return;
        }
        let change = |object: &mut Object| object.status = status;
        let shown = self.request(Write::Status, outcome, &round.object, change);
        if shown.is_ok() {
            self.operator.memory.seen.version = self.stored.version;
            round.object = self.stored;
        }
    }

    pub(crate) fn show_unreadable(&mut self, outcome: EffectOutcome, round: &mut Round) {
        let status = standing_still(round, About::Garbled);
        let change = |object: &mut Object| object.status = status;
        let written = self.request(Write::Status, outcome, &round.object, change);
        self.wrote(written, round);
    }
}

/// Returns a status that reports why the object does not move, with everything else as before.
fn standing_still(round: &Round, about: About) -> Status {
    let Object { spec, status, .. } = round.object;
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
