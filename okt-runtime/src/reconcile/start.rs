//! The effect that begins work: a task outside the reconciliation, once there is a permit for it.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::api::ListParams;
use kube::runtime::reflector::ObjectRef;
use okt_core::Lifecycle;
use okt_core::reconcile::Waits;

use super::round::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::author::context::Action;
use crate::author::progress::Progress;
use crate::cache::cached::{Cached, named};
use crate::cache::guarded::api;
use crate::patience::answer;
use crate::reconcile::memory::{Piece, Stage};
use crate::reconcile::permits::{Permit, Purpose, Wait};
use crate::reconcile::work;
use crate::resources::name_of;
use crate::telemetry::event::Occurrence;
use crate::texts::chain;

/// How long resumed work waits for the newest version of its object.
const RETRY: Duration = Duration::from_secs(1);

impl<A: Application> Reconciliation<'_, A> {
    /// Starts the work on record, unless it has to wait for the task before it or for a permit.
    pub(super) async fn start(&mut self, resumed: bool) {
        let others_act = self.shared.gate.is_shared() || self.shared.is_selective;
        if resumed && others_act && !self.is_newest().await {
            return;
        }
        let Some(state) = self.state() else {
            return;
        };
        let Some(mut piece) = self.next_piece() else {
            return;
        };
        // An object that was abandoned and created again has the same name: the task of the one before ends first.
        self.memory.work.ending = self.shared.tasks.ending(&name_of(&*self.round.object));
        if self.memory.work.ending.is_none()
            && let Some(permit) = self.permit_for_work(resumed)
        {
            self.begin(state, &mut piece, resumed, permit);
        }
        // Work that was in flight before this process began is remembered only once it runs.
        if !resumed || matches!(piece.stage, Stage::Running(_)) {
            self.memory.work.piece = Some(piece);
        }
    }

    /// Returns whether the object is as the API server has it. If not, the object waits for the newer version.
    ///
    /// The replica or operator that acted on the object before may have recorded the end of the work, and the cache may not show it
    /// yet: the work must not begin once more.
    async fn is_newest(&mut self) -> bool {
        let meta = self.round.object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        let api = api::<Cached<A::Resource>>(&self.shared.client, meta.namespace.as_deref());
        // A list of one object: the operator needs no other permission for it.
        let one = ListParams::default().fields(&format!("metadata.name={name}"));
        match answer(api.list_metadata(&one)).await {
            Ok(list) => {
                let newest = list
                    .items
                    .into_iter()
                    .find(|it| it.metadata.uid == meta.uid);
                let newest = newest.and_then(|it| it.metadata.resource_version);
                if newest.is_some() && newest == meta.resource_version {
                    return true;
                }
                // An object that is gone is not resumed; the watch soon says so.
                self.memory.seen.version = newest.or(self.memory.seen.version.take());
            }
            Err(error) => {
                tracing::warn!("cannot read the newest version: {}", chain(&error));
            }
        }
        self.round.waits = Some(Waits::Permit(Some(RETRY)));
        false
    }

    fn next_piece(&mut self) -> Option<Piece> {
        let piece = self.memory.work.piece.take();
        piece.or_else(|| self.round.stored.piece())
    }

    fn begin(&mut self, state: StateOf<A>, piece: &mut Piece, resumed: bool, permit: Permit) {
        let wake = self.wake();
        let before = piece.progress.as_ref().map(Progress::text);
        let progress = Progress::new(before.unwrap_or_default(), wake.clone());
        piece.progress = Some(progress.clone());
        piece.state = Some(state.name());
        piece.named = false;
        piece.started_under = self.round.stored.asked.generation;
        let mut action = Action::new(
            self.round.cx.clone(),
            piece.id.clone(),
            piece.attempt,
            resumed,
            self.known.gone.child_token(),
            progress,
        );
        action.continues = matches!(piece.stage, Stage::Waiting { asked: true, .. });
        if action.continues {
            action.began = piece.began.unwrap_or(action.began);
        } else {
            piece.began = Some(action.began);
            self.happened(Occurrence::AttemptStarted {
                attempt: piece.attempt_in(state.name()),
                resumed,
            });
        }
        let dropped = self.known.dropped.clone();
        let running = work::start(self.shared, state, action, permit, dropped, wake);
        piece.stage = Stage::Running(running);
    }

    /// Returns a permit for an attempt; none if it has to wait for one.
    fn permit_for_work(&mut self, resumed: bool) -> Option<Permit> {
        let purpose = match (self.round.stored.asked.deleting, resumed) {
            (true, _) => Purpose::Leaving,
            (false, true) => Purpose::Resuming,
            (false, false) => Purpose::Working,
        };
        let wait = match (self.shared.permits).take(self.uid(), purpose, self.wake()) {
            Ok(permit) => return Some(permit),
            Err(Wait::For(time)) => Some(time),
            Err(Wait::UntilWoken) => None,
        };
        self.round.waits = Some(Waits::Permit(wait));
        None
    }

    /// Returns a function that requeues the object.
    pub(super) fn wake(&self) -> impl Fn() + Clone + Send + Sync + use<A> {
        let shared = Arc::clone(self.shared);
        let object: ObjectRef<Cached<A::Resource>> = named(self.round.object.meta());
        move || shared.requeue(object.clone())
    }
}
