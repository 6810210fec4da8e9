//! One reconciliation of one object: a loop that performs the effects that `decide` returns.
//!
//! ```text
//!   the object, from the cache
//!        ▼
//!   facts ──▶ decide ──▶ one effect ──▶ its result is a fact of the next decision ──▶ … ──▶ rest
//! ```
//!
//! The machine of the object ([`okt_core::machine`]) remembers and decides. The files here translate the object for it,
//! perform its effects and report their results.

pub(crate) mod acting;
mod attempt;
mod author;
pub(crate) mod change;
mod commit;
mod failure;
pub(crate) mod finalizer;
pub(crate) mod gates;
pub(crate) mod leftover;
pub(crate) mod memory;
pub(crate) mod observe;
mod occurrences;
mod owned;
pub(crate) mod permits;
mod places;
pub(crate) mod reading;
mod reconciliation;
pub(crate) mod render;
pub(crate) mod report;
mod requests;
pub(crate) mod shared;
mod start;
pub(crate) mod tasks;
mod unreadable;
pub(crate) mod work;

use std::sync::Arc;

use kube::Resource;
use okt_core::machine::{Decision, Effect, Requeue, WriteError};
use okt_core::reasons;
use okt_telemetry::metrics::controller::Reconciled;
use okt_wire::clock::moment;
use okt_wire::read;

use self::reconciliation::Reconciliation;
use crate::author::application::Application;
use crate::cache::cached::{Cached, PlaceOf};
use crate::reconcile::memory::Known;
use crate::reconcile::shared::Shared;
use crate::resources::Owner;

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
fn reconciled(requeue: Requeue, failed: Option<WriteError>) -> Reconciled {
    match (failed, requeue.wait()) {
        (Some(WriteError::Refused), _) => Reconciled::TerminalError,
        (Some(WriteError::Conflict | WriteError::Failed | WriteError::Busy(_)), _) => {
            Reconciled::Error
        }
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
) -> (Requeue, Option<WriteError>) {
    let uid = cached.meta().uid.as_deref().unwrap_or_default();
    let mut memory = known.remembered.lock().await;
    known.catch_up(&mut memory);
    // Also checked before decoding: the version that the operator wrote itself arrives soon.
    let behind = memory
        .machine
        .check_version(read::version(cached.meta()), moment());
    if let Some((requeue, lasts)) = behind {
        if lasts {
            // The history of the API server may have gone back.
            shared.history.request_check();
        }
        return (requeue, None);
    }
    if known.take_name() {
        memory.machine.name();
    }
    let object = match memory.take_answer(cached.meta()) {
        Some(object) => Ok(object),
        None => cached.object(),
    };
    let object = object.map_err(|why| (reasons::UNDECODABLE, why));
    let admit = |object| {
        shared
            .admission
            .admit(object)
            .map_err(|why| (reasons::INVALID, why))
    };
    let requeue = match object.and_then(admit) {
        Ok(object) => {
            let reconciliation = Reconciliation::of(shared, place, known, &mut memory, object);
            reconciliation.run().await
        }
        Err((reason, why)) => {
            unreadable::reconcile(shared, cached, (reason, &why), known, &mut memory).await
        }
    };
    let (failed, waits_for_permit) = memory.machine.end();
    if !waits_for_permit {
        shared.permits.leave(uid);
    }
    (requeue, failed)
}

impl<A: Application> Reconciliation<'_, A> {
    /// Performs decided effects until there is nothing more to do. Returns when to requeue the object.
    async fn run(mut self) -> Requeue {
        self.note_object();
        self.publish_unanswered();
        loop {
            self.known.catch_up(self.memory);
            let operator = self.shared.operator(self.uid());
            match self.memory.machine.decide(&self.setup, operator, moment()) {
                Decision::Do(effect) => self.perform(effect).await,
                Decision::Rest(requeue) => return requeue,
            }
        }
    }

    /// Notes the resources that the object records as owned, the objects that it refers to, and its history.
    fn note_object(&self) {
        self.shared.telemetry.see(&*self.object);
        self.shared.cluster.note_recorded(Owner::of(&*self.object));
        if !self.read().newer {
            self.shared
                .cluster
                .note_references(Owner::of(&*self.object));
        }
    }

    async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::AddFinalizer(effect) => self.add_finalizer(effect).await,
            Effect::DropFinalizer(effect) => self.drop_finalizer(effect).await,
            Effect::Observe(effect) => self.observe(effect).await,
            Effect::RunPass(effect) => self.run_pass(effect).await,
            Effect::Apply(effect) => self.apply(effect).await,
            Effect::Clear(effect) => self.clear(effect).await,
            Effect::Render(effect) => self.render(effect).await,
            Effect::TakeOver(effect) => self.take_over(effect).await,
            Effect::Commit(effect) => self.commit(effect).await,
            Effect::Record(effect) => self.record(effect).await,
            Effect::ChangeWork(effect) => self.change_work(effect),
            Effect::RemoveLeftovers(effect) => self.remove_leftovers(effect).await,
            Effect::ShowFailure(effect) => self.show_failure(effect).await,
            Effect::Start(effect) => self.start(effect).await,
            Effect::Cancel(effect) => self.cancel(effect),
            Effect::ReadRequest(effect) => self.read_request(effect).await,
            Effect::TakePlace(effect) => self.take_place(effect).await,
            Effect::Deliver(effect) => self.deliver(effect).await,
            Effect::ShowUnreadable(effect) => {
                // Only for an object that does not decode; `unreadable` reconciles those.
                let version = self.read().version;
                self.memory.machine.unreadable_shown(effect, version);
            }
        }
    }
}
