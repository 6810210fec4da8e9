//! Effects that write to the object: its status, its finalizer.

use kube::Resource;
use okt_core::Lifecycle;
use okt_core::machine::{
    AddFinalizer, ChangeWork, Commit, Draft, DropFinalizer, Effect, Record, RemoveLeftovers,
    Stored, TakeOver, WorkChange,
};
use okt_telemetry::Written;
use okt_telemetry::event::Occurrence;
#[cfg(feature = "otel")]
use okt_telemetry::spans;
use okt_telemetry::traces;
use okt_wire::clock::moment;
use okt_wire::digest;
use okt_wire::object::{LifecycleObject, StatusOf};
use okt_wire::texts::chain;
use serde_json::Value;
use tracing::{Instrument, Span, field};

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::author::recording::Recording;
use crate::cache::guarded::Guarded;
use crate::reconcile::change::is_own;
use crate::reconcile::leftover::{inherited, removal};
use crate::reconcile::memory::DraftNews;
use crate::reconcile::render::recording;
use crate::reconcile::{finalizer, report};

impl<A: Application> Reconciliation<'_, A> {
    /// Writes the status that was rendered last. The work changes only if that succeeds.
    pub(super) async fn commit(&mut self, effect: Commit) {
        let draft = effect.draft;
        let Some(status) = self.rendered.take() else {
            // The machine asks for a write only of a status that was rendered.
            return self.memory.machine.not_done(Effect::Commit(effect));
        };
        let what = recording(&draft, self.memory);
        let news = DraftNews {
            happened: self.occurrences(&draft, Some(&status)),
            #[cfg(feature = "otel")]
            is_move: draft.is_move(),
            #[cfg(feature = "otel")]
            before: self.position().and_then(|it| it.history.last()?.generation),
        };
        let span = self.span(&draft, &status);
        let written = match self.write(&status).instrument(span.clone()).await {
            Ok(written) => written,
            Err(error) => {
                span.record("otel.status_code", "ERROR");
                let is_answered = matches!(error, kube::Error::Api(_));
                if !is_answered && draft.record != *self.recorded() {
                    self.memory.unanswered = Some(Box::new((draft.record, news)));
                }
                return self.memory.write_failed(&self.setup, effect, &error);
            }
        };
        self.memory.unanswered = None;
        let pass = self.shared.pass_graph();
        self.leftovers = written
            .get()
            .ok()
            .and_then(|stored| removal::<A::Resource>(stored, &status, pass));
        let (stored, leftovers) = (self.became(written), self.leftovers.is_some());
        let (machine, hash) = (&mut self.memory.machine, || digest::revision(&status));
        match machine.committed(effect, &stored, leftovers, hash, &self.setup, moment()) {
            Ok(()) => {
                self.publish(news);
                if let (Some(recording), Some(what)) = (self.recording(), &what) {
                    recording.recorded(what);
                }
                self.took_effect(&draft);
                self.note_places();
                self.is_reported(&status);
            }
            Err(retry) => {
                let why = "the answer to the write of a status has another record than was sent";
                self.memory
                    .note_failure(retry, &kube::Error::Service(why.into()));
            }
        }
    }

    /// Records what the handler that runs asks for; nothing else of the status changes.
    pub(super) async fn record(&mut self, effect: Record) {
        let (Some(recording), Some(stored)) = (self.recording().cloned(), self.object.status_of())
        else {
            // Only a handler that runs asks for it, for an object with a position.
            return self.memory.machine.not_done(Effect::Record(effect));
        };
        let what = recording.get();
        let mut status = stored.clone();
        status
            .conditions
            .retain(|it| is_own::<StateOf<A>>(&it.type_, self.shared.pass_graph()));
        if let Some(position) = &mut status.lifecycle {
            if let Some(memory) = &what.memory {
                position.memory = Some(memory.clone());
            }
            if let Some(action) = &mut position.action {
                action.steps.clone_from(&what.steps);
                action.message = self.progress();
            }
        }
        // An earlier write may have been carried out although its answer was lost.
        let stored = if status.lifecycle == stored.lifecycle {
            let (version, object) = (self.read().version, Some(*self.read()));
            Ok(Stored { version, object })
        } else {
            self.write(&status)
                .await
                .map(|written| self.became(written))
        };
        match stored {
            Ok(stored) => {
                self.memory.machine.recorded(effect, &stored, moment());
                recording.recorded(&what);
                self.is_reported(&status);
            }
            Err(error) => self.memory.write_failed(&self.setup, effect, &error),
        }
    }

    /// Returns what the handler of the work on record wants recorded.
    fn recording(&self) -> Option<&Recording> {
        self.memory.run()?.recording.as_ref()
    }

    /// Changes the work according to a draft whose status need not be written.
    pub(super) fn change_work(&mut self, effect: ChangeWork) {
        let draft = effect.draft;
        for occurrence in self.occurrences(&draft, None) {
            self.happened(occurrence);
        }
        self.memory
            .machine
            .work_changed(effect, &self.setup, moment());
        self.took_effect(&draft);
    }

    fn took_effect(&mut self, draft: &Draft) {
        if draft.is_move() {
            // What the application adds to the status belongs to one state.
            self.extra = None;
        }
        self.memory.work.take_effect(draft);
        if draft.work == WorkChange::Retry
            && let Some(after) = self.memory.machine.retry_after(moment())
            && let Some(attempt) = self.memory.attempt()
        {
            self.happened(Occurrence::AttemptScheduled { attempt, after });
        }
    }

    /// Publishes what happened with a write.
    fn publish(&self, news: DraftNews) {
        #[cfg(feature = "otel")]
        if news.is_move {
            spans::begin(&*self.object, news.before);
        }
        for occurrence in news.happened {
            self.happened(occurrence);
        }
    }

    /// Publishes what happened with a write whose answer was lost, once the object shows that it was carried out.
    pub(super) fn publish_unanswered(&mut self) {
        let recorded = *self.recorded();
        let unanswered = &mut self.memory.unanswered;
        if let Some(carried_out) = unanswered.take_if(|it| it.0 == recorded) {
            self.publish(carried_out.1);
        }
    }

    /// Removes parts of the status by a merge patch; returns the answer, for the machine.
    async fn take_away(&mut self, patch: &Value) -> Result<Stored, kube::Error> {
        let meta = self.object.meta();
        let written = report::take_away(&self.shared.connection.direct, meta, patch).await?;
        self.shared.telemetry.wrote(Written::Status);
        Ok(self.became(written))
    }

    /// Removes conditions of an earlier controller before the first status of the object.
    pub(super) async fn take_over(&mut self, effect: TakeOver) {
        let patch = inherited(&*self.object, self.recorded()).unwrap_or_default();
        match self.take_away(&patch).await {
            Ok(stored) => self.memory.machine.taken_over(effect, &stored, moment()),
            Err(error) => self.memory.write_failed(&self.setup, effect, &error),
        }
    }

    async fn write(
        &self,
        status: &StatusOf<A::Resource>,
    ) -> Result<Guarded<A::Resource>, kube::Error> {
        let history = &self.shared.history;
        let newest = history.newest();
        let client = &self.shared.connection.direct;
        let written = match report::write(client, &*self.object, status).await {
            Err(kube::Error::Api(refused)) if refused.code == 422 => {
                // Perhaps because another manager claims parts of what this status leaves out.
                let taken = report::take_claims::<A::Resource>(client, self.object.meta()).await;
                let object = taken.ok().flatten().and_then(Guarded::into_inner);
                match object {
                    Some(object) => report::write(client, &*object, status).await?,
                    None => return Err(kube::Error::Api(refused)),
                }
            }
            written => written?,
        };
        self.shared.telemetry.wrote(Written::Status);
        history.wrote(written.meta().resource_version.as_deref(), newest);
        Ok(written)
    }

    /// Returns the span of a write: that of its transition, if it has one.
    fn span(&self, draft: &Draft, status: &StatusOf<A::Resource>) -> Span {
        let position = status.lifecycle.as_ref();
        let Some(transition) = position
            .and_then(|it| it.history.last())
            .filter(|_| draft.is_move())
        else {
            return Span::none();
        };
        let meta = self.object.meta();
        let span = tracing::info_span!(
            "transition",
            kind = %A::Resource::kind(&()),
            namespace = meta.namespace,
            name = meta.name,
            uid = meta.uid,
            transition = transition.transition,
            from = transition.from,
            to = transition.to,
            cause = transition.cause,
            otel.status_code = field::Empty,
        );
        let uid = meta.uid.as_deref().unwrap_or_default();
        traces::join(&span, uid, transition.generation);
        span
    }

    /// Removes what others left in the status.
    pub(super) async fn remove_leftovers(&mut self, effect: RemoveLeftovers) {
        let patch = self.leftovers.take().unwrap_or_default();
        let stored = self.take_away(&patch).await.inspect_err(|error| {
            let why = chain(error);
            tracing::warn!("cannot remove what others left in the status: {why}");
        });
        self.memory
            .machine
            .leftovers_removed(effect, stored.ok().as_ref(), moment());
    }

    /// Adds the finalizer.
    pub(super) async fn add_finalizer(&mut self, effect: AddFinalizer) {
        let meta = self.object.meta();
        match finalizer::set(
            &self.shared.connection.direct,
            meta,
            &finalizer::addition(meta),
        )
        .await
        {
            Ok(written) => {
                self.shared.telemetry.wrote(Written::Finalizer);
                let stored = self.became(written);
                self.memory
                    .machine
                    .finalizer_added(effect, &stored, moment());
                self.note_object();
            }
            Err(error) => self.memory.write_failed(&self.setup, effect, &error),
        }
    }

    /// Drops the finalizer: the application is gone, or a user abandoned it.
    pub(super) async fn drop_finalizer(&mut self, effect: DropFinalizer) {
        let state = self.state().map(Lifecycle::name);
        let (meta, abandoned) = (self.object.meta(), effect.abandoned);
        match finalizer::release(self.shared, meta, state, abandoned).await {
            Ok(()) => self.memory.machine.finalizer_dropped(effect),
            Err(error) => self.memory.write_failed(&self.setup, effect, &error),
        }
    }
}
