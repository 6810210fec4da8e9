//! One walk through a pass: its steps one after the other, each contained, then what they have put.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use okt_core::pass::{Operations, Outcome, Step, Walk};
use okt_core::{Answer, StateId, reasons};

use super::{Pass, Steps, soonest};
use crate::author::asked::Asker;
use crate::author::context::Context;
use crate::failure::Failure;
use crate::resources::{
    Cluster, Leave, Pace, Resources, Settled, Settlement, Site, Tended, listed,
};
use crate::wire::object::LifecycleObject;

/// How long until what is not ready is looked at again, in case its event does not come.
const UNREADY: Duration = Duration::from_mins(1);

/// What brings about what steps have put.
pub(crate) struct Hands<K> {
    pub(crate) client: Client,
    pub(crate) cluster: Arc<Cluster<K>>,
    pub(crate) pace: Pace,
    /// Nothing is made for an object that is being deleted.
    pub(crate) creates: bool,
    /// The object does not go without the operator.
    pub(crate) finalizes: bool,
    pub(crate) may_act: Box<dyn Fn() -> bool + Send + Sync>,
    pub(crate) tended: Tended,
}

impl<K: LifecycleObject> Hands<K> {
    /// Brings about what was put so far; what was not is deleted, if the walk is whole.
    pub(super) async fn settle(
        &mut self,
        cx: &Context<K>,
        resources: &Resources,
        prunes: bool,
    ) -> Result<Settled, Failure> {
        if !self.finalizes && resources.leaves_something() {
            let why = "what is declared `unowned` or with a `wave` has to be deleted by the operator, and this pass has no way for deletion: declare a trigger `on_delete`";
            return Err(Failure::permanent(reasons::resources::BAD_RESOURCE, why));
        }
        let site = Site {
            client: &self.client,
            cluster: &self.cluster,
            object: cx.object(),
            may_write: &*self.may_act,
        };
        site.check_lead()?;
        let leave = Leave {
            creates: self.creates,
            prunes,
        };
        Ok(self.tended.settle(site, self.pace, leave, resources).await)
    }
}

/// A walk that is over.
pub(crate) struct Walked {
    pub(crate) walk: Walk<'static>,
    /// What its steps have put.
    pub(crate) put: Resources,
    /// Whether what they have not put is gone, where nothing else is in the way.
    pub(crate) settlement: Settlement,
    /// When something of it is due.
    pub(crate) due: Option<Duration>,
}

impl Walked {
    /// What keeps the object from being ready.
    pub(crate) fn in_the_way(&self) -> Option<Failure> {
        self.walk.in_the_way().map(Failure::of_step)
    }

    /// Whether every step was taken that leads to a leaf, and none failed.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(
            self.walk.outcome(),
            Outcome::Complete | Outcome::Short { .. }
        )
    }
}

/// Walks through the pass of an object, and brings about what the steps have put.
pub(crate) async fn walk<K: LifecycleObject>(
    steps: &impl Steps<K>,
    asker: &Asker<'_, K>,
    cx: &Context<K>,
    hands: Hands<K>,
    deleting: bool,
    prunes: bool,
) -> (Walked, Tended) {
    let given = Pass {
        context: cx.clone(),
        put: Mutex::default(),
        hands: tokio::sync::Mutex::new(hands),
    };
    let mut walk = Walk::begin(steps.graph(), deleting);
    while let Some(here) = walk.at() {
        given.enter(here, &walk);
        let step = steps.take(&given, here);
        let said = match asker.ask(steps.limit(), step).await {
            Ok(said) => said,
            Err(unanswered) => {
                let name = steps.graph().name_of(here);
                Err(unanswered.failure(&format!("{name} was not done")))
            }
        };
        walk.take(given.awaiting(said).map_err(Into::into));
        walk.count(given.done_so_far());
    }
    let mut walked = Walked {
        walk,
        put: Resources::new(),
        settlement: Settlement::AsDeclared,
        due: None,
    };
    if walked.is_whole() && !deleting {
        given.finish(&mut walked, prunes).await;
    }
    if !walked.walk.results().operations.is_none() {
        let Operations {
            applied,
            deleted,
            failed,
        } = walked.walk.results().operations;
        let object = cx.object().meta().name.as_deref().unwrap_or_default();
        tracing::debug!(object, applied, deleted, failed, "walked through");
    }
    let Pass { put, hands, .. } = given;
    let put = put
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    // Nothing is made for an object that is being deleted.
    if !walked.is_whole() && !deleting {
        for (state, _) in put.whose.iter().filter(|(_, made)| !made) {
            walked.walk.unapplied(*state);
        }
    }
    walked.due = soonest(walked.due, put.due);
    walked.put = put.resources;
    (walked, hands.into_inner().tended)
}

impl<K: LifecycleObject> Pass<K> {
    fn enter(&self, at: StateId, walk: &Walk<'_>) {
        let mut put = self.put_mut();
        put.at = Some(at);
        put.results = walk.results().clone();
    }

    /// What the commits of a step have done, which is over.
    fn done_so_far(&self) -> Operations {
        let mut put = self.put_mut();
        std::mem::take(&mut put.operations)
    }

    /// A step that handed on what a commit waits for waits itself.
    fn awaiting(&self, said: Result<Step<Answer>, Failure>) -> Result<Step<Answer>, Failure> {
        let awaited = self.put_mut().awaited.take();
        match said {
            Err(failure) if Some(&failure) == awaited.as_ref() => {
                Ok(Step::wait(failure.reason(), UNREADY).text(failure.message()))
            }
            said => said,
        }
    }

    /// Brings about what is left, for the states that have put it.
    async fn finish(&self, walked: &mut Walked, prunes: bool) {
        let resources = self.put_mut().resources.clone();
        let mut hands = self.hands.lock().await;
        let walk = &mut walked.walk;
        let settled = match hands.settle(&self.context, &resources, prunes).await {
            Ok(settled) => settled,
            Err(failure) => return walk.blame(StateId::UNKNOWN, &failure.into()),
        };
        let mut put = self.put_mut();
        put.settled(&settled);
        walk.count(std::mem::take(&mut put.operations));
        let mut awaited: BTreeMap<StateId, Vec<String>> = BTreeMap::new();
        let (mut all_awaited, mut failed) = (Vec::new(), false);
        for (index, short) in &settled.short {
            let Some((state, _)) = put.whose.get(*index) else {
                continue;
            };
            match short {
                Settlement::AsDeclared => {}
                Settlement::Awaited(what) => {
                    awaited.entry(*state).or_default().push(what.clone());
                    all_awaited.push(what.clone());
                }
                Settlement::Failed(failure) => {
                    failed = true;
                    walk.blame(*state, &failure.clone().into());
                }
            }
        }
        for (state, what) in &awaited {
            walk.hold(*state, reasons::resources::WAITING, &listed(what));
        }
        if !all_awaited.is_empty() {
            walk.wait(reasons::resources::WAITING, &listed(&all_awaited));
            // In case its event does not come.
            walked.due = Some(UNREADY);
        }
        // Of what is to go nobody has put anything.
        match settled.settlement {
            settlement if settled.short.is_empty() => walked.settlement = settlement,
            Settlement::Failed(failure) if !failed => {
                walked.walk.blame(StateId::UNKNOWN, &failure.into());
            }
            Settlement::AsDeclared | Settlement::Awaited(_) | Settlement::Failed(_) => {}
        }
    }
}
