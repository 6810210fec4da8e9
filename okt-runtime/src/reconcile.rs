//! One reconciliation of one object: a loop that performs the effects that `decide` returns.
//!
//! ```text
//!   the object, from the cache
//!        ▼
//!   facts ──▶ decide ──▶ one effect ──▶ its result is a fact of the next decision ──▶ … ──▶ rest
//! ```
//!
//! [`okt_core::reconcile::decide`] makes every decision, from the facts that `facts` gathers. Every other file here
//! performs effects.

mod author;
pub(crate) mod change;
mod commit;
pub(crate) mod draft;
mod facts;
pub(crate) mod finalizer;
pub(crate) mod leftover;
pub(crate) mod memory;
pub(crate) mod observe;
mod occurrences;
mod owned;
pub(crate) mod permits;
mod refusal;
pub(crate) mod report;
mod round;
pub(crate) mod shared;
mod start;
pub(crate) mod stored;
pub(crate) mod tasks;
mod unreadable;
mod work;

use std::sync::Arc;

use kube::Resource;
use okt_core::reconcile::{Decision, Effect, Requeue, Waits, decide};
use tokio::time::Instant;

pub(crate) use self::round::FUSE;
use self::round::{Reconciliation, Round, graphs};
use crate::author::application::Application;
use crate::cache::cached::{Cached, PlaceOf};
use crate::reconcile::memory::{FailedWrite, Known, Remembered, Trouble};
use crate::reconcile::shared::Shared;
use crate::telemetry::metrics::controller::Reconciled;

/// Reconciles one object; returns when to requeue it, and how the reconciliation ended.
pub(crate) async fn reconcile<A: Application>(
    shared: &Arc<Shared<A>>,
    cached: &Cached<A::Resource>,
    place: &PlaceOf<A::Resource>,
) -> (Requeue, Reconciled) {
    let uid = cached.meta().uid.as_deref().unwrap_or_default();
    // Checked before the object is decoded: a replica on standby has nothing else to do.
    if let Some(requeue) = Requeue::when_it_may_act(shared.operator(uid)) {
        shared.permits.leave(uid);
        return (requeue, Reconciled::Success);
    }
    let known = shared.memory.of(uid);
    let (requeue, failed) = tokio::select! {
        biased;
        // The object belongs to another replica.
        () = known.dropped.cancelled() => (Requeue::soon(), None),
        requeue = reconcile_known(shared, cached, place, &known) => requeue,
    };
    shared.memory.end_reconciliation(uid, &known);
    (requeue, reconciled(requeue, failed))
}

/// Returns how a reconciliation ended, in the words of controller-runtime.
fn reconciled(requeue: Requeue, failed: Option<FailedWrite>) -> Reconciled {
    match (failed, requeue.wait()) {
        (Some(FailedWrite::Refused), _) => Reconciled::TerminalError,
        (Some(FailedWrite::Retried), _) => Reconciled::Error,
        (None, Some(Requeue::SHORTEST)) => Reconciled::Requeue,
        (None, Some(_)) => Reconciled::RequeueAfter,
        (None, None) => Reconciled::Success,
    }
}

async fn reconcile_known<A: Application>(
    shared: &Arc<Shared<A>>,
    cached: &Cached<A::Resource>,
    place: &PlaceOf<A::Resource>,
    known: &Known,
) -> (Requeue, Option<FailedWrite>) {
    let uid = cached.meta().uid.as_deref().unwrap_or_default();
    let mut memory = known.remembered.lock().await;
    known.catch_up(&mut memory);
    // Also checked before decoding: the version that the operator wrote itself arrives soon.
    if is_behind(shared, cached, &mut memory) {
        return (Requeue::while_behind(memory.work.is_under_way()), None);
    }
    let version = cached.meta().resource_version.as_deref();
    let object = match memory.writes.take_answer(version) {
        Some(object) => Ok(object),
        None => cached.object(),
    };
    let (requeue, waits_for_permit) = match object {
        Ok(object) => {
            let reconciliation = Reconciliation {
                shared,
                place,
                known,
                round: Round::of(shared, object),
                memory: &mut memory,
            };
            reconciliation.run().await
        }
        Err(error) => (
            unreadable::reconcile(shared, cached, &error, &mut memory).await,
            false,
        ),
    };
    if !waits_for_permit {
        shared.permits.leave(uid);
    }
    memory.work.is_under_way = requeue.is_under_way();
    if requeue.is_settled() {
        memory.writes.trouble = Trouble::default();
    }
    (requeue, memory.writes.failed.take())
}

/// Returns whether the cached version is older than the operator's last write. If that lasts, the history of the API
/// server may have gone back.
fn is_behind<A: Application>(
    shared: &Shared<A>,
    cached: &Cached<A::Resource>,
    memory: &mut Remembered,
) -> bool {
    let version = cached.meta().resource_version.as_deref();
    if !memory.seen.is_newer_than(version) {
        memory.writes.behind = None;
        return false;
    }
    let since = *memory.writes.behind.get_or_insert_with(Instant::now);
    if since.elapsed() >= Requeue::SAFETY {
        shared.history.doubt();
    }
    true
}

impl<A: Application> Reconciliation<'_, A> {
    /// Performs decided effects until there is nothing more to do. Returns when to requeue the object, and whether its
    /// work waits for a permit.
    async fn run(mut self) -> (Requeue, bool) {
        if self.known.take_name() {
            self.memory.work.name();
            self.memory.sight.silence.end();
            self.round.is_named = true;
        }
        self.note_object();
        self.tell_unanswered();
        self.memory.owned.enter(self.round.stored.transition());
        let graphs = graphs(self.shared);
        for _ in 0..FUSE {
            if self.known.is_reopened() {
                // The CRD or the leadership has changed: the findings so far may be outdated.
                return (Requeue::soon(), false);
            }
            self.memory.work.catch_up();
            match decide(graphs, &self.round.stored.recorded, &self.facts()) {
                Decision::Do(effect) => self.perform(effect).await,
                Decision::Rest(requeue) => {
                    let waits = matches!(self.round.waits, Some(Waits::Permit(_)));
                    return (requeue, waits);
                }
            }
        }
        (Requeue::soon(), false)
    }

    /// Notes the resources that the object records as owned, the objects that it refers to, and its history.
    fn note_object(&self) {
        self.shared.telemetry.see(&*self.round.object);
        self.shared.cluster.note_recorded(&self.round.object);
        if !self.round.stored.asked.newer {
            self.shared.cluster.note_references(&self.round.object);
        }
    }

    async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::AddFinalizer => self.add_finalizer().await,
            Effect::DropFinalizer { abandoned } => self.drop_finalizer(abandoned).await,
            Effect::Observe => self.observe().await,
            Effect::RunPass { leaving } => self.run_pass(leaving).await,
            Effect::Apply { creates, prunes } => self.apply(creates, prunes).await,
            Effect::Clear => self.clear().await,
            Effect::Draft(draft) => self.draft(draft).await,
            Effect::Commit { draft, patch } => self.commit(draft, patch).await,
            Effect::ShowFailure => self.show_failure().await,
            Effect::Start { resumed } => self.start(resumed).await,
            Effect::Cancel => {
                self.tell_cancelled();
                self.memory.work.cancel();
            }
            // Only for an object that does not decode; `unreadable` reconciles those.
            Effect::ShowUnreadable => {}
        }
    }
}
