//! Effects that write to the object: its status, its finalizer.

use std::sync::Arc;

use kube::Resource;
use okt_core::Lifecycle;
use okt_core::reconcile::{Draft, WorkChange};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument, Span, field};

use super::round::{Reconciliation, StatusOf};
use crate::author::application::Application;
use crate::cache::guarded::Guarded;
use crate::reconcile::leftover::{inherited, removal};
use crate::reconcile::memory::{DraftNews, Trouble};
use crate::reconcile::{finalizer, report};
use crate::telemetry::Written;
#[cfg(feature = "otel")]
use crate::telemetry::spans;
use crate::telemetry::traces;
use crate::texts::chain;

impl<A: Application> Reconciliation<'_, A> {
    /// Writes the draft, then changes the work as the draft says. If the write fails, the work stays as it is.
    pub(super) async fn commit(&mut self, draft: Draft, patch: bool) {
        let Some((_, _, status)) = self.round.draft.take() else {
            return;
        };
        let news = DraftNews {
            happened: self.occurrences(&draft, patch.then_some(&status)),
            #[cfg(feature = "otel")]
            is_move: patch && draft.is_move(),
            #[cfg(feature = "otel")]
            before: self.position().and_then(|it| it.history.last()?.generation),
        };
        if patch {
            if let Err(error) = self.take_over().await {
                return self.note_failure(&error);
            }
            let span = self.span(&draft, &status);
            match self.write(&status).instrument(span.clone()).await {
                Ok(written) => self.written(written, &status).await,
                Err(error) => {
                    span.record("otel.status_code", "ERROR");
                    let is_answered = matches!(error, kube::Error::Api(_));
                    if !is_answered && draft.record != self.round.stored.recorded {
                        self.memory.writes.unanswered = Some(Box::new((draft.record, news)));
                    }
                    return self.note_failure(&error);
                }
            }
            self.memory.writes.unanswered = None;
            if self.round.stored.recorded != draft.record {
                let why = "the answer to the write of a status has another record than was sent";
                return self.note_failure(&kube::Error::Service(why.into()));
            }
        }
        self.tell(news);
        self.round.consume(&draft);
        self.round.written = patch.then_some(draft);
        self.memory.owned.enter(self.round.stored.transition());
        let (backoff, seed) = (self.shared.backoff, self.round.seed);
        let stored = &self.round.stored;
        (self.memory.work).change(draft.work, || stored.piece(), backoff, seed);
        if draft.work == WorkChange::Retry
            && let Some(retry) = self.retry()
        {
            self.happened(retry);
        }
        if patch {
            self.is_reported(&status);
        }
    }

    /// Tells what happened with a write.
    fn tell(&self, news: DraftNews) {
        #[cfg(feature = "otel")]
        if news.is_move {
            spans::begin(&*self.round.object, news.before);
        }
        for occurrence in news.happened {
            self.happened(occurrence);
        }
    }

    /// Tells what happened with a write whose answer was lost, once the object shows that it was carried out.
    pub(super) fn tell_unanswered(&mut self) {
        let recorded = &self.round.stored.recorded;
        let unanswered = &mut self.memory.writes.unanswered;
        if let Some(carried_out) = unanswered.take_if(|it| it.0 == *recorded) {
            self.tell(carried_out.1);
        }
    }

    /// Removes conditions of an earlier controller before the first status of the object.
    pub(super) async fn take_over(&mut self) -> Result<(), kube::Error> {
        if let Some(patch) = inherited(&*self.round.object, &self.round.stored.recorded) {
            let meta = self.round.object.meta();
            let written = report::take_away(&self.shared.client, meta, &patch).await?;
            self.shared.telemetry.wrote(Written::Status);
            self.became(written);
        }
        Ok(())
    }

    async fn write(&self, status: &StatusOf<A>) -> Result<Guarded<A::Resource>, kube::Error> {
        let history = &self.shared.history;
        let newest = history.newest();
        let written = report::write(&self.shared.client, &*self.round.object, status).await?;
        self.shared.telemetry.wrote(Written::Status);
        history.wrote(written.meta().resource_version.as_deref(), newest);
        Ok(written)
    }

    /// Returns the span of a write: that of its transition, if it has one.
    fn span(&self, draft: &Draft, status: &StatusOf<A>) -> Span {
        let position = status.lifecycle.as_ref();
        let Some(transition) = position
            .and_then(|it| it.history.last())
            .filter(|_| draft.is_move())
        else {
            return Span::none();
        };
        let meta = self.round.object.meta();
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

    /// Notes that the write succeeded, and removes what others left in the status.
    async fn written(&mut self, written: Guarded<A::Resource>, said: &StatusOf<A>) {
        let pass = self.shared.pass_graph();
        let left =
            (written.get().ok()).and_then(|stored| removal::<A::Resource>(stored, said, pass));
        let (written, waits) = match left {
            Some(left) if self.memory.writes.may_tidy() => (self.tidy(written, &left).await, false),
            Some(_) => (written, true),
            None => (written, false),
        };
        let (before, after) = (self.round.object.meta(), written.meta());
        self.memory.status_written(before, after, said, waits);
        self.became(written);
    }

    /// Replaces the object by the server's answer.
    pub(super) fn became(&mut self, written: Guarded<A::Resource>) {
        (self.memory.seen.version).clone_from(&written.meta().resource_version);
        // If the answer does not decode, the next event reports it.
        if let Some(object) = written.into_inner() {
            self.memory.writes.answer = Some(Arc::clone(&object) as _);
            self.round.became(self.shared, object);
        }
    }

    /// Removes what others left in the status, at most every ten seconds, because they may add it again.
    async fn tidy(&mut self, written: Guarded<A::Resource>, left: &Value) -> Guarded<A::Resource> {
        self.memory.writes.tidied = Some(Instant::now());
        match report::take_away(&self.shared.client, written.meta(), left).await {
            Ok(tidied) => {
                self.shared.telemetry.wrote(Written::Status);
                tidied
            }
            Err(error) => {
                let why = chain(&error);
                tracing::warn!("cannot remove what others left in the status: {why}");
                written
            }
        }
    }

    /// Adds the finalizer.
    pub(super) async fn add_finalizer(&mut self) {
        match finalizer::add(&self.shared.client, &self.round.object).await {
            Ok(object) => {
                self.shared.telemetry.wrote(Written::Finalizer);
                (self.memory.seen.version).clone_from(&object.meta().resource_version);
                self.memory.writes.trouble = Trouble::default();
                // The writer that dropped it may have changed the spec as well.
                self.memory.seen.reported = false;
                self.round.became(self.shared, object);
                self.note_object();
            }
            Err(error) => self.note_failure(&error),
        }
    }

    /// Drops the finalizer: the application is gone, or a user abandoned it.
    pub(super) async fn drop_finalizer(&mut self, abandoned: bool) {
        let state = self.state().map(Lifecycle::name);
        let meta = self.round.object.meta();
        match finalizer::release(self.shared, meta, state, abandoned).await {
            Ok(()) => {
                self.tell_cancelled();
                self.memory.release();
            }
            Err(error) => self.note_failure(&error),
        }
    }
}
