//! What comes before the work of an object with a lifecycle: its pass.

use kube::Resource as _;
use okt_core::conditions::{self, Condition, Way};
use okt_core::pass::Walk;
use okt_core::record::Recorded;
use okt_core::{ConditionStatus, Graph, reasons};

use super::Turn;
use crate::application::Application;
use crate::failure::Failure;
use crate::object::LifecycleObject;
use crate::resources::Resources;

/// What has come of the pass of an object with a lifecycle.
pub(super) struct Prelude {
    /// Why the object is not ready.
    pub(super) hold: Option<Failure>,
    /// Whether work may begin.
    pub(super) is_whole: bool,
    /// Whether all is known that the pass wants.
    pub(super) prunes: bool,
    /// What its steps have put.
    pub(super) put: Resources,
    /// What its states say.
    pub(super) conditions: Vec<Condition>,
}

impl<A: Application> Turn<'_, A> {
    /// Walks through the pass of an object with a lifecycle: before its work, and when its life is over.
    pub(super) async fn prelude(
        &mut self,
        recorded: &Recorded,
        releases: bool,
        poked: bool,
    ) -> Prelude {
        let mut prelude = Prelude {
            hold: None,
            is_whole: true,
            prunes: true,
            put: Resources::new(),
            conditions: Vec::new(),
        };
        let Some(graph) = self.shared.pass_graph() else {
            return prelude;
        };
        if matches!(recorded, Recorded::Nothing) && !releases {
            // What the pass made would be taken for a sign that the application is there.
            let walk = Walk::begin(graph, false);
            prelude.conditions = conditions::of_pass(graph, Way::Walked(&walk));
            prelude.is_whole = false;
            return prelude;
        }
        let finalizes = Walk::finalizes(graph);
        let generation = self.object.meta().generation.unwrap_or(0);
        let walks = &self.inner.walks;
        let waits = walks.wait(generation).is_some() && !poked && !walks.is_due();
        if waits && let Some((why, conditions)) = &self.inner.walks.held {
            prelude.hold = Some(why.clone());
            prelude.is_whole = false;
            prelude.conditions.clone_from(conditions);
            return prelude;
        }
        if releases && finalizes && !self.shared.may_start() {
            // The next operator takes the way for deletion.
            let why = "this operator is stopping; the next one goes on";
            prelude.hold = Some(Failure::retry(reasons::STOPPING, why));
            prelude.is_whole = false;
            prelude.conditions = conditions::of_pass(graph, Way::Leaving);
            return prelude;
        }
        if self.is_paused() || !self.shared.may_start() {
            self.inner.walks.pass_over();
            prelude.conditions = self.said_before(graph);
            prelude.hold = self.short(graph, &prelude.conditions);
            prelude.is_whole = prelude.hold.is_none();
            return prelude;
        }
        let walked = match (self.deleting, releases && finalizes) {
            (true, false) => None,
            (deleting, _) => self.walked(deleting, false).await,
        };
        let Some(walked) = walked else {
            self.inner.walks.pass_over();
            // What the pass has put goes after the life of the object.
            prelude.prunes = false;
            prelude.conditions = conditions::of_pass(graph, Way::Leaving);
            return prelude;
        };
        prelude.hold = walked.in_the_way();
        prelude.is_whole = walked.is_whole();
        prelude.conditions = conditions::of_pass(graph, Way::Walked(&walked.walk));
        prelude.put = walked.put;
        if let (Some(why), false) = (&prelude.hold, prelude.is_whole) {
            let held = (why.clone(), prelude.conditions.clone());
            self.inner.walks.held = Some(held);
        }
        prelude
    }

    /// What the states of the pass of a paused object said before the pause.
    fn said_before(&self, graph: &'static Graph<'static>) -> Vec<Condition> {
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

    /// The first condition of a pass that says the opposite of what its state declares; for good where the object is
    /// stalled.
    fn short(&self, graph: &Graph<'_>, said: &[Condition]) -> Option<Failure> {
        let status = self.object.status_of();
        let mut stored = status.into_iter().flat_map(|status| &status.conditions);
        let is_stalled = stored.any(|it| it.type_ == "Stalled" && it.status == "True");
        let mut declared = graph.states.iter().flat_map(|state| state.conditions);
        declared.find_map(|declared| {
            let said = said.iter().find(|said| said.name == declared.name)?;
            // Of a state that was not reached nobody knows.
            let is_short =
                said.status != declared.status && said.status != ConditionStatus::Unknown;
            let failure = if is_stalled {
                Failure::permanent
            } else {
                Failure::retry
            };
            is_short.then(|| failure(&said.reason, &said.message))
        })
    }
}
