//! Effects on the owned resources: they apply the declared ones, and delete those of an object that is being deleted.

use kube::Resource;
use okt_core::machine::{Apply, ApplyResult, Clear, ClearResult, ResourceStatus};
use okt_core::{Lifecycle, StateId, reasons};
use okt_reach::Failure;
use okt_telemetry::event::Occurrence;
use okt_wire::clock::moment;
use tokio::time::Instant;

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::reconcile::shared::Shared;
use crate::resources::{AllowedWrites, OwnedStatus, Owner, Pace, Resources, Site};

impl<A: Application> Reconciliation<'_, A> {
    /// Applies the resources that the application declares for the state on record, and those of its pass.
    pub(super) async fn apply(&mut self, effect: Apply) {
        let leave = AllowedWrites {
            creates: effect.creates,
            prunes: effect.prunes,
        };
        let result = self.try_to_apply(leave).await;
        self.memory.machine.applied(effect, result, moment());
    }

    async fn try_to_apply(&mut self, leave: AllowedWrites) -> ApplyResult {
        let pace = self.pace();
        let Some(state) = self.state().filter(|_| !self.memory.owned.waits(&pace)) else {
            return ApplyResult::Waits;
        };
        let declared = match self.declared(state).await {
            Ok(declared) => declared,
            Err(failure) => {
                let due = Some(self.memory.owned.failed(failure, &pace));
                // A deletion goes on although it is not known what should exist.
                let status = if self.read().deleting {
                    ResourceStatus::AsDeclared
                } else {
                    self.memory.owned.status.numbers()
                };
                return ApplyResult::Applied { status, due };
            }
        };
        self.memory.owned.declared();
        let declared = self.of_pass().and(declared);
        self.shared
            .cluster
            .exposed
            .note(self.setup.graphs.life, &declared);
        let shared = self.shared;
        let uid = self.uid().to_owned();
        let may_write = || shared.may_start(&uid);
        let site = site(self.shared, &self.object, &may_write);
        let owned = &mut self.memory.owned;
        let report = owned.apply(site, pace, leave, &declared).await;
        owned.note(report.status());
        let status = owned.status.numbers();
        let due = report.due;
        for event in report.repairs {
            self.happened(Occurrence::Published(event));
        }
        ApplyResult::Applied { status, due }
    }

    /// Deletes the resources that Kubernetes does not delete with the object, except those that its state or its pass
    /// keeps.
    pub(super) async fn clear(&mut self, effect: Clear) {
        let (result, status) = match self.try_to_clear().await {
            (ClearResult::Cleared, _) => self.delivered(),
            other => other,
        };
        let is_shown = self.memory.machine.cleared(effect, result, moment());
        if is_shown || result == ClearResult::Deleted {
            self.memory.owned.note(status);
        }
    }

    /// Returns whether the transitions of the object are delivered, or have been waiting for too long.
    fn delivered(&self) -> (ClearResult, OwnedStatus) {
        let Some(until) = self.shared.telemetry.holds(self.uid(), self.wake()) else {
            return (ClearResult::Cleared, OwnedStatus::AsDeclared);
        };
        let why = "the object waits until its last transitions are delivered, for a minute at most";
        let failure = Failure::retry(reasons::resources::NOT_DELIVERED, why);
        let patience = until.saturating_duration_since(Instant::now());
        (
            ClearResult::Undelivered { patience },
            OwnedStatus::Failed(failure),
        )
    }

    async fn try_to_clear(&mut self) -> (ClearResult, OwnedStatus) {
        let shared = self.shared;
        let object = &*self.object;
        let hidden = shared.cluster.hidden();
        let uid = self.uid().to_owned();
        let may_write = || shared.may_act(&uid);
        let site = site(shared, object, &may_write);
        let owns_anything = shared.cluster.owns_anything(object.meta()) || site.has_unseen();
        if hidden.is_none() && !owns_anything {
            return (ClearResult::Cleared, OwnedStatus::AsDeclared);
        }
        let pace = self.pace();
        let goes_by_record = self.memory.owned.goes_by_record();
        if self.memory.owned.waits(&pace) && !goes_by_record {
            return (ClearResult::Waits, OwnedStatus::AsDeclared);
        }
        if let Some(why) = hidden {
            // A hidden resource might be left behind, and the operator would never notice.
            let failure = Failure::retry(reasons::resources::NOT_WATCHED, why);
            return self.not_cleared(failure, &pace);
        }
        let of_pass = self.of_pass();
        let kept = match self.state() {
            Some(_) | None if goes_by_record => of_pass.and(site.kept_on_record()),
            Some(state) if site.leaves_something(&of_pass) => match self.declared(state).await {
                Ok(declared) => of_pass.and(declared),
                // It is not known which resources to keep.
                Err(failure) => {
                    let failure = failure.saying(
                        "after ten minutes the deletion goes on by what was declared before",
                    );
                    return self.not_cleared(failure, &pace);
                }
            },
            Some(_) | None => of_pass,
        };
        let report = self.memory.owned.clear(site, pace, &kept).await;
        let status = report.status();
        let result = match &status {
            OwnedStatus::AsDeclared => ClearResult::Cleared,
            OwnedStatus::Failed(failure) => ClearResult::Failed {
                permanent: failure.is_permanent(),
                due: report.due,
            },
            OwnedStatus::Awaited(_) if report.operations.deleted > 0 => ClearResult::Deleted,
            OwnedStatus::Awaited(_) => ClearResult::Awaited,
        };
        match result {
            // Most objects are gone at once.
            ClearResult::Deleted => (result, OwnedStatus::AsDeclared),
            result => (result, status),
        }
    }

    /// Notes that it is not known what to delete, and when to ask again.
    fn not_cleared(&mut self, failure: Failure, pace: &Pace) -> (ClearResult, OwnedStatus) {
        let permanent = failure.is_permanent();
        let due = Some(self.memory.owned.failed(failure.clone(), pace));
        let result = ClearResult::Failed { permanent, due };
        (result, OwnedStatus::Failed(failure))
    }

    /// Returns the resources that the pass of this reconciliation has put.
    fn of_pass(&self) -> Resources {
        let run = self.run.as_ref();
        run.map(|run| run.put.clone()).unwrap_or_default()
    }

    /// Calls `resources` of the application; a call that hangs or panics counts as a failure.
    async fn declared(&self, state: StateOf<A>) -> Result<Resources, Failure> {
        let application = &*self.shared.application;
        let question = application.resources(&self.cx, state);
        let answer = self.asker().ask(application.answer_limit(), question).await;
        answer.unwrap_or_else(|unanswered| {
            let name = state.name();
            Err(unanswered.failure(&format!("`resources` did not answer for {name}")))
        })
    }

    /// Returns the backoff of the attempts for the object in its state.
    pub(super) fn pace(&self) -> Pace {
        let state = self.state().map_or(StateId::UNKNOWN, Lifecycle::id);
        Pace {
            occasion: (self.object.meta().generation, state),
            backoff: self.shared.backoff,
            seed: self.read().seed,
        }
    }
}

fn site<'a, A: Application>(
    shared: &'a Shared<A>,
    object: &'a A::Resource,
    may_write: &'a (dyn Fn() -> bool + Send + Sync),
) -> Site<'a> {
    Site {
        client: &shared.connection.direct,
        cluster: &shared.cluster,
        owner: Owner::of(object),
        may_write,
    }
}
