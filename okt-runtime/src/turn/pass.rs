//! The pass in a turn: all that is done for a resource without a lifecycle, and what comes first for one with it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::Resource as _;
use okt_core::conditions::{self, Condition, Way};
use okt_core::pass::Walk;
use okt_core::record::Recorded;
use okt_core::{ConditionStatus, Graph, Lifecycle, StateId};

use super::{SAFETY, StatusOf, Turn};
use crate::again::Again;
use crate::annotations;
use crate::application::{Application, StateOf};
use crate::change::is_own;
use crate::failure::Failure;
use crate::finalizer;
use crate::look::extra;
use crate::object::LifecycleObject;
use crate::pass::{Walked, walk};
use crate::report::dated;
use crate::resources::{self, Resources, Settlement};
use crate::status::Status;

/// What has come of the pass of an object with a lifecycle.
pub(super) struct Strolled {
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
    pub(super) async fn stroll(
        &mut self,
        recorded: &Recorded,
        releases: bool,
        poked: bool,
    ) -> Strolled {
        let mut strolled = Strolled {
            hold: None,
            is_whole: true,
            prunes: true,
            put: Resources::new(),
            conditions: Vec::new(),
        };
        let Some(graph) = self.shared.pass_graph() else {
            return strolled;
        };
        if matches!(recorded, Recorded::Nothing) && !releases {
            // What the pass made would be taken for a sign that the application is there.
            let walk = Walk::begin(graph, false);
            strolled.conditions = conditions::of_pass(graph, Way::Walked(&walk));
            strolled.is_whole = false;
            return strolled;
        }
        let finalizes = Walk::finalizes(graph);
        let generation = self.object.meta().generation.unwrap_or(0);
        let walks = &self.inner.walks;
        let waits = walks.wait(generation).is_some() && !poked && !walks.is_due();
        if waits && let Some((why, conditions)) = &self.inner.walks.held {
            strolled.hold = Some(why.clone());
            strolled.is_whole = false;
            strolled.conditions.clone_from(conditions);
            return strolled;
        }
        if self.is_paused() || !self.shared.may_start() {
            self.inner.walks.pass_over();
            strolled.conditions = self.said_before(graph);
            strolled.hold = short(graph, &strolled.conditions);
            strolled.is_whole = strolled.hold.is_none();
            return strolled;
        }
        let walked = match (self.deleting, releases && finalizes) {
            (true, false) => None,
            (deleting, _) => self.walked(deleting, false).await,
        };
        let Some(walked) = walked else {
            self.inner.walks.pass_over();
            // What the pass has put goes after the life of the object.
            strolled.prunes = false;
            strolled.conditions = conditions::of_pass(graph, Way::Leaving);
            return strolled;
        };
        strolled.hold = walked.in_the_way();
        strolled.is_whole = walked.is_whole();
        strolled.conditions = conditions::of_pass(graph, Way::Walked(&walked.walk));
        strolled.put = walked.put;
        if let (Some(why), false) = (&strolled.hold, strolled.is_whole) {
            let held = (why.clone(), strolled.conditions.clone());
            self.inner.walks.held = Some(held);
        }
        strolled
    }

    /// One turn of an object without a lifecycle.
    pub(super) async fn walk(mut self) -> Again {
        let generation = self.object.meta().generation.unwrap_or(0);
        self.shared.cluster.note_references(&self.object);
        if self.deleting && annotations::is_abandoned(self.object.meta()) {
            return self.let_go(true).await;
        }
        let poked = self.known.take_poke();
        let walks = &self.inner.walks;
        let is_due = walks.is_due() || self.inner.tended.due().is_some_and(|left| left.is_zero());
        let is_echo = walks.echo && self.inner.seen == self.object.meta().resource_version;
        let waits = is_echo || walks.wait(generation).is_some();
        let wanted = is_due || poked || walks.untold || self.is_pause_news();
        if waits && !wanted {
            return self.next_walk(false);
        }
        let Some(graph) = self.shared.pass_graph() else {
            return Again::on_change();
        };
        let finalizes = Walk::finalizes(graph);
        if self.is_paused() {
            self.inner.walks.pass_over();
            self.inner.tended.pass_over();
            return self.say(&self.paused(graph)).await;
        }
        let walked = if self.deleting && !finalizes {
            None
        } else {
            self.walked(self.deleting, true).await
        };
        if !self.shared.may_act() {
            return Again::on_change();
        }
        let mut settlement = Settlement::AsDeclared;
        if let Some(walked) = &walked {
            settlement = walked.settlement.clone();
        }
        if self.deleting && walked.as_ref().is_none_or(Walked::is_whole) {
            let put = walked.as_ref().map(|walked| walked.put.clone());
            if self.clear(put.unwrap_or_default()).await {
                return self.let_go(false).await;
            }
            settlement = self.inner.tended.settlement.clone();
        }
        let way = (walked.as_ref()).map_or(Way::Leaving, |walked| Way::Walked(&walked.walk));
        let paused = annotations::is_paused(self.object.meta());
        let conditions = conditions::of_walk(graph, way, settlement.words(), self.deleting, paused);
        let now = self.shared.clock.now();
        let status = Status {
            observed_generation: Some(generation),
            lifecycle: None,
            conditions: (conditions.into_iter())
                .map(|condition| dated(&*self.object, now, condition))
                .collect(),
            extra: extra(&*self.shared.application, &self.cx).await,
        };
        self.say(&status).await
    }

    /// Writes a status, if it is news, and plans the next walk.
    async fn say(&mut self, status: &StatusOf<A>) -> Again {
        let seen = self.inner.seen.clone();
        match self.publish(status).await {
            Ok(side_waits) => {
                // What waits to be said is said by another walk.
                self.inner.walks.echo |= self.inner.seen != seen;
                self.inner.walks.untold = side_waits;
                self.next_walk(side_waits)
            }
            Err(again) => again,
        }
    }

    fn next_walk(&self, side_waits: bool) -> Again {
        let side = side_waits.then(|| self.inner.side_wait());
        let due = [self.inner.walks.due(), self.inner.tended.due(), side];
        Again::soonest(due.into_iter().flatten())
    }

    /// Deletes what Kubernetes will not delete with the object; whether nothing of it is left.
    pub(super) async fn clear(&mut self, put: Resources) -> bool {
        resources::clear(self.shared, &self.cx, &mut self.inner.tended, put).await
    }

    /// Drops the finalizer.
    async fn let_go(&mut self, abandoned: bool) -> Again {
        if !self.shared.may_act() {
            return Again::after(SAFETY);
        }
        finalizer::release(self.shared, self.object.meta(), self.inner, "", abandoned).await
    }

    async fn walked(&mut self, deleting: bool, prunes: bool) -> Option<Walked> {
        let position = self.position();
        let state = position.and_then(|position| position.state.known());
        let pace = resources::pace(
            self.shared,
            &self.cx,
            state.map_or(StateId::UNKNOWN, Lifecycle::id),
        );
        self.inner.walks.echo = false;
        self.inner.walks.untold = true;
        let tended = &mut self.inner.tended;
        let walked = walk(self.shared, &self.cx, tended, pace, deleting, prunes).await?;
        let generation = self.object.meta().generation.unwrap_or(0);
        self.inner.walks.take(&walked, generation, &pace);
        Some(walked)
    }

    /// Whether the status says of the pause what is not so.
    fn is_pause_news(&self) -> bool {
        let status = self.object.status_of();
        let paused = status.and_then(|it| it.conditions.iter().find(|it| it.type_ == "Paused"));
        paused.is_some_and(|it| (it.status == "True") != self.is_paused())
    }

    /// The status of a paused object: as it was, but for the pause.
    fn paused(&self, graph: &'static Graph<'static>) -> StatusOf<A> {
        let now = self.shared.clock.now();
        let fresh = conditions::of_walk(
            graph,
            Way::Paused,
            conditions::Resources::AsDeclared,
            false,
            true,
        );
        let fresh: Vec<_> = (fresh.into_iter())
            .map(|condition| dated(&*self.object, now, condition))
            .collect();
        let mut status = self.object.status_of().cloned().unwrap_or_default();
        (status.conditions).retain(|it| is_own::<StateOf<A>>(&it.type_, Some(graph)));
        if status.conditions.is_empty() {
            status.conditions = fresh;
            status.observed_generation = self.object.meta().generation;
            return status;
        }
        // What was asked for since is not looked at.
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
}

/// The first condition of a pass that says the opposite of what its state declares.
fn short(graph: &Graph<'_>, said: &[Condition]) -> Option<Failure> {
    let mut declared = graph.states.iter().flat_map(|state| state.conditions);
    declared.find_map(|declared| {
        let said = said.iter().find(|said| said.name == declared.name)?;
        // Of a state that was not reached nobody knows.
        let is_short = said.status != declared.status && said.status != ConditionStatus::Unknown;
        is_short.then(|| Failure::retry(&said.reason, &said.message))
    })
}
