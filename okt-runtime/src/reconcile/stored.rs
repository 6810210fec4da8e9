//! The content of a stored object, as ids and counters.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::reconcile::{Asked, Readable};
use okt_core::record::Recorded;

use crate::author::application::{Application, StateOf};
use crate::reconcile::finalizer;
use crate::reconcile::memory::Piece;
use crate::reconcile::shared::Shared;
use crate::wire::annotations;
use crate::wire::object::{LifecycleObject, LifecycleSpec, lifecycle_of};
use crate::wire::read;
use crate::wire::status::Position;

/// The content of a stored object, as ids and counters.
pub(super) struct Stored {
    pub(super) recorded: Recorded,
    pub(super) asked: Asked,
    /// The id of the action that is in flight by the record.
    pub(super) in_flight: Option<String>,
    /// The attempt on record.
    pub(super) attempt: u32,
    /// When the state on record was entered.
    pub(super) since: Option<Timestamp>,
    /// When the object came under the deadline of that state.
    pub(super) deadline_since: Option<Timestamp>,
    /// Whether the reported pause differs from the requested one.
    pub(super) is_pause_news: bool,
}

impl Stored {
    pub(super) fn of<A: Application>(shared: &Shared<A>, object: &A::Resource) -> Self {
        Self::having(shared, object, read::revision(&A::revision(object)))
    }

    /// Reads the answer to a write. Hashing what handlers act upon costs more than everything else here, and a write of
    /// a status does not change it.
    pub(super) fn after<A: Application>(
        &self,
        shared: &Shared<A>,
        before: &ObjectMeta,
        object: &A::Resource,
    ) -> Self {
        let now = object.meta();
        let is_same = (now.generation, &now.labels, &now.annotations)
            == (before.generation, &before.labels, &before.annotations);
        if is_same {
            Self::having(shared, object, self.asked.revision)
        } else {
            Self::of(shared, object)
        }
    }

    fn having<A: Application>(shared: &Shared<A>, object: &A::Resource, revision: u64) -> Self {
        let meta = object.meta();
        let uid = meta.uid.as_deref().unwrap_or_default();
        let position = position_of::<A>(object);
        let conditions = object.status_of().map_or(&[][..], |it| &it.conditions);
        let says = |name: &str| {
            let condition = conditions.iter().find(|it| it.type_ == name);
            condition.map(|it| it.status == "True")
        };
        let recorded = read::record(position, says("Deleting") == Some(true), revision);
        let desired = object.spec_of().lifecycle();
        let is_paused = annotations::is_paused(meta);
        let in_flight = lifecycle_of::<A::Resource>().and_then(|life| {
            let record = recorded.at().filter(|record| record.in_flight(life))?;
            let run = record.action?.run;
            Some(read::action_id(position, uid, record.transition, run))
        });
        Self {
            recorded,
            asked: Asked {
                readable: Readable::Yes,
                desired: read::desired(desired, position.and_then(|it| it.desired.as_ref())),
                visit: read::visit(desired, position.and_then(|it| it.visit.as_ref())),
                generation: meta.generation.unwrap_or(0),
                revision,
                deleting: meta.deletion_timestamp.is_some(),
                abandoned: annotations::is_abandoned(meta),
                paused: is_paused,
                newer: is_newer(shared, position),
                finalizer: finalizer::is_set(meta),
            },
            in_flight,
            attempt: (position.and_then(|it| it.action.as_ref())).map_or(1, |it| it.attempt.max(1)),
            since: position.and_then(|it| it.since),
            deadline_since: position.and_then(|it| it.deadline_since),
            is_pause_news: says("Paused").is_some_and(|said| said != is_paused),
        }
    }

    /// Returns the transition into the state on record; 0 if nothing is recorded.
    pub(super) fn transition(&self) -> u64 {
        self.recorded.at().map_or(0, |record| record.transition)
    }

    /// Returns the work on record, about to begin.
    pub(super) fn piece(&self) -> Option<Piece> {
        let id = self.in_flight.clone()?;
        Some(Piece::new(id, self.attempt))
    }
}

pub(super) fn position_of<A: Application>(object: &A::Resource) -> Option<&Position<StateOf<A>>> {
    object.status_of()?.lifecycle.as_ref()
}

/// Returns whether the CRD has the state on record and this operator does not.
fn is_newer<A: Application>(shared: &Shared<A>, position: Option<&Position<StateOf<A>>>) -> bool {
    position.is_some_and(|position| {
        let crd = shared.readiness.borrow();
        position.state.known().is_none() && crd.knows(position.state.as_str())
    })
}
