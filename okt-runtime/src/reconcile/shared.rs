//! The values that all reconciliations of one operator share: the application, the queue, the telemetry.

use std::sync::Arc;

use kube::CustomResourceExt;
use kube::runtime::reflector::ObjectRef;
use okt_core::Graph;
use okt_core::backoff::Backoff;
use okt_core::machine::{Graphs, OperatorFacts, Setup};
use okt_sharding::gate::{Access, Gate, GateMember};
use okt_sharding::ranges::{Range, Ranges};
use okt_telemetry::Telemetry;
use okt_wire::clock::Clock;
use okt_wire::object::{LifecycleObject, lifecycle_of};
use okt_wire::watch::Connection;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::author::admission::Admission;
use crate::author::application::{Application, PassGraph};
use crate::author::asked::CallPermits;
use crate::author::context::Context;
use crate::cache::cached::Cached;
use crate::cache::history::History;
use crate::crd::readiness::Readiness;
use crate::limits::Limits;
use crate::reconcile::memory::ObjectMemory;
use crate::reconcile::permits::Permits;
use crate::reconcile::tasks::Tasks;
use crate::requests::RequestQueue;
use crate::resources::Cluster;
use crate::test_hooks::TestHooks;

/// The values that all reconciliations of one operator share.
pub(crate) struct Shared<A: Application> {
    pub(crate) application: Arc<A>,
    pub(crate) connection: Connection,
    pub(crate) cluster: Arc<Cluster>,
    /// The limits of the graph, if it has any.
    pub(crate) limits: Option<Arc<Limits<A>>>,
    /// How objects are checked and completed.
    pub(crate) admission: Admission<A::Resource>,
    /// The requests that objects serve.
    pub(crate) requests: RequestQueue,
    /// The pass that runs in every reconciliation.
    pub(crate) pass: Option<PassGraph<A>>,
    pub(crate) memory: ObjectMemory,
    pub(crate) history: History,
    pub(crate) tasks: Tasks,
    pub(crate) questions: Arc<CallPermits>,
    pub(crate) permits: Arc<Permits>,
    pub(crate) clock: Clock,
    pub(crate) test_hooks: TestHooks,
    pub(crate) backoff: Backoff,
    /// A hash of the graph.
    pub(crate) graph: String,
    pub(crate) readiness: watch::Receiver<Readiness>,
    /// Set when all objects were listed.
    pub(crate) listed: CancellationToken,
    /// Which objects this replica may act on.
    pub(crate) gate: Gate,
    /// Whether the watch has only a selection of the objects: one that disappears may still exist.
    pub(crate) is_selective: bool,
    /// Cancelled when the operator drains: running work may end, and no work begins.
    pub(crate) draining: CancellationToken,
    pub(crate) queue: mpsc::UnboundedSender<QueueRequest<A::Resource>>,
    pub(crate) telemetry: Telemetry,
}

/// A request to reconcile an object, in addition to the events of the watch.
pub(crate) enum QueueRequest<K: LifecycleObject> {
    /// Work of the object has ended, reports progress, or has got a permit.
    Reconcile(ObjectRef<Cached<K>>),
    /// A reconcile request, or an event of another object, named it.
    External(ObjectRef<Cached<K>>),
}

impl<A: Application> Shared<A> {
    /// Returns whether the CRD fits, and the resources are known that objects of this range own.
    fn is_ready(&self, range: Range) -> bool {
        self.readiness.borrow().is_fit()
            && self.cluster.known().contains(range)
            && self.requests.is_listed()
    }

    /// Returns whether this operator may act on the object of this uid.
    pub(crate) fn may_act(&self, uid: &str) -> bool {
        self.operator(uid).may_act
    }

    /// Returns the graph of the pass, if there is one.
    pub(crate) fn pass_graph(&self) -> Option<&'static Graph<'static>> {
        self.pass.as_ref().map(PassGraph::graph)
    }

    /// Returns what all objects of this operator have in common.
    pub(crate) fn setup(&self) -> Setup<'static> {
        Setup {
            graphs: Graphs {
                life: lifecycle_of::<A::Resource>(),
                pass: self.pass_graph(),
            },
            backoff: self.backoff,
            // Without owned kinds there is something to report all the same if a reference cannot be seen.
            owns_kinds: !self.cluster.watches.owned.is_empty() || self.cluster.lacks_referred(),
        }
    }

    /// Returns the facts about this operator, for a decision about the object of this uid.
    pub(crate) fn operator(&self, uid: &str) -> OperatorFacts {
        let access = self.gate.access(uid);
        OperatorFacts {
            may_act: access != Access::Closed && self.is_ready(Range::of(uid)),
            draining: access == Access::Draining || self.draining.is_cancelled(),
        }
    }

    /// Returns whether anything may be begun for the object of this uid.
    pub(crate) fn may_start(&self, uid: &str) -> bool {
        let operator = self.operator(uid);
        operator.may_act && !operator.draining
    }

    /// Returns the context of an object, for the application.
    pub(crate) fn context(&self, object: Arc<A::Resource>) -> Context<A::Resource> {
        Context::new(
            object,
            self.connection.client.clone(),
            Arc::clone(&self.cluster),
            self.clock.clone(),
            self.gate.clone(),
            self.telemetry.clone(),
        )
    }

    pub(crate) fn requeue(&self, object: ObjectRef<Cached<A::Resource>>) {
        // A closed queue belongs to an operator that is stopping.
        let _ = self.queue.send(QueueRequest::Reconcile(object));
    }
}

impl<A: Application> GateMember for Shared<A> {
    fn kind(&self) -> &'static str {
        A::Resource::crd_name()
    }

    fn busy(&self) -> Ranges {
        self.memory.busy()
    }

    fn is_warm(&self) -> bool {
        let wanted = self.gate.wanted().now();
        let is_listed = wanted.is_in(self.cluster.known())
            && self.requests.is_listed()
            && self.listed.is_cancelled();
        self.readiness.borrow().is_fit() && is_listed
    }

    fn abandon(&self, ranges: Ranges) {
        for uid in self.memory.abandon(ranges) {
            self.permits.leave(&uid);
        }
    }
}
