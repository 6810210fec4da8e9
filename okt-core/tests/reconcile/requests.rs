//! The requests for the object: what their authors do, and what the shell reads and writes.

use okt_core::record::{Record, Recorded};
use okt_core::request::{RequestOutcome, RequestRecord, WaitingRequest};
use okt_core::{Mark, StateId};

use crate::event::EffectOutcome;
use crate::machine::{Deliver, DeliverResult, KnownRequests, ReadRequest, ReadRequestResult};
use crate::object::Object;
use crate::plant::Bug;
use crate::process::AtHand;
use crate::world::{Presence, World};

/// The most requests that there can be.
pub(crate) const ASKED: usize = 3;

/// A request, as the API server stores it or as a cache shows it. Earlier ones come first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) is_made: bool,
    pub(crate) is_gone: bool,
    /// The outcome in its status.
    pub(crate) outcome: Option<RequestOutcome>,
    /// The object's transition when an outcome was written first.
    pub(crate) seen: Option<u64>,
}

impl Asked {
    /// Returns whether it exists and its author waits for its outcome.
    pub(crate) fn is_open(&self) -> bool {
        self.is_made && !self.is_gone && !self.outcome.is_some_and(RequestOutcome::is_final)
    }
}

fn token(index: usize) -> u64 {
    u64::try_from(index).expect("few") + 1
}

fn index(token: u64) -> usize {
    usize::try_from(token).expect("few") - 1
}

impl World {
    /// Returns the state that serves requests.
    fn serving(&self) -> Option<StateId> {
        let life = self.case.life?;
        let mut states = life.iter();
        states.find(|(_, it)| it.is(Mark::Args)).map(|(id, _)| id)
    }

    /// Returns the outcome of a request so far.
    fn due(object: &Object, index: usize, known: &[Asked; ASKED]) -> RequestOutcome {
        let known = known[index];
        let record = object.status.recorded.at();
        let own = record.and_then(|it| it.request);
        match own.filter(|own| own.token == token(index)) {
            Some(own) => own.outcome,
            None if object.spec.deleting => RequestOutcome::Overtaken,
            None if known.outcome == Some(RequestOutcome::Running) => RequestOutcome::NotReplayed,
            None if record.is_none() && known.seen != Some(0) => RequestOutcome::NotReplayed,
            None => RequestOutcome::Queued,
        }
    }

    /// Returns the requests as the machine reads them; `known` are those that are known.
    pub(crate) fn requests(&self, object: &Object, known: &[Asked; ASKED]) -> KnownRequests {
        let Some((serving, life)) = self.serving().zip(self.case.life) else {
            return KnownRequests::default();
        };
        let record = object.status.recorded.at();
        let own = record.and_then(|it| it.request);
        let open = || (0..ASKED).filter(|it| known[*it].is_open());
        let waiting = open().filter(|it| own.is_none_or(|own| own.token != token(*it)));
        let skipped =
            usize::from(self.bug == Some(Bug::RequestSkipped) && waiting.clone().count() > 1);
        let waiting = waiting.skip(skipped).map(|it| WaitingRequest {
            state: serving,
            token: token(it),
            seen: known[it].seen,
        });
        let served = record.and_then(Record::served);
        KnownRequests {
            next: record
                .and_then(|record| record.next_request(life, self.gates(object).shut, waiting)),
            is_missing: served.is_some_and(|served| {
                let known = known[index(served.token)];
                !known.is_made || known.is_gone
            }),
            undelivered: open()
                .filter(|it| known[*it].outcome != Some(Self::due(object, *it, known)))
                .count(),
            expires: None,
        }
    }

    /// Reads a request from the API server, after the one on record had its outcome written.
    pub(crate) fn read_request(
        &mut self,
        effect: ReadRequest,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
    ) {
        self.tally.requests += 1;
        let asked = index(effect.token);
        self.check_turn(asked, at_hand);
        let own = at_hand
            .object
            .status
            .recorded
            .at()
            .and_then(|it| it.request);
        let own = own.filter(|own| own.token != effect.token);
        let result = if outcome == EffectOutcome::NotRead {
            self.budget.faults -= 1;
            ReadRequestResult::Failed
        } else {
            if let Some(own) = own
                && self.bug != Some(Bug::ReplacedUndelivered)
            {
                self.delivers(index(own.token), own.outcome, &at_hand.object);
            }
            self.process.asked[asked] = self.asked[asked];
            let is_served = own.is_none();
            match self.asked[asked] {
                it if it.is_open() || (is_served && it.is_made && !it.is_gone) => {
                    ReadRequestResult::There
                }
                _ => ReadRequestResult::Gone,
            }
        };
        at_hand.asked = self.process.asked;
        let known = self.requests(&at_hand.object, &self.process.asked);
        let (setup, now) = (self.setup(), self.now);
        self.machine(|machine| machine.request_read(effect, result, known, &setup, now));
    }

    /// Checks that no earlier request could begin instead of this one.
    fn check_turn(&mut self, asked: usize, at_hand: &AtHand) {
        let Some((record, life)) = at_hand.object.status.recorded.at().zip(self.case.life) else {
            return;
        };
        let holds = life.get(record.state).is_some_and(|it| it.is(Mark::Hold));
        let may_begin = |it: usize| {
            let known = at_hand.asked[it];
            let is_old = known.seen != Some(record.transition);
            known.is_open() && !self.history.begun[it] && !(holds && is_old)
        };
        let is_new = !self.history.begun[asked];
        let is_passed_over = is_new && (0..asked).any(may_begin);
        self.must(!is_passed_over, "begins a request before an earlier one");
    }

    /// Writes outcomes into the known requests.
    pub(crate) fn deliver_outcomes(
        &mut self,
        effect: Deliver,
        outcome: EffectOutcome,
        at_hand: &mut AtHand,
    ) {
        self.tally.requests += 1;
        let fails = matches!(outcome, EffectOutcome::NotRead | EffectOutcome::AnswerLost);
        self.budget.faults -= u8::from(fails);
        let known = self.process.asked;
        // An outcome that no record has is judged by the newest version only.
        let own = at_hand
            .object
            .status
            .recorded
            .at()
            .and_then(|it| it.request);
        let is_own = |asked: usize| own.is_some_and(|own| own.token == token(asked));
        let mut open = (0..ASKED).filter(|it| known[*it].is_open() && !is_own(*it));
        let is_judged = open.any(|it| Self::due(&at_hand.object, it, &known).is_final());
        let is_old = is_judged && at_hand.object.version != self.stored.version;
        if outcome != EffectOutcome::NotRead && !is_old {
            let all = &known;
            for (asked, known) in all.iter().enumerate() {
                let due = Self::due(&at_hand.object, asked, all);
                if known.is_open() && known.outcome != Some(due) {
                    self.delivers(asked, due, &at_hand.object);
                    if !fails {
                        self.process.asked[asked] = self.asked[asked];
                    }
                }
            }
        }
        let result = if is_old && !fails {
            DeliverResult::Outdated(Some(self.stored.version.of_machine()))
        } else if fails {
            DeliverResult::Failed
        } else {
            DeliverResult::Delivered
        };
        at_hand.asked = self.process.asked;
        let known = self.requests(&at_hand.object, &self.process.asked);
        let (setup, now) = (self.setup(), self.now);
        self.machine(|machine| machine.delivered(effect, result, known, &setup, now));
    }

    /// Writes an outcome into a request that has none.
    fn delivers(&mut self, asked: usize, due: RequestOutcome, object: &Object) {
        if !self.asked[asked].is_open() {
            return;
        }
        let own = self.stored.status.recorded.at().and_then(|it| it.request);
        let recorded = own
            .filter(|own| own.token == token(asked))
            .map(|it| it.outcome);
        let has_begun = self.history.begun[asked];
        self.must(
            !(has_begun && due.is_final())
                || recorded == Some(due)
                || self.presence != Presence::Stored,
            "writes another outcome into a request than is recorded",
        );
        let transition = object.status.recorded.at().map_or(0, |it| it.transition);
        let request = &mut self.asked[asked];
        request.outcome = Some(due);
        request.seen.get_or_insert(transition);
    }

    /// Checks and notes the request that a record has in place of the one before.
    pub(crate) fn note_request(&mut self, before: &Recorded) {
        let request = |recorded: &Recorded| recorded.at().and_then(|it| it.request);
        let (before, after) = (request(before), request(&self.stored.status.recorded));
        let is_same = |it: &RequestRecord| after.is_some_and(|after| after.token == it.token);
        if let Some(before) = before.filter(|it| !is_same(it)) {
            let left = self.asked[index(before.token)];
            self.must(
                !left.is_open(),
                "replaces the record of a request whose outcome is not written into it",
            );
        }
        let Some(after) = after else { return };
        let asked = index(after.token);
        if before.is_none_or(|before| before.token != after.token) {
            self.must(!self.history.begun[asked], "begins a request twice");
            self.history.begun[asked] = true;
        }
        self.must(
            after.outcome != RequestOutcome::Aborted || self.asked[asked].is_gone,
            "aborts a request that nobody deleted",
        );
    }

    /// Returns what a request waits for in vain, if the object is at rest.
    pub(crate) fn request_waits(&self) -> Option<&'static str> {
        let requests = self.requests(&self.stored, &self.asked);
        if self.process.asked != self.asked {
            Some("a request has not arrived")
        } else if requests.undelivered > 0 {
            Some("the outcome of a request is not written into it")
        } else {
            requests.next.map(|_| "a request could begin")
        }
    }
}
