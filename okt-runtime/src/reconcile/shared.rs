//! What all turns of one operator share: the application, the ways to be asked for a turn, the ways to tell.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource};
use okt_core::backoff::Backoff;
use okt_core::decide::{By, Go};
use okt_core::reconcile::Operator;
use okt_core::{Graph, Lifecycle};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::author::application::{Application, PassGraph, StateOf};
use crate::author::asked::Questions;
use crate::author::context::Context;
use crate::backdoor::Backdoor;
use crate::cache::cached::Cached;
use crate::cache::history::History;
use crate::clock::Clock;
use crate::crd::readiness::Readiness;
use crate::reconcile::memory::Memory;
use crate::reconcile::places::Places;
use crate::reconcile::tasks::Tasks;
use crate::resources::Cluster;
use crate::wire::object::{LifecycleObject, has_lifecycle};

/// What all turns of one operator share.
pub(crate) struct Shared<A: Application> {
    pub(crate) application: Arc<A>,
    pub(crate) client: Client,
    pub(crate) cluster: Arc<Cluster<A::Resource>>,
    /// The pass that is walked through in every turn.
    pub(crate) pass: Option<PassGraph<A>>,
    pub(crate) memory: Memory,
    pub(crate) history: History,
    pub(crate) tasks: Tasks,
    pub(crate) questions: Arc<Questions>,
    pub(crate) places: Arc<Places>,
    pub(crate) clock: Clock,
    pub(crate) backdoor: Backdoor,
    pub(crate) backoff: Backoff,
    /// A hash of the graph.
    pub(crate) graph: String,
    pub(crate) readiness: watch::Receiver<Readiness>,
    pub(crate) is_leader: Option<watch::Receiver<bool>>,
    /// Cancelled when the operator is told to stop: what runs may end, nothing is begun.
    pub(crate) draining: CancellationToken,
    pub(crate) queue: mpsc::UnboundedSender<Request<A::Resource>>,
    pub(crate) recorder: Recorder,
}

/// What the queue is asked beside what the watch brings.
pub(crate) enum Request<K: LifecycleObject> {
    /// Work has ended or says something: look at the object.
    Reconcile(ObjectRef<Cached<K>>),
    /// Somebody outside named it.
    External(ObjectRef<Cached<K>>),
}

impl<A: Application> Shared<A> {
    /// Whether this operator leads, the CRD is one it may act upon, and what it owns is known.
    pub(crate) fn may_act(&self) -> bool {
        let leads = |is_leader: &watch::Receiver<bool>| {
            is_leader.has_changed().is_ok() && *is_leader.borrow()
        };
        self.readiness.borrow().is_fit()
            && self.is_leader.as_ref().is_none_or(leads)
            && self.cluster.is_known()
    }

    /// The graph of the pass, if there is one.
    pub(crate) fn pass_graph(&self) -> Option<&'static Graph<'static>> {
        self.pass.as_ref().map(PassGraph::graph)
    }

    /// What a decision is made from.
    pub(crate) fn operator(&self) -> Operator {
        Operator {
            may_act: self.may_act(),
            draining: self.draining.is_cancelled(),
        }
    }

    /// Whether work may be started.
    pub(crate) fn may_start(&self) -> bool {
        self.may_act() && !self.draining.is_cancelled()
    }

    /// What an application is told of an object.
    pub(crate) fn context(&self, object: Arc<A::Resource>) -> Context<A::Resource> {
        Context::new(object, self.client.clone(), Arc::clone(&self.cluster))
    }

    pub(crate) fn requeue(&self, object: ObjectRef<Cached<A::Resource>>) {
        // A closed queue belongs to an operator that is stopping.
        let _ = self.queue.send(Request::Reconcile(object));
    }

    /// A jump means that the application moved on its own, or that a status was lost: somebody may want to know.
    pub(crate) fn warn_of_jump(&self, object: &ObjectMeta, go: Go, from: &str) {
        if go.by == By::Jump {
            let to = StateOf::<A>::GRAPH.name_of(go.to);
            let note = if from.is_empty() {
                format!("found in {to}, with nothing recorded")
            } else {
                format!("was in {from} by the record, is in {to}; no edge leads there")
            };
            // The note is not part of what makes two events one, so the state stands in the reason.
            self.warn(object, format!("JumpedTo{to}"), "Transition", note);
        }
    }

    pub(crate) fn warn_of_abandoning(&self, object: &ObjectMeta, state: &str) {
        let place = match state {
            "" if has_lifecycle::<A::Resource>() => " in an unknown state".to_owned(),
            "" => String::new(),
            state => format!(" in {state}"),
        };
        let note = format!("given up{place}; what is left of the application is nobody's");
        self.warn(object, "Abandoned".to_owned(), "Release", note);
    }

    fn warn(&self, object: &ObjectMeta, reason: String, action: &str, note: String) {
        let event = Event {
            type_: EventType::Warning,
            reason,
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        };
        let about = ObjectReference {
            api_version: Some(A::Resource::api_version(&()).into_owned()),
            kind: Some(A::Resource::kind(&()).into_owned()),
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            uid: object.uid.clone(),
            ..ObjectReference::default()
        };
        let recorder = self.recorder.clone();
        tokio::spawn(async move {
            if let Err(error) = recorder.publish(&event, &about).await {
                tracing::warn!(reason = event.reason, "cannot publish an event: {error}");
            }
        });
    }
}
