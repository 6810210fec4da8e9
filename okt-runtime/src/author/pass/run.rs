//! One run of a pass: its steps one after the other, each with panics contained, then the resources they have put.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use okt_core::pass::{Operations, PassOutcome, PassRun, Step};
use okt_core::{Answer, StateId, reasons};
use okt_reach::Failure;
use okt_wire::object::LifecycleObject;

use super::{Pass, Steps, soonest};
use crate::author::asked::CallGuard;
use crate::author::context::Context;
use crate::resources::{
    AllowedWrites, ApplyReport, Cluster, OwnedMemory, OwnedStatus, Owner, Pace, Resources, Site,
    listed,
};

/// How long until a resource that is not ready is checked again, in case its event is lost.
const UNREADY: Duration = Duration::from_mins(1);

/// Applies the resources that steps have put.
pub(crate) struct Hands {
    pub(crate) client: Client,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) pace: Pace,
    /// False for an object that is being deleted: OKT creates no resources for it.
    pub(crate) creates: bool,
    /// Whether the object has OKT's finalizer, so that the operator can delete resources before it is gone.
    pub(crate) finalizes: bool,
    pub(crate) may_act: Box<dyn Fn() -> bool + Send + Sync>,
    pub(crate) memory: OwnedMemory,
}

impl Hands {
    /// Applies the resources that were put so far. With `prunes` it deletes the owned resources that were not put.
    pub(super) async fn apply(
        &mut self,
        owner: Owner<'_>,
        resources: &Resources,
        prunes: bool,
    ) -> Result<ApplyReport, Failure> {
        if !self.finalizes && resources.leaves_something() {
            let why = "the operator has to delete what is `unowned` or has a `wave`, and this pass has no steps for deletion: declare a trigger `on_delete`";
            return Err(Failure::permanent(reasons::resources::BAD_RESOURCE, why));
        }
        let site = Site {
            client: &self.client,
            cluster: &self.cluster,
            owner,
            may_write: &*self.may_act,
        };
        site.check_leader()?;
        let leave = AllowedWrites {
            state: None,
            creates: self.creates,
            prunes,
        };
        Ok(self.memory.apply(site, self.pace, leave, resources).await)
    }
}

/// A pass run that has ended.
pub(crate) struct FinishedRun {
    pub(crate) run: PassRun<'static>,
    /// The resources that its steps have put.
    pub(crate) put: Resources,
    /// Whether the resources that no step has put are gone, if nothing else is in the way.
    pub(crate) resources: OwnedStatus,
    /// How long until the resources are due again.
    pub(crate) due: Option<Duration>,
}

impl FinishedRun {
    /// Returns what keeps the object from being ready.
    pub(crate) fn in_the_way(&self) -> Option<Failure> {
        self.run.in_the_way().map(Failure::of_step)
    }

    /// Returns whether the run reached a leaf, without a failure.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(
            self.run.outcome(),
            PassOutcome::Complete | PassOutcome::Short { .. }
        )
    }
}

/// Runs the pass of an object and applies what its steps declared.
pub(crate) async fn run<K: LifecycleObject>(
    steps: &impl Steps<K>,
    asker: &CallGuard<'_, K>,
    cx: &Context<K>,
    hands: Hands,
    prunes: bool,
) -> (FinishedRun, OwnedMemory) {
    let deleting = !hands.creates;
    let given = Pass::new(cx.clone(), hands);
    let mut run = PassRun::begin(steps.graph(), deleting);
    while let Some(here) = run.at() {
        given.enter(here, &run);
        let step = steps.take(&given, here);
        let answer = match asker.ask(steps.limit(), step).await {
            Ok(answer) => answer,
            Err(unanswered) => {
                let name = steps.graph().name_of(here);
                Err(unanswered.failure(&format!("{name} was not done")))
            }
        };
        run.take(given.awaiting(answer).map_err(Into::into));
        run.count(given.done_so_far());
    }
    let mut finished = FinishedRun {
        run,
        put: Resources::new(),
        resources: OwnedStatus::AsDeclared,
        due: None,
    };
    if finished.is_whole() && !deleting {
        given.finish(&mut finished, prunes).await;
    }
    let operations = finished.run.results().operations;
    if !operations.is_none() {
        let Operations {
            applied,
            deleted,
            failed,
        } = operations;
        tracing::debug!(applied, deleted, failed, "ran the pass");
    }
    let Pass { put, hands, .. } = given;
    let put = put.into_inner();
    // OKT creates no resources for an object that is being deleted.
    if !finished.is_whole() && !deleting {
        for (state, _) in put.whose.iter().filter(|(_, made)| !made) {
            finished.run.unapplied(*state);
        }
    }
    finished.due = soonest(finished.due, put.due);
    finished.put = put.resources;
    (finished, hands.into_inner().memory)
}

impl<K: LifecycleObject> Pass<K> {
    fn enter(&self, at: StateId, run: &PassRun<'_>) {
        let mut put = self.put.lock();
        put.at = Some(at);
        put.results = run.results().clone();
    }

    /// Takes the operations of the commits in the step that has just ended.
    fn done_so_far(&self) -> Operations {
        let mut put = self.put.lock();
        std::mem::take(&mut put.operations)
    }

    /// Converts the failure of a commit that waits, if the step returned it, to a step that waits.
    fn awaiting(&self, answer: Result<Step<Answer>, Failure>) -> Result<Step<Answer>, Failure> {
        let awaited = self.put.lock().awaited.take();
        match answer {
            Err(failure) if Some(&failure) == awaited.as_ref() => {
                Ok(Step::wait(failure.reason(), UNREADY).text(failure.message()))
            }
            answer => answer,
        }
    }

    /// Applies the remaining resources, and reports problems for the states that have put them.
    async fn finish(&self, finished: &mut FinishedRun, prunes: bool) {
        let resources = self.put.lock().resources.clone();
        let mut hands = self.hands.lock().await;
        let run = &mut finished.run;
        let report = match hands
            .apply(Owner::of(self.object()), &resources, prunes)
            .await
        {
            Ok(report) => report,
            Err(failure) => return run.blame(StateId::UNKNOWN, &failure.into()),
        };
        self.publish(&report);
        let mut put = self.put.lock();
        put.report(&report);
        run.count(std::mem::take(&mut put.operations));
        let mut awaited: BTreeMap<StateId, Vec<String>> = BTreeMap::new();
        let (mut all_awaited, mut failed) = (Vec::new(), false);
        let whose = |index: Option<usize>| Some(put.whose.get(index?)?.0);
        for (index, failure) in &report.failures {
            if let Some(state) = whose(*index) {
                failed = true;
                run.blame(state, &failure.clone().into());
            }
        }
        for (index, what) in &report.awaited {
            if let Some(state) = whose(*index) {
                awaited.entry(state).or_default().push(what.clone());
                all_awaited.push(what.clone());
            }
        }
        for (state, what) in &awaited {
            run.hold(*state, reasons::resources::WAITING, &listed(what));
        }
        if !all_awaited.is_empty() {
            run.wait(reasons::resources::WAITING, &listed(&all_awaited));
            // In case the event is lost.
            finished.due = Some(UNREADY);
        }
        // No state has put the resources that are to be deleted.
        match report.status() {
            status if !failed && all_awaited.is_empty() => finished.resources = status,
            OwnedStatus::Failed(failure) if !failed => {
                finished.run.blame(StateId::UNKNOWN, &failure.into());
            }
            OwnedStatus::AsDeclared | OwnedStatus::Awaited(_) | OwnedStatus::Failed(_) => {}
        }
    }
}
