//! Translates an object into what its machine reads: ids, counters and times.

use std::time::Duration;

use jiff::Timestamp;
use okt_core::machine::{Object, Readable, WorkId};

use super::leftover::inherited;
use crate::clock::Clock;
use crate::reconcile::finalizer;
use crate::wire::annotations;
use crate::wire::object::{LifecycleObject, LifecycleSpec, lifecycle_of};
use crate::wire::read;

/// What an object does not say of itself.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings {
    /// A hash of the data that handlers act upon.
    pub(crate) revision: u64,
    /// Whether the state on record belongs to a newer operator.
    pub(crate) is_newer: bool,
    /// Whether a resource that it owns exists in the cluster.
    pub(crate) owns_any: bool,
    /// How often the application is observed in this state if nothing happens.
    pub(crate) observe_every: Duration,
}

/// Reads an object.
pub(crate) fn read<K: LifecycleObject>(object: &K, around: Surroundings, clock: &Clock) -> Object {
    let meta = object.meta();
    let position = object.status_of().and_then(|it| it.lifecycle.as_ref());
    let conditions = object.status_of().map_or(&[][..], |it| &it.conditions);
    let reports = |name: &str| {
        let condition = conditions.iter().find(|it| it.type_ == name);
        condition.map(|it| it.status == "True")
    };
    let recorded = read::record(position, reports("Deleting") == Some(true), around.revision);
    let desired = object.spec_of().lifecycle();
    let is_paused = annotations::is_paused(meta);
    let passed =
        |since: Option<Timestamp>| since.map_or(Duration::ZERO, |since| clock.since(since));
    Object {
        version: read::version(meta),
        in_flight: lifecycle_of::<K>().and_then(|life| {
            let record = recorded.at().filter(|record| record.in_flight(life))?;
            Some(WorkId {
                transition: record.transition,
                run: record.action?.run,
                token: read::token(position),
            })
        }),
        readable: Readable::Yes,
        desired: read::desired(desired, position.and_then(|it| it.desired.as_ref())),
        visit: read::visit(desired, position.and_then(|it| it.visit.as_ref())),
        generation: meta.generation.unwrap_or(0),
        revision: around.revision,
        deleting: meta.deletion_timestamp.is_some(),
        abandoned: annotations::is_abandoned(meta),
        paused: is_paused,
        newer: around.is_newer,
        finalizer: finalizer::is_set(meta),
        is_pause_news: reports("Paused").is_some_and(|reported| reported != is_paused),
        inherits: inherited(object, &recorded).is_some(),
        owns_any: around.owns_any,
        in_state: passed(position.and_then(|it| it.since)),
        in_deadline: passed(position.and_then(|it| it.deadline_since)),
        observe_every: around.observe_every,
        seed: read::seed(meta.uid.as_deref().unwrap_or_default()),
        recorded,
    }
}
