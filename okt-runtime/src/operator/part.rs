//! The part of an operator in one namespace, as monitoring sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use okt_core::Lifecycle;
use okt_sharding::gate::{Access, GateMember};
use okt_sharding::ranges::RANGES;
use okt_telemetry::operators::{Inspected, NEW, QueueState, Replica, Tally, UNKNOWN};
use okt_wire::watch::TOO_SILENT;

use crate::author::application::{Application, StateOf};
use crate::cache::arrived::Unsettled;
use crate::cache::objects::Objects;
use crate::crd::readiness::Readiness;
use crate::operator::watching::QueueOf;
use crate::reconcile::shared::Shared;

/// The part of an operator in one namespace, or all of it.
pub(super) struct OperatorPart<A: Application> {
    pub(super) controller: String,
    pub(super) shared: Arc<Shared<A>>,
    pub(super) objects: Arc<Objects<A::Resource>>,
    pub(super) queue: Arc<QueueOf<A>>,
}

impl<A: Application> Inspected for OperatorPart<A> {
    fn controller(&self) -> &str {
        &self.controller
    }

    fn queue(&self) -> QueueState {
        self.queue.state()
    }

    fn tally(&self, tally: &mut Tally) {
        for state in StateOf::<A>::GRAPH.states {
            tally.may_have(state.name);
        }
        let gates = StateOf::<A>::GRAPH.gates;
        for gate in gates {
            tally.may_pass(gate.name);
        }
        self.objects.for_each(|object| {
            let uid = object.meta().uid.as_deref().unwrap_or_default();
            // A standby has all objects in its cache.
            if self.shared.gate.access(uid) == Access::Closed {
                return;
            }
            let glance = object.glance();
            let state = match glance.state {
                None => NEW,
                Some(id) => StateOf::<A>::from_id(id).map_or(UNKNOWN, Lifecycle::name),
            };
            let time = glance
                .since
                .map_or(Duration::ZERO, |since| self.shared.clock.since(since));
            tally.count(state, time);
            match &glance.unsettled {
                Some((Unsettled::Stalled, reason)) => tally.stalled.count(reason),
                Some((Unsettled::Reconciling, reason)) => tally.reconciling.count(reason),
                None => {}
            }
            if let Some((gate, group)) = glance.waiting.as_deref() {
                tally.waiting.count(gate, group);
            }
            let inside = gates
                .iter()
                .filter(|gate| glance.state.is_some_and(|it| gate.states.contains(&it)));
            for gate in inside {
                let limits = self.shared.limits.as_ref();
                let group = limits.and_then(|it| it.group(gate, uid));
                tally.inside.count(gate.name, &group.unwrap_or_default());
            }
        });
    }

    fn unready(&self) -> Option<String> {
        match &*self.shared.readiness.borrow() {
            Readiness::Unknown => return Some("the CRD is not read yet".to_owned()),
            Readiness::Unfit(why) => return Some(why.clone()),
            Readiness::Fit { .. } => {}
        }
        if !self.shared.is_warm() {
            return Some("the caches are not filled yet".to_owned());
        }
        let silent = |(_, silence): &(String, Duration)| *silence >= TOO_SILENT;
        let (kind, silence) = self.silences().into_iter().find(silent)?;
        let silence = Duration::from_secs(silence.as_secs());
        Some(format!(
            "the API server has not served the watch of {kind} for {silence:?}"
        ))
    }

    fn silences(&self) -> BTreeMap<String, Duration> {
        let mut silences = self.shared.connection.watched.silences();
        silences.extend(self.shared.gate.silences());
        silences
    }

    fn pending(&self) -> Option<usize> {
        self.shared.telemetry.pending()
    }

    fn replica(&self) -> Option<Replica> {
        let share = self.shared.gate.share()?;
        Some(Replica {
            group: share.group,
            ranges: share.ranges.len(),
            of: usize::from(RANGES),
            epoch: share.epoch,
        })
    }
}
