//! All that is done for a resource without a lifecycle: its pass.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::Resource as _;
use okt_core::Graph;
use okt_core::conditions::{self, Way};
use okt_core::pass::Walk;

use super::{StatusOf, Turn};
use crate::again::Again;
use crate::annotations;
use crate::application::{Application, StateOf};
use crate::change::is_own;
use crate::object::LifecycleObject;
use crate::pass::Walked;
use crate::report::dated;
use crate::resources::Settlement;
use crate::status::Status;

impl<A: Application> Turn<'_, A> {
    /// One turn of an object without a lifecycle.
    pub(super) async fn walk(mut self) -> Again {
        let generation = self.object.meta().generation.unwrap_or(0);
        self.shared.cluster.note_references(&self.object);
        if self.deleting && annotations::is_abandoned(self.object.meta()) {
            return self.release(true).await;
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
            self.inner.walks.untold = true;
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
                return self.release(false).await;
            }
            settlement = self.inner.tended.settlement.clone();
        } else {
            self.inner.tended.put_off();
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
            recorded_resources: self.recorded_resources(),
            extra: self.extra().await,
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

    /// Whether the status says of the pause what is not so.
    fn is_pause_news(&self) -> bool {
        let status = self.object.status_of();
        let paused = status.and_then(|it| it.conditions.iter().find(|it| it.type_ == "Paused"));
        let is_paused = annotations::is_paused(self.object.meta());
        paused.is_some_and(|it| (it.status == "True") != is_paused)
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
}
