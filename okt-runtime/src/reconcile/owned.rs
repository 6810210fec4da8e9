//! Effects on the owned resources: they apply the declared ones, and delete those of an object that is being deleted.

use std::time::Duration;

use kube::Resource;
use okt_core::{Lifecycle, reasons};
use tokio::time::Instant;

use super::round::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::clock::after;
use crate::failure::Failure;
use crate::reconcile::shared::Shared;
use crate::resources::{Leave, OwnedStatus, Pace, Resources, Site};

/// How long a deletion may take before the conditions report it: most objects are gone at once.
const LINGER: Duration = Duration::from_secs(1);

/// How long until a deletion is checked again, in case its event is lost.
const CLEARING: Duration = Duration::from_secs(30);

impl<A: Application> Reconciliation<'_, A> {
    /// Applies the resources that the application declares for the state on record, and those of its pass.
    pub(super) async fn apply(&mut self, creates: bool, prunes: bool) {
        self.round.is_applied = true;
        let Some(state) = self.state() else {
            return;
        };
        let pace = self.pace();
        if self.memory.owned.waits(&pace) {
            return;
        }
        let declared = match self.declared(state).await {
            Ok(declared) => declared,
            Err(failure) => return self.memory.owned.failed(failure, &pace),
        };
        self.memory.owned.declared();
        let declared = self.of_pass().and(declared);
        let leave = Leave { creates, prunes };
        let shared = self.shared;
        let uid = self.uid().to_owned();
        let may_write = || shared.may_start(&uid);
        let site = site(self.shared, &self.round.object, &may_write);
        let owned = &mut self.memory.owned;
        let report = owned.apply(site, pace, leave, &declared).await;
        owned.due = report.due.map(after);
        owned.note(report.status());
    }

    /// Deletes the resources that Kubernetes does not delete with the object, except those that its state or its pass
    /// keeps.
    pub(super) async fn clear(&mut self) {
        self.round.cleared = Some(self.is_cleared().await && self.is_delivered());
    }

    /// Returns whether the transitions of the object are delivered, or have been waiting for too long.
    fn is_delivered(&mut self) -> bool {
        let Some(until) = self.shared.telemetry.holds(self.uid(), self.wake()) else {
            return true;
        };
        let owned = &mut self.memory.owned;
        let patience = *owned.delivery_patience.get_or_insert_with(|| after(LINGER));
        if Instant::now() < patience {
            owned.due = Some(patience);
            return false;
        }
        owned.note(OwnedStatus::Failed(Failure::retry(
            reasons::resources::NOT_DELIVERED,
            "the object waits until its last transitions are delivered, for a minute at most",
        )));
        owned.due = Some(until);
        false
    }

    async fn is_cleared(&mut self) -> bool {
        let shared = self.shared;
        let object = &*self.round.object;
        let hidden = shared.cluster.hidden();
        if hidden.is_none() && !shared.cluster.owns_anything(object.meta()) {
            return true;
        }
        let pace = self.pace();
        if self.memory.owned.waits(&pace) {
            return false;
        }
        if let Some(why) = hidden {
            // A hidden resource might be left behind, and the operator would never notice.
            let failure = Failure::retry(reasons::resources::NOT_WATCHED, why);
            self.memory.owned.failed(failure, &pace);
            return false;
        }
        let uid = self.uid().to_owned();
        let may_write = || shared.may_act(&uid);
        let site = site(shared, object, &may_write);
        let of_pass = self.of_pass();
        let kept = match self.state() {
            Some(state) if site.leaves_something(&of_pass) => match self.declared(state).await {
                Ok(declared) => of_pass.and(declared),
                // It is not known which resources to keep.
                Err(failure) => {
                    self.memory.owned.failed(failure, &pace);
                    return false;
                }
            },
            Some(_) | None => of_pass,
        };
        let owned = &mut self.memory.owned;
        let report = owned.clear(site, pace, &kept).await;
        match report.status() {
            OwnedStatus::AsDeclared => return true,
            OwnedStatus::Failed(failure) => {
                owned.due = report.due.map(after);
                owned.note(OwnedStatus::Failed(failure));
            }
            OwnedStatus::Awaited(_) if report.operations.deleted > 0 => {
                owned.note(OwnedStatus::AsDeclared);
                owned.patience = Some(after(LINGER));
                owned.due = owned.patience;
            }
            OwnedStatus::Awaited(_)
                if owned.patience.is_some_and(|until| Instant::now() < until) =>
            {
                owned.due = owned.patience;
            }
            OwnedStatus::Awaited(left) => {
                owned.note(OwnedStatus::Awaited(left));
                owned.due = Some(after(CLEARING));
            }
        }
        false
    }

    /// Returns the resources that the pass of this reconciliation has put.
    fn of_pass(&self) -> Resources {
        let run = self.round.run.as_ref();
        run.map(|(run, _)| run.put.clone()).unwrap_or_default()
    }

    /// Calls `resources` of the application; a call that hangs or panics counts as a failure.
    async fn declared(&self, state: StateOf<A>) -> Result<Resources, Failure> {
        let application = &*self.shared.application;
        let question = application.resources(&self.round.cx, state);
        let answer = (self.asker())
            .ask(application.answer_limit(), question)
            .await;
        answer.unwrap_or_else(|unanswered| {
            let name = state.name();
            Err(unanswered.failure(&format!("what should exist in {name} was not said")))
        })
    }

    /// Returns the backoff of the attempts for the object in its state.
    pub(super) fn pace(&self) -> Pace {
        Pace {
            occasion: (self.round.object.meta().generation, self.state_id()),
            backoff: self.shared.backoff,
            seed: self.round.seed,
        }
    }
}

fn site<'a, A: Application>(
    shared: &'a Shared<A>,
    object: &'a A::Resource,
    may_write: &'a (dyn Fn() -> bool + Send + Sync),
) -> Site<'a, A::Resource> {
    Site {
        client: &shared.client,
        cluster: &shared.cluster,
        object,
        may_write,
    }
}
