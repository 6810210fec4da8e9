//! Translates an object into what its machine reads: ids, counters and times.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_core::machine::{Object, WorkId};

use super::leftover::inherited;
use crate::clock::Clock;
use crate::reconcile::finalizer;
use crate::wire::annotations;
use crate::wire::object::{LifecycleObject, LifecycleSpec, lifecycle_of};
use crate::wire::read;

/// Reads the metadata of an object.
pub(crate) fn read_meta(meta: &ObjectMeta) -> Object {
    Object {
        version: read::version(meta),
        generation: meta.generation.unwrap_or(0),
        deleting: meta.deletion_timestamp.is_some(),
        abandoned: annotations::is_abandoned(meta),
        paused: annotations::is_paused(meta),
        finalizer: finalizer::is_set(meta),
        seed: read::seed(meta.uid.as_deref().unwrap_or_default()),
        ..Object::default()
    }
}

/// Reads an object, but for what it does not say of itself. `revision` is a hash of the data that handlers act upon.
pub(crate) fn read<K: LifecycleObject>(object: &K, revision: u64, clock: &Clock) -> Object {
    let position = object.status_of().and_then(|it| it.lifecycle.as_ref());
    let conditions = object.status_of().map_or(&[][..], |it| &it.conditions);
    let reports = |name: &str| {
        let condition = conditions.iter().find(|it| it.type_ == name);
        condition.map(|it| it.status == "True")
    };
    let recorded = read::record(position, reports("Deleting") == Some(true), revision);
    let desired = object.spec_of().lifecycle();
    let passed =
        |since: Option<Timestamp>| since.map_or(Duration::ZERO, |since| clock.since(since));
    let plain = read_meta(object.meta());
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
        visit: read::visit(desired, position.and_then(|it| it.visit.as_ref())),
        revision,
        is_pause_news: reports("Paused").is_some_and(|reported| reported != plain.paused),
        inherits: inherited(object, &recorded).is_some(),
        in_state: passed(position.and_then(|it| it.since)),
        in_deadline: passed(position.and_then(|it| it.deadline_since)),
        ..plain
    }
}
