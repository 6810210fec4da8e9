//! The effect that renders the status of a draft and compares it with the stored one; it sends no request.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::Resource as _;
use okt_core::conditions::{self, Condition, OwnedWords, Requested, Way};
use okt_core::decide::{Ending, Verdict};
use okt_core::machine::{
    Draft, ExtraResult, NotReadyReason, Render, RunEnd, StatusDiff, WorkChange,
};
use okt_core::pass::PassRun;
use okt_core::record::Recorded;
use okt_core::{ConditionStatus, Graph, Lifecycle, reasons};
use okt_reach::Failure;
use okt_wire::clock::moment;
use okt_wire::digest;
use okt_wire::object::{LifecycleObject, StatusOf, has_lifecycle};
use okt_wire::status::{RecordedFailure, Status};

use super::reconciliation::{Reconciliation, counts_wall_time};
use crate::author::application::{Application, StateOf};
use crate::author::pass::FinishedRun;
use crate::author::progress::Progress;
use crate::author::recording::ToRecord;
use crate::reconcile::change::{SUMMARY, change, is_own};
use crate::reconcile::memory::Remembered;
use crate::reconcile::report::{StatusReport, dated};
use crate::resources::OwnedStatus;

impl<A: Application> Reconciliation<'_, A> {
    /// Renders the status of a draft, and compares it with the stored one.
    pub(super) async fn render(&mut self, effect: Render) {
        let (draft, asks) = (effect.draft, effect.asks_extra);
        let mut asked = ExtraResult::NotAsked;
        let status = match self.shared.pass_graph() {
            Some(graph) if !has_lifecycle::<A::Resource>() && self.read().is_paused() => {
                self.of_paused_pass(graph)
            }
            graph => {
                asked = self.ask_extra(asks).await;
                match graph {
                    Some(graph) if !has_lifecycle::<A::Resource>() => {
                        self.of_pass_alone(&draft, graph)
                    }
                    Some(_) | None => self.of_life(&draft),
                }
            }
        };
        let diff = change(&*self.object, &status, self.shared.pass_graph());
        let hash = || digest::revision(&status);
        let machine = &mut self.memory.machine;
        let diff = machine.rendered(effect, diff, hash, asked, &self.setup, moment());
        if matches!(diff, StatusDiff::None | StatusDiff::Vain) {
            self.is_reported(&status);
        }
        self.rendered = Some(status);
    }

    /// Notes that this status is stored.
    pub(super) fn is_reported(&self, status: &StatusOf<A::Resource>) {
        let position = status.lifecycle.as_ref();
        if let Some(action) = position.and_then(|position| position.action.as_ref())
            && let Some(run) = self.memory.run()
            && let Some(progress) = &run.progress
        {
            progress.shown(&action.message);
        }
    }

    /// Renders the status of an object with a lifecycle.
    fn of_life(&self, draft: &Draft) -> StatusOf<A::Resource> {
        let resources = self.resources(draft);
        let of_pass = self.conditions_of_pass(draft);
        let operator = self.shared.operator(self.uid());
        let facts = self.memory.machine.facts(&self.setup, operator, moment());
        let report = StatusReport {
            object: &*self.object,
            now: self.shared.clock.now(),
            draft,
            facts: &facts.life,
            observed: &self.observed,
            failed: failed::<StateOf<A>>(&draft.step, self.memory),
            progress: self.progress_of(draft),
            recording: recording(draft, self.memory),
            begun: self.begun.clone(),
            gates: &self.gates,
            resources: &resources,
            recorded_resources: self.recorded_resources(),
            counts_wall_time: self.has_wall_time(draft),
            absent: self.memory.machine.absent_for(moment()),
            referred: self.referred,
            of_pass: &of_pass,
            extra: self.extra.clone().unwrap_or_default(),
            delivered: self.shared.telemetry.delivered(self.uid()),
            graph: &self.shared.graph,
        };
        let mut status = report.status();
        if draft.not_ready == NotReadyReason::AsBefore {
            keep_summary(&mut status, &*self.object);
        }
        status
    }

    /// Renders the status of an object that has a pass and no lifecycle.
    fn of_pass_alone(
        &self,
        draft: &Draft,
        graph: &'static Graph<'static>,
    ) -> StatusOf<A::Resource> {
        let resources = match (&self.run, draft.not_ready) {
            (_, NotReadyReason::Resources(_)) | (None, _) => self.resources(draft),
            (Some(run), _) => run.resources.clone(),
        };
        let way = match &self.run {
            Some(run) => Way::Ran(&run.run),
            None => Way::Leaving,
        };
        let object = self.read();
        let requested = Requested {
            deletion: object.deleting,
            pause: object.paused,
        };
        let conditions = conditions::of_pass_run(graph, way, resources.words(), requested);
        let conditions = self.dated(conditions);
        Status {
            observed_generation: Some(object.generation),
            lifecycle: None,
            conditions,
            recorded_resources: self.recorded_resources(),
            extra: self.extra.clone().unwrap_or_default(),
            ..Status::default()
        }
    }

    /// Renders the status of such an object while it is paused: the stored one, with the condition `Paused` renewed.
    fn of_paused_pass(&self, graph: &'static Graph<'static>) -> StatusOf<A::Resource> {
        let requested = Requested {
            pause: true,
            ..Requested::default()
        };
        let fresh = conditions::of_pass_run(graph, Way::Paused, OwnedWords::AsDeclared, requested);
        let fresh = self.dated(fresh);
        let mut status = self.object.status_of().cloned().unwrap_or_default();
        status
            .conditions
            .retain(|it| is_own::<StateOf<A>>(&it.type_, Some(graph)));
        if status.conditions.is_empty() {
            status.conditions = fresh;
            status.observed_generation = self.object.meta().generation;
            return status;
        }
        // Changes of the spec since then are not checked.
        let seen = status.observed_generation;
        let is_pause = |it: &&mut meta::Condition| it.type_ == "Paused";
        if let (Some(old), Some(new)) = (
            status.conditions.iter_mut().find(is_pause),
            fresh.into_iter().find(|it| it.type_ == "Paused"),
        ) {
            *old = new;
            old.observed_generation = seen;
        }
        status
    }

    fn dated(&self, conditions: Vec<Condition>) -> Vec<meta::Condition> {
        let now = self.shared.clock.now();
        let object = &*self.object;
        let conditions = conditions.into_iter();
        conditions.map(|it| dated(object, now, it)).collect()
    }

    /// Returns what keeps the object from being ready besides its lifecycle, as text.
    fn resources(&self, draft: &Draft) -> OwnedStatus {
        match draft.not_ready {
            NotReadyReason::None | NotReadyReason::AsBefore => OwnedStatus::AsDeclared,
            NotReadyReason::Unchecked => {
                let state = draft.record.at().map(|record| record.state);
                let name = state.map_or("", |state| StateOf::<A>::GRAPH.name_of(state));
                OwnedStatus::Awaited(format!("the resources of {name} are not checked yet"))
            }
            NotReadyReason::Pass(_) => {
                let held = || self.memory.held.as_ref().map(|(why, _)| why.clone());
                let why = self.run.as_ref().map_or_else(held, FinishedRun::in_the_way);
                why.map_or(OwnedStatus::AsDeclared, OwnedStatus::Failed)
            }
            NotReadyReason::Stopping => OwnedStatus::Failed(Failure::retry(
                reasons::STOPPING,
                "this operator is stopping; the next one continues",
            )),
            NotReadyReason::Requests => OwnedStatus::Failed(Failure::retry(
                reasons::WRITE_FAILED,
                format!(
                    "the outcome of a request cannot be written: {}",
                    self.memory.undelivered
                ),
            )),
            NotReadyReason::Resources(_) => self.memory.owned.status.clone(),
        }
    }

    /// Returns the conditions of the pass of an object with a lifecycle.
    fn conditions_of_pass(&self, draft: &Draft) -> Vec<Condition> {
        let Some(graph) = self.shared.pass_graph() else {
            return Vec::new();
        };
        let held = self.memory.held.as_ref();
        match (&self.run, held) {
            (Some(run), _) => conditions::of_pass(graph, Way::Ran(&run.run)),
            (None, Some((_, conditions)))
                if draft.not_ready == NotReadyReason::Pass(RunEnd::Held) =>
            {
                conditions.clone()
            }
            (None, _) if *self.recorded() == Recorded::Nothing => {
                conditions::of_pass(graph, Way::Ran(&PassRun::begin(graph, false)))
            }
            (None, _) if self.read().deleting => conditions::of_pass(graph, Way::Leaving),
            (None, _) => self.conditions_before(graph),
        }
    }

    /// Returns the stored conditions of a pass that does not run now.
    fn conditions_before(&self, graph: &'static Graph<'static>) -> Vec<Condition> {
        let status = self.object.status_of();
        let stored = status.map_or(&[][..], |status| &status.conditions);
        let mut all = conditions::of_pass(graph, Way::Paused);
        for condition in &mut all {
            let before = stored.iter().find(|it| it.type_ == condition.name);
            if let Some((before, status)) =
                before.and_then(|it| Some((it, ConditionStatus::from_word(&it.status)?)))
            {
                condition.status = status;
                condition.reason.clone_from(&before.reason);
                condition.message.clone_from(&before.message);
            }
        }
        all
    }

    /// Returns whether the deadlines of the state of a draft count the wall time.
    fn has_wall_time(&self, draft: &Draft) -> bool {
        let state = draft
            .record
            .at()
            .and_then(|at| StateOf::<A>::from_id(at.state));
        state.is_some_and(|state| counts_wall_time(self.shared, state))
    }

    /// Returns the record of the owned resources; the stored one if they were not checked.
    fn recorded_resources(&self) -> Vec<String> {
        let before = || {
            let status = self.object.status_of();
            status.map(|it| it.recorded_resources.clone())
        };
        let now = self.memory.owned.to_record.clone();
        now.or_else(before).unwrap_or_default()
    }

    /// Returns the progress text of the work on record.
    fn progress_of(&self, draft: &Draft) -> String {
        match draft.work {
            WorkChange::New | WorkChange::None => String::new(),
            WorkChange::Keep | WorkChange::Retry | WorkChange::Wait => self.progress(),
        }
    }

    /// Returns the progress text of the work that this process knows.
    pub(super) fn progress(&self) -> String {
        let progress = self.memory.run().and_then(|run| run.progress.as_ref());
        progress.map_or_else(String::new, Progress::text)
    }
}

/// Returns what the handler of the work on record wants recorded, once its attempt or the work is over.
pub(crate) fn recording(draft: &Draft, memory: &Remembered) -> Option<ToRecord> {
    match draft.work {
        WorkChange::Keep => None,
        WorkChange::New | WorkChange::None | WorkChange::Retry | WorkChange::Wait => {
            Some(memory.run()?.recording.as_ref()?.get())
        }
    }
}

/// Returns the failure to record, if it is news.
pub(crate) fn failed<S: Lifecycle>(step: &Verdict, memory: &Remembered) -> Option<RecordedFailure> {
    if let Verdict::End(Ending::Refused(to)) = step {
        let to = S::from_id(*to).map_or("Next", Lifecycle::name);
        return Some(RecordedFailure::new(
            reasons::NO_EDGE,
            &format!("the handler named `{to}`, to which no edge leads from here"),
        ));
    }
    let failure = memory.result()?.as_ref().err()?;
    // Alternating reasons would cause a write for each attempt.
    let is_uncounted = matches!(step, Verdict::Retry { counted: false });
    let has_reported = || {
        memory
            .run()
            .is_some_and(|run| run.has_reported(failure.reason()))
    };
    (!(is_uncounted && has_reported()))
        .then(|| RecordedFailure::new(failure.reason(), failure.message()))
}

/// Keeps the stored `Ready`, `Reconciling` and `Stalled` if the stored `Ready` is worse than that of the lifecycle, for
/// a reason of owned resources, of the pass or of your code.
///
/// These are not checked while the object is paused, and an operator that has just started does not know them.
fn keep_summary<K: LifecycleObject>(status: &mut StatusOf<K>, object: &K) {
    let stored = object.status_of().map_or(&[][..], |it| &it.conditions);
    let ready = |all: &[meta::Condition], is: &str| {
        all.iter()
            .position(|it| it.type_ == "Ready" && it.status == is)
    };
    let is_of_lifecycle = |reason: &str| {
        reasons::LIFECYCLE.contains(&reason) || K::State::from_name(reason).is_some()
    };
    let Some(worse) = ready(stored, "False") else {
        return;
    };
    if ready(&status.conditions, "True").is_none() || is_of_lifecycle(&stored[worse].reason) {
        return;
    }
    let is_summary = |it: &meta::Condition| SUMMARY.contains(&it.type_.as_str());
    status.conditions.retain(|it| !is_summary(it));
    let summary = stored.iter().filter(|it| is_summary(it));
    let kept = summary.map(|it| meta::Condition {
        observed_generation: status.observed_generation,
        ..it.clone()
    });
    status.conditions.splice(..0, kept);
}
