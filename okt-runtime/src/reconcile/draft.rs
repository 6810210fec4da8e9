//! The effect that renders the status of a draft and compares it with the stored one; it sends no request.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::Resource as _;
use okt_core::conditions::{self, Condition, OwnedWords, Way};
use okt_core::decide::{Ending, Verdict};
use okt_core::pass::PassRun;
use okt_core::reconcile::{Draft, Hold, News, RunEnd, WorkChange};
use okt_core::record::Recorded;
use okt_core::{ConditionStatus, Graph, Lifecycle, reasons};

use super::observe::{Findings, extra};
use super::round::{Reconciliation, StatusOf};
use crate::author::application::{Application, ExtraOf, StateOf};
use crate::author::progress::Progress;
use crate::failure::Failure;
use crate::reconcile::change::{STANDING, change, is_own};
use crate::reconcile::memory::{Stage, Work};
use crate::reconcile::report::{Report, dated};
use crate::resources::OwnedStatus;
use crate::wire::object::{LifecycleObject, has_lifecycle};
use crate::wire::status::{RecordedFailure, Status};

impl<A: Application> Reconciliation<'_, A> {
    /// Renders the status of a draft, and compares it with the stored one.
    pub(super) async fn draft(&mut self, draft: Draft) {
        let status = match self.shared.pass_graph() {
            _ if has_lifecycle::<A::Resource>() => self.of_life(&draft).await,
            Some(graph) if self.round.stored.asked.is_paused() => self.of_paused_pass(graph),
            Some(graph) => self.of_pass_alone(&draft, graph).await,
            // Every application has one or the other.
            None => return,
        };
        let news = match change(&*self.round.object, &status, self.shared.pass_graph()) {
            News::Side | News::Main
                if self.memory.is_in_vain(self.round.object.meta(), &status) =>
            {
                News::Vain
            }
            news => news,
        };
        if matches!(news, News::None | News::Vain) {
            self.is_reported(&status);
        }
        self.round.draft = Some((draft, news, status));
    }

    /// Notes that this status is stored.
    pub(super) fn is_reported(&mut self, status: &StatusOf<A>) {
        let position = status.lifecycle.as_ref();
        if let Some(action) = position.and_then(|position| position.action.as_ref())
            && let Some(piece) = &self.memory.work.piece
            && let Some(progress) = &piece.progress
        {
            progress.shown(&action.message);
        }
        if !has_lifecycle::<A::Resource>() {
            let version = &self.round.object.meta().resource_version;
            self.memory.seen.version.clone_from(version);
            self.memory.seen.reported = true;
            self.memory.pass.is_unreported = false;
        }
    }

    /// Renders the status of an object with a lifecycle.
    async fn of_life(&mut self, draft: &Draft) -> StatusOf<A> {
        let extra = self.extra().await;
        let resources = self.resources(draft);
        let of_pass = self.conditions_of_pass(draft);
        let facts = self.facts();
        let facts = facts.for_conditions();
        let nothing = Findings::nothing();
        let report = Report {
            object: &*self.round.object,
            now: self.shared.clock.now(),
            after: &draft.record,
            facts: &facts,
            decision: &draft.step,
            observed: &self.round.findings.as_ref().unwrap_or(&nothing).words,
            failed: failed::<StateOf<A>>(&draft.step, &self.memory.work),
            progress: self.progress(draft),
            resources: &resources,
            recorded_resources: self.recorded_resources(),
            of_pass: &of_pass,
            extra,
            delivered: self.shared.telemetry.delivered(self.uid()),
            graph: &self.shared.graph,
        };
        let mut status = report.status();
        if draft.hold == Hold::AsBefore {
            keep_standing(&mut status, &*self.round.object);
        }
        status
    }

    /// Renders the status of an object that has a pass and no lifecycle.
    async fn of_pass_alone(
        &mut self,
        draft: &Draft,
        graph: &'static Graph<'static>,
    ) -> StatusOf<A> {
        let resources = match (&self.round.run, draft.hold) {
            (_, Hold::Resources(_)) | (None, _) => self.resources(draft),
            (Some((run, _)), _) => run.resources.clone(),
        };
        let way = match &self.round.run {
            Some((run, _)) => Way::Ran(&run.run),
            None => Way::Leaving,
        };
        let asked = &self.round.stored.asked;
        let conditions =
            conditions::of_pass_run(graph, way, resources.words(), asked.deleting, asked.paused);
        let conditions = self.dated(conditions);
        Status {
            observed_generation: Some(asked.generation),
            lifecycle: None,
            conditions,
            recorded_resources: self.recorded_resources(),
            extra: self.extra().await,
        }
    }

    /// Renders the status of such an object while it is paused: the stored one, with the condition `Paused` renewed.
    fn of_paused_pass(&self, graph: &'static Graph<'static>) -> StatusOf<A> {
        let fresh =
            conditions::of_pass_run(graph, Way::Paused, OwnedWords::AsDeclared, false, true);
        let fresh = self.dated(fresh);
        let mut status = self.round.object.status_of().cloned().unwrap_or_default();
        (status.conditions).retain(|it| is_own::<StateOf<A>>(&it.type_, Some(graph)));
        if status.conditions.is_empty() {
            status.conditions = fresh;
            status.observed_generation = self.round.object.meta().generation;
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
        let object = &*self.round.object;
        let conditions = conditions.into_iter();
        conditions.map(|it| dated(object, now, it)).collect()
    }

    /// Computes the fields that the application adds to the status, once for each state of the object.
    async fn extra(&mut self) -> ExtraOf<A> {
        if let Some(extra) = &self.round.extra {
            return extra.clone();
        }
        let asker = self.asker();
        let application = &*self.shared.application;
        let silence = &mut self.memory.sight.extra_silence;
        let said = extra(&asker, application, &self.round.cx, silence).await;
        self.round.extra = Some(said.clone());
        said
    }

    /// Returns what keeps the object from being ready besides its lifecycle, as text.
    fn resources(&self, draft: &Draft) -> OwnedStatus {
        match draft.hold {
            Hold::None | Hold::AsBefore => OwnedStatus::AsDeclared,
            Hold::Unchecked => {
                let state = draft.record.at().map(|record| record.state);
                let name = state.map_or("", |state| StateOf::<A>::GRAPH.name_of(state));
                OwnedStatus::Awaited(format!("the resources of {name} are not checked yet"))
            }
            Hold::Pass(_) => self
                .of_run()
                .map_or(OwnedStatus::AsDeclared, OwnedStatus::Failed),
            Hold::Stopping => OwnedStatus::Failed(Failure::retry(
                reasons::STOPPING,
                "this operator is stopping; the next one continues",
            )),
            Hold::Resources(_) => self.memory.owned.status.clone(),
        }
    }

    /// Returns why the pass keeps the object from being ready: from the run of this reconciliation, or from the last
    /// one.
    fn of_run(&self) -> Option<Failure> {
        match &self.round.run {
            Some((run, _)) => run.in_the_way(),
            None => self.memory.pass.held.as_ref().map(|(why, _)| why.clone()),
        }
    }

    /// Returns the conditions of the pass of an object with a lifecycle.
    fn conditions_of_pass(&self, draft: &Draft) -> Vec<Condition> {
        let Some(graph) = self.shared.pass_graph() else {
            return Vec::new();
        };
        let held = self.memory.pass.held.as_ref();
        match (&self.round.run, held) {
            (Some((run, _)), _) => conditions::of_pass(graph, Way::Ran(&run.run)),
            (None, Some((_, said))) if draft.hold == Hold::Pass(RunEnd::Held) => said.clone(),
            (None, _) if self.round.stored.recorded == Recorded::Nothing => {
                conditions::of_pass(graph, Way::Ran(&PassRun::begin(graph, false)))
            }
            (None, _) if self.round.stored.asked.deleting => {
                conditions::of_pass(graph, Way::Leaving)
            }
            (None, _) => self.said_before(graph),
        }
    }

    /// Returns the stored conditions of a pass that does not run now.
    fn said_before(&self, graph: &'static Graph<'static>) -> Vec<Condition> {
        let status = self.round.object.status_of();
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

    /// Returns the record of the owned resources; the stored one if they were not checked.
    fn recorded_resources(&self) -> Vec<String> {
        let before = || {
            let status = self.round.object.status_of();
            status.map(|it| it.recorded_resources.clone())
        };
        let now = self.memory.owned.to_record.clone();
        now.or_else(before).unwrap_or_default()
    }

    /// Returns the progress text of the work on record.
    fn progress(&self, draft: &Draft) -> String {
        let piece = self.memory.work.piece.as_ref();
        let piece = piece.filter(|piece| !matches!(piece.stage, Stage::New));
        match draft.work {
            WorkChange::New | WorkChange::None => String::new(),
            WorkChange::Keep | WorkChange::Retry | WorkChange::Wait => piece
                .and_then(|piece| piece.progress.as_ref())
                .map_or_else(String::new, Progress::text),
        }
    }
}

/// Returns the failure to record, if it is news.
pub(crate) fn failed<S: Lifecycle>(step: &Verdict, work: &Work) -> Option<RecordedFailure> {
    if let Verdict::End(Ending::Refused(to)) = step {
        let to = S::from_id(*to).map_or("Next", Lifecycle::name);
        return Some(RecordedFailure::new(
            reasons::NO_EDGE,
            &format!("the handler named `{to}`, to which no edge leads from here"),
        ));
    }
    let failure = work.failure()?;
    // Alternating reasons would cause a write for each attempt.
    let is_uncounted = matches!(step, Verdict::Retry { counted: false });
    let has_reported = |reason| {
        let piece = work.piece.as_ref();
        piece.is_some_and(|piece| piece.has_reported(reason))
    };
    (!(is_uncounted && has_reported(failure.reason())))
        .then(|| RecordedFailure::new(failure.reason(), failure.message()))
}

/// Keeps the stored `Ready`, `Reconciling` and `Stalled` if the stored `Ready` is worse than what the lifecycle says, for
/// a reason of owned resources, of the pass or of your code.
///
/// These are not checked while the object is paused, and an operator that has just started does not know them.
fn keep_standing<K: LifecycleObject>(status: &mut Status<K::State, K::Extra>, object: &K) {
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
    let is_standing = |it: &meta::Condition| STANDING.contains(&it.type_.as_str());
    status.conditions.retain(|it| !is_standing(it));
    let kept = stored.iter().filter(|it| is_standing(it));
    let kept = kept.map(|it| meta::Condition {
        observed_generation: status.observed_generation,
        ..it.clone()
    });
    status.conditions.splice(..0, kept);
}
