//! Translates an object into what its machine reads: ids, counters and times.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_core::Lifecycle;
use okt_core::machine::{Object, WorkId};
use okt_wire::annotations;
use okt_wire::clock::Clock;
use okt_wire::digest;
use okt_wire::object::{LifecycleObject, LifecycleSpec, lifecycle_of, position_of};
use okt_wire::parts::{self, OtherHashes};
use okt_wire::read;

use super::acting;
use super::leftover::inherited;
use crate::reconcile::finalizer;

/// Reads the metadata of an object.
pub(crate) fn read_meta(meta: &ObjectMeta) -> Object {
    Object {
        version: read::version(meta),
        generation: meta.generation.unwrap_or(0),
        deleting: meta.deletion_timestamp.is_some(),
        abandoned: annotations::is_abandoned(meta),
        paused: annotations::is_paused(meta),
        finalizer: finalizer::is_set(meta),
        seed: read::hash(meta.uid.as_deref().unwrap_or_default()),
        ..Object::default()
    }
}

/// Reads an object, but for what it does not contain. `revision` is a hash of the data that handlers act upon, `of_parts`
/// has the hashes that this release computes for parts of the spec that another release recorded, and `begun` is when this
/// process began to act on it, if deadlines count that.
pub(crate) fn read<K: LifecycleObject>(
    object: &K,
    revision: u64,
    of_parts: &mut OtherHashes,
    begun: Option<Timestamp>,
    clock: &Clock,
) -> Object {
    let position = position_of(object);
    let conditions = object.status_of().map_or(&[][..], |it| &it.conditions);
    let reports = |name: &str| {
        let condition = conditions.iter().find(|it| it.type_ == name);
        condition.map(|it| it.status == "True")
    };
    let recorded = read::record(position, reports("Deleting") == Some(true), revision);
    let desired = object.spec_of().lifecycle();
    let elapsed = position
        .map(|position| {
            let is_paused = reports("Paused") == Some(true);
            acting::elapsed(position, is_paused, begun, clock.now())
        })
        .unwrap_or_default();
    let absent_since = position.and_then(|it| it.absent_since);
    let plain = read_meta(object.meta());
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    Object {
        recorded,
        in_flight: lifecycle_of::<K>().and_then(|life| {
            let record = recorded.at().filter(|record| record.in_flight(life))?;
            Some(WorkId {
                transition: record.transition,
                run: record.action?.run,
                token: read::token(position),
            })
        }),
        desired: read::desired(desired, position.and_then(|it| it.desired.as_ref())),
        uid: if K::State::GRAPH.has_approvals() {
            digest::revision_hash(uid.as_bytes())
        } else {
            0
        },
        approved: desired.approved(),
        visit: read::visit(desired, position.and_then(|it| it.visit.as_ref())),
        revision,
        parts: parts::changed(object, of_parts),
        is_pause_news: reports("Paused").is_some_and(|reported| reported != plain.paused),
        inherits: inherited(object, &recorded).is_some(),
        in_state: elapsed.in_state,
        in_deadline: elapsed.in_deadline,
        absent: absent_since.map(|since| clock.since(since)),
        ..plain
    }
}
