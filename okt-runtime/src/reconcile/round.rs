//! The object that is being reconciled, and the findings of this reconciliation.

use std::sync::Arc;

use kube::Resource;
use okt_core::reconcile::{Draft, Graphs, News, Ran, Waits, WorkChange};

use super::observe::Findings;
use super::stored::Stored;
use crate::author::application::{Application, ExtraOf, StateOf};
use crate::author::context::Context;
use crate::author::pass::FinishedRun;
use crate::cache::cached::PlaceOf;
use crate::reconcile::memory::{Known, Remembered};
use crate::reconcile::shared::Shared;
use crate::wire::object::lifecycle_of;
use crate::wire::read;
use crate::wire::status::Status;

/// The maximum number of effects of a reconciliation, so that other objects do not wait. Without faults no
/// reconciliation has more than 16.
pub(crate) const FUSE: usize = 32;

pub(super) type StatusOf<A> = Status<StateOf<A>, ExtraOf<A>>;

/// Returns the graphs that an application declares.
pub(super) fn graphs<A: Application>(shared: &Shared<A>) -> Graphs<'static> {
    Graphs {
        life: lifecycle_of::<A::Resource>(),
        pass: shared.pass_graph(),
    }
}

/// An object that is being reconciled.
pub(super) struct Reconciliation<'a, A: Application> {
    pub(super) shared: &'a Arc<Shared<A>>,
    pub(super) place: &'a PlaceOf<A::Resource>,
    pub(super) known: &'a Known,
    pub(super) memory: &'a mut Remembered,
    pub(super) round: Round<A>,
}

/// The findings of one reconciliation; none of them outlives it.
pub(super) struct Round<A: Application> {
    pub(super) object: Arc<A::Resource>,
    pub(super) cx: Context<A::Resource>,
    /// The content of the object, as ids and counters.
    pub(super) stored: Stored,
    /// The seed of this object's jitter.
    pub(super) seed: u64,
    /// Whether a reconcile request named it.
    pub(super) is_named: bool,
    /// The observation.
    pub(super) findings: Option<Findings>,
    /// The run of the pass.
    pub(super) run: Option<(FinishedRun, Ran)>,
    /// Whether the owned resources were applied.
    pub(super) is_applied: bool,
    /// Whether nothing is left that Kubernetes does not delete with the object.
    pub(super) cleared: Option<bool>,
    pub(super) draft: Option<(Draft, News, StatusOf<A>)>,
    /// The draft that was written last.
    pub(super) written: Option<Draft>,
    pub(super) extra: Option<ExtraOf<A>>,
    /// What the start of work waits for.
    pub(super) waits: Option<Waits>,
}

impl<A: Application> Round<A> {
    pub(super) fn of(shared: &Shared<A>, object: Arc<A::Resource>) -> Self {
        Self {
            cx: shared.context(Arc::clone(&object)),
            stored: Stored::of(shared, &*object),
            seed: read::seed(object.meta().uid.as_deref().unwrap_or_default()),
            object,
            is_named: false,
            findings: None,
            run: None,
            is_applied: false,
            cleared: None,
            draft: None,
            written: None,
            extra: None,
            waits: None,
        }
    }

    /// Replaces the object.
    pub(super) fn became(&mut self, shared: &Shared<A>, object: Arc<A::Resource>) {
        self.cx = shared.context(Arc::clone(&object));
        self.stored = self.stored.after(shared, self.object.meta(), &*object);
        self.object = object;
        self.draft = None;
    }

    /// Notes that a draft was written. An observation that it acts upon serves one decision; findings about the cluster
    /// serve one state.
    pub(super) fn consume(&mut self, draft: &Draft) {
        if draft.work != WorkChange::Keep {
            self.findings.get_or_insert_with(Findings::nothing).spent = true;
        }
        if draft.is_move() {
            (self.is_applied, self.cleared, self.extra) = (false, None, None);
        }
    }
}
