//! The effect that begins work: a task outside the reconciliation, once there is a permit for it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource};
use okt_core::machine::{Start, StartResult, Version};
use okt_core::{Lifecycle, reasons};
use okt_reach::Failure;
use okt_telemetry::event::Occurrence;
use okt_wire::api_timeout::answer;
use okt_wire::object::steps_of;
use okt_wire::read;
use okt_wire::scope::{api, with_name};
use okt_wire::texts::chain;

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::author::context::Action;
use crate::author::progress::Progress;
use crate::author::recording::Recording;
use crate::cache::arrived::Arrived;
use crate::cache::cached::{Cached, named};
use crate::reconcile::attempt;
use crate::reconcile::permits::{Permit, Purpose};
use crate::requests::DecodedArgs;
use crate::resources::name_of;

impl<A: Application> Reconciliation<'_, A> {
    /// Starts the work on record, unless it has to wait for the task before it or for a permit.
    pub(super) async fn start(&mut self, effect: Start) {
        let result = self.try_to_start(&effect).await;
        self.memory.machine.started(effect, result);
    }

    async fn try_to_start(&mut self, effect: &Start) -> StartResult {
        let others_act = self.shared.gate.is_shared() || self.shared.is_selective;
        if effect.resumed
            && others_act
            && let Err(newest) = self.check_newest().await
        {
            return StartResult::Outdated(newest);
        }
        let Some(state) = self.state() else {
            return StartResult::Nothing;
        };
        // An object that was abandoned and created again has the same name: the task of the one before ends first.
        self.memory.work.ending = self.shared.tasks.ending(&name_of(&*self.object));
        if self.memory.work.ending.is_some() {
            return StartResult::FormerTaskRuns;
        }
        let purpose = match (self.read().deleting, effect.resumed) {
            (true, _) => Purpose::Leaving,
            (false, true) => Purpose::Resuming,
            (false, false) => Purpose::Working,
        };
        let permit = self.shared.permits.take(self.uid(), purpose, self.wake());
        match permit {
            Ok(permit) => {
                self.begin(state, effect, permit);
                StartResult::Started
            }
            Err(wait) => StartResult::NoPermit(wait),
        }
    }

    /// Checks that the object is as the API server has it.
    ///
    /// The replica or operator that acted on the object before may have recorded the end of the work, and the cache may
    /// not show it yet: the work must not begin once more.
    ///
    /// # Errors
    ///
    /// The newest version, if it is known. The object waits for it.
    pub(super) async fn check_newest(&self) -> Result<(), Option<Version>> {
        let meta = self.object.meta();
        let direct = &self.shared.connection.direct;
        let kind = ApiResource::erase::<A::Resource>(&());
        let newest = newest(direct, &kind, meta).await.map_err(|error| {
            tracing::warn!("cannot read the newest version: {}", chain(&error));
            None
        })?;
        if newest.is_some() && newest == self.read().version {
            Ok(())
        } else {
            Err(newest)
        }
    }

    fn begin(&mut self, state: StateOf<A>, effect: &Start, permit: Permit) {
        let wake = self.wake();
        let (transition, number) = (effect.work.transition, effect.work.run);
        let id = read::action_id(self.position(), self.uid(), transition, number);
        let args = self.args(state);
        let run = self.memory.work.begin(effect, || id, state.name());
        let before = run.progress.as_ref().map(Progress::text);
        let progress = Progress::new(before.unwrap_or_default(), wake.clone());
        run.progress = Some(progress.clone());
        let recording = run.recording.get_or_insert_with(|| {
            // An object whose steps cannot be read is not acted upon.
            let steps = steps_of(&*self.object).unwrap_or_default();
            Recording::new(steps, Some(Box::new(wake.clone())))
        });
        let recording = recording.clone();
        let mut action = Action::new(
            self.cx.clone(),
            run.id.clone(),
            effect.attempt,
            effect.resumed,
            self.known.gone.child_token(),
            progress,
            recording,
        );
        action.continues = effect.continues;
        if let Some(args) = args {
            action.args = args;
        }
        action.began = run.began;
        action.backoff = self.shared.backoff;
        let attempt = run.attempt(effect.attempt);
        if !effect.continues {
            let resumed = effect.resumed;
            self.happened(Occurrence::AttemptStarted { attempt, resumed });
        }
        let dropped = self.known.dropped.clone();
        let running = attempt::start(self.shared, state, action, permit, dropped, wake);
        self.memory.work.task = Some((effect.task, running));
    }

    /// Returns the arguments of the request that the work of a state serves; none if it serves none.
    fn args(&self, state: StateOf<A>) -> Option<Result<DecodedArgs, Failure>> {
        self.recorded().at()?.served()?;
        let request = self.position()?.request.as_ref()?;
        let mut kinds = self.shared.requests.kinds.iter();
        let kind = kinds.find(|it| it.state == state.id() && it.kind.api.kind == request.kind)?;
        let decoded = kind.decode(&request.args.value);
        Some(decoded.map_err(|why| Failure::permanent(reasons::BAD_ARGS, why)))
    }

    /// Returns a function that requeues the object.
    pub(super) fn wake(&self) -> impl Fn() + Clone + Send + Sync + use<A> {
        let shared = Arc::clone(self.shared);
        let object: ObjectRef<Cached<A::Resource>> = named(self.object.meta());
        move || shared.requeue(object.clone())
    }
}

/// Returns the version of an object that the API server has; none if the object is gone.
///
/// Boxed, so that everything in it is compiled here, and not once more for each application.
fn newest<'a>(
    client: &'a Client,
    kind: &'a ApiResource,
    meta: &'a ObjectMeta,
) -> BoxFuture<'a, Result<Option<Version>, kube::Error>> {
    async move {
        let api = api::<Arrived>(client, meta.namespace.as_deref(), kind);
        let named = with_name(meta.name.as_deref().unwrap_or_default());
        let list = answer(api.list_metadata(&named)).await?;
        let mut same = list.items.iter();
        let newest = same.find(|it| it.metadata.uid == meta.uid);
        Ok(newest.and_then(|it| read::version(&it.metadata)))
    }
    .boxed()
}
