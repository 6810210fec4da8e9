//! The content of a stored object, as ids and counters.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use okt_core::backoff::Backoff;
use okt_core::reconcile::{Asked, Readable, TimeFacts, WorkFacts};
use okt_core::record::Recorded;

use crate::author::application::{Application, StateOf};
use crate::clock::Clock;
use crate::reconcile::finalizer;
use crate::reconcile::memory::{Piece, Work};
use crate::reconcile::shared::Shared;
use crate::wire::annotations;
use crate::wire::object::{LifecycleObject, LifecycleSpec, lifecycle_of};
use crate::wire::read;
use crate::wire::status::Position;

/// The content of a stored object, as ids and counters.
pub(crate) struct Stored {
    pub(crate) recorded: Recorded,
    pub(crate) asked: Asked,
    /// The id of the action that is in flight by the record.
    in_flight: Option<String>,
    /// The attempt on record.
    attempt: u32,
    /// When the state on record was entered.
    since: Option<Timestamp>,
    /// When the object came under the deadline of that state.
    deadline_since: Option<Timestamp>,
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
        Self::read(object, revision, is_newer(shared, position_of::<A>(object)))
    }

    /// Reads an object. `is_newer`: the state on record belongs to a newer operator.
    pub(crate) fn read<K: LifecycleObject>(object: &K, revision: u64, is_newer: bool) -> Self {
        let meta = object.meta();
        let uid = meta.uid.as_deref().unwrap_or_default();
        let position = object.status_of().and_then(|it| it.lifecycle.as_ref());
        let conditions = object.status_of().map_or(&[][..], |it| &it.conditions);
        let says = |name: &str| {
            let condition = conditions.iter().find(|it| it.type_ == name);
            condition.map(|it| it.status == "True")
        };
        let recorded = read::record(position, says("Deleting") == Some(true), revision);
        let desired = object.spec_of().lifecycle();
        let is_paused = annotations::is_paused(meta);
        let in_flight = lifecycle_of::<K>().and_then(|life| {
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
                newer: is_newer,
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

    /// Returns the work on record, with what this process knows of it.
    pub(crate) fn work(&self, work: &Work) -> WorkFacts {
        let known = work.facts();
        let piece = work.piece.as_ref();
        WorkFacts {
            stale: piece.is_some_and(|piece| Some(&piece.id) != self.in_flight.as_ref()),
            attempt: known.attempt.max(self.attempt),
            ..known
        }
    }

    /// Returns the times of the state on record.
    pub(crate) fn times(
        &self,
        clock: &Clock,
        observe_after: Duration,
        backoff: Backoff,
        seed: u64,
    ) -> TimeFacts {
        let passed =
            |since: Option<Timestamp>| since.map_or(Duration::ZERO, |since| clock.since(since));
        TimeFacts {
            in_state: passed(self.since),
            in_deadline: passed(self.deadline_since),
            observe_after,
            backoff,
            seed,
        }
    }

    /// Returns the work on record, about to begin.
    pub(crate) fn piece(&self) -> Option<Piece> {
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
