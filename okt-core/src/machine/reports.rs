//! Takes the results of effects: each consumes the effect that the machine asked for.

use alloc::vec::Vec;

use super::Machine;
use super::draft::Draft;
use super::effect::{
    AddFinalizer, Apply, Cancel, ChangeWork, Clear, Commit, Deliver, DropFinalizer, Effect,
    Observe, ReadRequest, Record, RemoveLeftovers, Render, RunPass, ShowFailure, ShowUnreadable,
    Start, TakeOver, TakePlace, Write,
};
use super::facts::{PassResult, Setup, StatusDiff};
use super::object::{KnownRequests, Readable, Version};
use super::results::{
    ApplyResult, ClearResult, DeliverResult, ExtraResult, ObservationResult, PassReport,
    PlaceResult, ReadRequestResult, Retry, ShowResult, StartResult, Stored, WriteError,
};
use super::time::Time;
use crate::facts::Observed;
use crate::graph::StateId;

impl Machine {
    /// Takes the result of an observation, and the states that it named as events. Returns how the observation counts.
    ///
    /// If the work has ended while the application was called, the observation does not count: it may be older than the
    /// result of the work.
    pub fn observed(
        &mut self,
        effect: Observe,
        result: ObservationResult,
        events: Vec<StateId>,
        now: Time,
    ) -> Observed {
        self.done(effect);
        let findings = &mut self.findings;
        let observed = self.observation.take(result, findings, now);
        let (observed, events) = if self.work.has_ended() && !findings.had_ended {
            (Observed::Unobserved, Vec::new())
        } else {
            (observed, events)
        };
        findings.is_observation_spent = false;
        findings.is_unobservable = result == ObservationResult::Unobserved { again: false };
        (findings.observed, findings.events) = (Some(observed), events);
        observed
    }

    /// Takes the report of a run of the pass.
    pub fn pass_ran(&mut self, effect: RunPass, report: &PassReport, setup: &Setup<'_>, now: Time) {
        let (end, leaving) = (report.end, effect.leaving);
        self.done(effect);
        self.findings.pass = Some(PassResult { end, leaving });
        self.pass.take(report, leaving, setup, &self.findings, now);
    }

    /// Takes the result of applying the owned resources.
    pub fn applied(&mut self, effect: Apply, result: ApplyResult, now: Time) {
        self.done(effect);
        self.findings.is_applied = true;
        self.resources.applied(result, now);
    }

    /// Takes the result of deleting the owned resources. Returns whether the conditions are to report what is left.
    pub fn cleared(&mut self, effect: Clear, result: ClearResult, now: Time) -> bool {
        self.done(effect);
        self.findings.cleared = Some(result == ClearResult::Cleared);
        self.resources.cleared(result, now)
    }

    /// Takes the result of reading a request, and the requests as they are known now.
    pub fn request_read(
        &mut self,
        effect: ReadRequest,
        result: ReadRequestResult,
        requests: KnownRequests,
        setup: &Setup<'_>,
        now: Time,
    ) {
        let token = effect.token;
        self.done(effect);
        self.findings.object.requests = requests;
        let is_there = result == ReadRequestResult::There;
        self.findings.confirmed = is_there.then_some(token);
        self.requests
            .request_read(token, result, &self.findings.object, setup, now);
    }

    /// Takes the result of asking for a place in a limit.
    pub fn place_taken(&mut self, effect: TakePlace, result: PlaceResult) {
        let (gate, forced) = (effect.gate, effect.forced);
        self.done(effect);
        let findings = &mut self.findings;
        let tried = if forced {
            &mut findings.forced_limits
        } else {
            &mut findings.asked_limits
        };
        *tried = tried.with(gate);
        if result == PlaceResult::Taken {
            let gates = &mut findings.object.gates;
            gates.places = gates.places.with(gate);
            if !forced {
                gates.shut = gates.shut.without(gate);
                gates.has_unused_place = true;
            }
        }
    }

    /// Takes the result of writing outcomes into requests, and the requests as they are known now.
    pub fn delivered(
        &mut self,
        effect: Deliver,
        result: DeliverResult,
        requests: KnownRequests,
        setup: &Setup<'_>,
        now: Time,
    ) {
        self.done(effect);
        if let DeliverResult::Outdated(Some(newest)) = result {
            self.writes.last.version = Some(newest);
        }
        let before = self.findings.object.requests.undelivered;
        self.findings.object.requests = requests;
        self.requests
            .delivered(result, before, &self.findings.object, setup, now);
    }

    /// Takes a rendered status: how it differs from the stored one, and a hash of it. Returns how it counts.
    pub fn rendered(
        &mut self,
        effect: Render,
        diff: StatusDiff,
        hash: impl Fn() -> u64,
        extra: ExtraResult,
        setup: &Setup<'_>,
        now: Time,
    ) -> StatusDiff {
        let draft = effect.draft;
        self.done(effect);
        let object = &self.findings.object;
        self.observation.note_extra(extra, object.seed, now);
        let diff = self.writes.judge(diff, object.version, hash, now);
        self.findings.draft = Some((draft, diff));
        if matches!(diff, StatusDiff::None | StatusDiff::Vain) {
            self.note_reported(setup);
        }
        diff
    }

    /// Notes that the drafted status is stored.
    fn note_reported(&mut self, setup: &Setup<'_>) {
        if setup.graphs.life.is_none() {
            self.writes.last.version = self.findings.object.version;
            self.writes.last.reported = true;
            self.pass.is_unreported = false;
        }
    }

    /// Takes the answer to the write that adds the finalizer.
    pub fn finalizer_added(&mut self, effect: AddFinalizer, stored: &Stored, now: Time) {
        self.done(effect);
        self.writes.end_trouble();
        // The writer that dropped it may have changed the spec as well.
        self.writes.last.reported = false;
        self.became(stored, now);
    }

    /// Notes that the finalizer is removed.
    pub fn finalizer_dropped(&mut self, effect: DropFinalizer) {
        self.done(effect);
        self.writes.released = true;
    }

    /// Takes the answer to the write that removes the conditions of an earlier controller.
    pub fn taken_over(&mut self, effect: TakeOver, stored: &Stored, now: Time) {
        self.done(effect);
        self.became(stored, now);
        self.findings.object.inherits = false;
    }

    /// Takes the answer to the write of a status. `leftovers`: it has something that others left in the status, and that
    /// no apply removes. `hash` is that of the written status.
    ///
    /// # Errors
    ///
    /// If the answer has another record than was written. It counts as a failed write.
    pub fn committed(
        &mut self,
        effect: Commit,
        stored: &Stored,
        leftovers: bool,
        hash: impl Fn() -> u64,
        setup: &Setup<'_>,
        now: Time,
    ) -> Result<(), Retry> {
        let draft = effect.draft;
        self.done(effect);
        let before = self.findings.object.version;
        self.findings.draft = None;
        self.findings.leftovers =
            self.writes
                .committed(before, stored.version, leftovers, hash, now);
        self.became(stored, now);
        if self.findings.object.recorded != draft.record {
            return Err(self.failed(WriteError::Failed, setup, now));
        }
        self.take_effect(&draft, true, setup, now);
        self.note_reported(setup);
        Ok(())
    }

    /// Takes the answer to the write that records what a handler asks for.
    pub fn recorded(&mut self, effect: Record, stored: &Stored, now: Time) {
        self.done(effect);
        self.writes.end_trouble();
        self.work.recorded();
        self.became(stored, now);
    }

    /// Takes the result of an effect that changes the work without a write.
    pub fn work_changed(&mut self, effect: ChangeWork, setup: &Setup<'_>, now: Time) {
        let draft = effect.draft;
        self.done(effect);
        self.take_effect(&draft, false, setup, now);
    }

    /// Lets a draft take effect.
    pub(super) fn take_effect(
        &mut self,
        draft: &Draft,
        is_written: bool,
        setup: &Setup<'_>,
        now: Time,
    ) {
        self.findings.consume(draft, is_written);
        let object = &self.findings.object;
        self.resources.enter(object.transition());
        self.work.change(draft.work, object, setup.backoff, now);
    }

    /// Takes the answer to the write that removes what others left in the status; none if it failed. It is not tried again
    /// at once.
    pub fn leftovers_removed(
        &mut self,
        effect: RemoveLeftovers,
        stored: Option<&Stored>,
        now: Time,
    ) {
        self.done(effect);
        self.findings.leftovers = false;
        self.writes.leftovers_tried(stored.is_none(), now);
        if let Some(stored) = stored {
            self.became(stored, now);
        }
    }

    /// Takes the result of reporting a failure.
    pub fn failure_shown(&mut self, effect: ShowFailure, result: ShowResult<'_>, now: Time) {
        self.done(effect);
        let trouble = &mut self.writes.trouble;
        trouble.reports = trouble.reports.saturating_sub(1);
        match result {
            ShowResult::Unchanged => trouble.reported_at = self.findings.object.version,
            ShowResult::Written(stored) => {
                trouble.reported_at = stored.version;
                self.became(stored, now);
            }
            ShowResult::Failed => trouble.reports = 0,
        }
    }

    /// Notes that the conditions report that the object does not decode, at this version.
    pub fn unreadable_shown(&mut self, effect: ShowUnreadable, version: Option<Version>) {
        self.done(effect);
        let object = &self.findings.object;
        if let Readable::No { error, .. } = object.readable {
            self.writes.unreadable = Some((error, object.generation));
        }
        self.writes.end_trouble();
        self.writes.last.version = version;
    }

    /// Takes the failure of a write. The work stays as it is.
    ///
    /// Every write is retried: as long as the cache has the object, it may exist.
    pub fn write_failed(
        &mut self,
        write: impl Into<Write>,
        error: WriteError,
        setup: &Setup<'_>,
        now: Time,
    ) -> Retry {
        let write = write.into();
        let is_takeover = matches!(write, Write::TakeOver(_));
        self.done(write);
        let trouble = &mut self.writes.trouble;
        if is_takeover && let Some(retry) = trouble.not_shown(&self.findings.object, now) {
            return retry;
        }
        self.failed(error, setup, now)
    }

    fn failed(&mut self, error: WriteError, setup: &Setup<'_>, now: Time) -> Retry {
        self.findings.draft = None;
        self.findings.failed = Some(error);
        let object = &self.findings.object;
        self.writes.trouble.failed(error, object, setup, now)
    }

    /// Takes the result of starting work.
    pub fn started(&mut self, effect: Start, result: StartResult) {
        let (task, resumed) = (effect.task, effect.resumed);
        self.done(effect);
        if let StartResult::Outdated(Some(newest)) = result {
            // An object that is gone is not resumed; the watch soon reports that.
            self.writes.last.version = Some(newest);
        }
        let findings = &mut self.findings;
        let waits = self.work.started(task, resumed, result, &findings.object);
        findings.waits = waits.or(findings.waits);
    }

    /// Takes the result of cancelling work: it is forgotten, and its task, if it had one, has not ended.
    pub fn cancelled(&mut self, effect: Cancel) {
        let task = effect.task;
        self.done(effect);
        self.work.cancelled(task);
    }

    /// Notes that an effect was not performed, or that its result cannot be used: it is asked for again.
    pub fn not_done(&mut self, effect: Effect) {
        self.done(effect);
        self.findings.draft = None;
    }

    /// Takes over the answer to a write.
    fn became(&mut self, stored: &Stored, now: Time) {
        self.writes.last.version = stored.version;
        if let Some(object) = &stored.object {
            self.findings.became(object, now);
        }
    }

    /// Notes that an effect is over. It is consumed: its result is reported once.
    fn done<Asked>(&mut self, _: Asked) {
        self.findings.is_pending = false;
    }
}
