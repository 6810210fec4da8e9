//! Effects on the owned resources: they apply the declared ones, and delete those of an object that is being deleted.

use kube::Resource;
use okt_core::machine::{Apply, ApplyResult, Clear, ClearResult, ResourceStatus};
use okt_core::{Cause, Graph, Lifecycle, StateId, reasons};
use okt_reach::Failure;
use okt_telemetry::event::Occurrence;
use okt_wire::clock::moment;
use okt_wire::digest;
use tokio::time::Instant;

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::reconcile::shared::Shared;
use crate::resources::{AllowedWrites, OwnedStatus, Owner, Pace, Resources, Site};

/// Returns the edge for a change out of a state that leads to where an outdated resource may change.
fn changing_edge(
    graph: &Graph<'_>,
    from: StateId,
    resources: &Resources,
    outdated: &[usize],
) -> Option<StateId> {
    let outdated = outdated.iter().filter_map(|it| resources.declared.get(*it));
    let mut edges = outdated.flat_map(|declared| edges_for(graph, from, &declared.changes_in));
    edges.next()
}

/// Returns the edges for a change out of a state, first those that lead to some states without a choice.
fn edges_for<'g>(
    graph: &'g Graph<'g>,
    from: StateId,
    states: &'g [StateId],
) -> impl Iterator<Item = StateId> + 'g {
    let triggers = || {
        let triggers = graph.get(from).map_or(&[][..], |state| state.triggers);
        triggers.iter()
    };
    let leads = |to: StateId| graph.next_way(to).any(|it| states.contains(&it));
    let changes = triggers().filter(|it| it.cause.is_change());
    let straight = changes.map(|it| it.to).filter(move |to| leads(*to));
    let any = triggers().filter(|it| it.cause == Cause::OnChange);
    straight.chain(any.map(|it| it.to))
}

/// Returns a failure for each declared resource that would never change.
fn never_changed(graph: &Graph<'_>, resources: &Resources) -> Vec<(Option<usize>, Failure)> {
    let declared = resources.declared.iter().enumerate();
    let never = declared.filter(|(_, declared)| {
        let states = &declared.changes_in;
        let mut from = graph.iter().map(|(id, _)| id);
        !states.is_empty() && !from.any(|from| edges_for(graph, from, states).next().is_some())
    });
    let failures = never.map(|(index, declared)| {
        let names: Vec<&str> = declared
            .changes_in
            .iter()
            .map(|id| graph.name_of(*id))
            .collect();
        let why = format!(
            "a resource changes in {} only, and no `on_change` leads there",
            names.join(", ")
        );
        (
            Some(index),
            Failure::permanent(reasons::resources::BAD_RESOURCE, why),
        )
    });
    failures.collect()
}

/// Returns a hash of the declared resources that change in some states only, the same in every process; 0 where no plan
/// needs it.
fn content(graph: &Graph<'_>, resources: &Resources) -> u64 {
    if !graph.has_approvals() {
        return 0;
    }
    let declared = resources.declared.iter();
    let held = declared.filter(|declared| !declared.changes_in.is_empty());
    let objects: Vec<_> = held.map(|declared| &declared.object).collect();
    if objects.is_empty() {
        return 0;
    }
    digest::revision(&objects)
}

impl<A: Application> Reconciliation<'_, A> {
    /// Applies the resources that the application declares for the state on record, and those of its pass.
    pub(super) async fn apply(&mut self, effect: Apply) {
        let leave = AllowedWrites {
            creates: effect.creates,
            prunes: effect.prunes,
            state: self.recorded().at().map(|record| record.state),
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
                return ApplyResult::Applied {
                    status,
                    due,
                    outdated: None,
                    content: None,
                };
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
        let mut report = owned.apply(site, pace, leave, &declared).await;
        let graph = StateOf::<A>::GRAPH;
        report.failures.extend(never_changed(graph, &declared));
        let outdated = changing_edge(graph, state.id(), &declared, &report.outdated);
        owned.note(report.status());
        let status = owned.status.numbers();
        let due = report.due;
        for event in report.repairs {
            self.happened(Occurrence::Published(event));
        }
        ApplyResult::Applied {
            status,
            due,
            outdated,
            content: Some(content(graph, &declared)),
        }
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
