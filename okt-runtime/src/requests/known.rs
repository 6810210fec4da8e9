//! The requests for an object, as its machine reads them.

use std::sync::Arc;

use okt_core::Gates;
use okt_core::machine::KnownRequests;
use okt_core::record::{Record, Recorded};
use okt_core::request::{RequestOutcome, WaitingRequest};
use okt_wire::clock::Clock;
use okt_wire::object::{LifecycleObject, lifecycle_of, position_of};
use okt_wire::status::RecordedRequest;

use super::open::OpenRequest;
use super::outcome::TargetFacts;
use super::queue::RequestQueue;
use crate::resources::name_of;

/// Returns the requests for an object, for its machine.
pub(crate) fn known<K: LifecycleObject>(
    queue: &RequestQueue,
    object: &K,
    recorded: &Recorded,
    shut: Gates,
    clock: &Clock,
) -> KnownRequests {
    let Some(life) = lifecycle_of::<K>().filter(|_| !queue.kinds.is_empty()) else {
        return KnownRequests::default();
    };
    let open = queue.waiting(&name_of(object));
    let facts = facts_of(object, clock);
    let own = facts.request.map(|it| it.uid.as_str());
    let is_next = |it: &&Arc<OpenRequest>| {
        Some(it.uid.as_str()) != own && facts.report(it).outcome == RequestOutcome::Queued
    };
    let waiting = || open.iter().filter(is_next);
    let record = recorded.at();
    let served = record.and_then(Record::served);
    let left = waiting().filter_map(|it| Some(facts.now.duration_until(it.start_before?)));
    KnownRequests {
        next: record.and_then(|record| {
            let all = waiting().map(|it| WaitingRequest {
                state: queue.kinds[it.kind].state,
                token: it.token(),
                seen: it.seen,
            });
            record.next_request(life, shut, all)
        }),
        is_missing: queue.is_listed()
            && served.is_some_and(|served| open.iter().all(|it| it.token() != served.token)),
        undelivered: open.iter().filter(|it| facts.is_undelivered(it)).count(),
        expires: left.filter_map(|left| left.try_into().ok()).min(),
    }
}

/// Returns the facts about an object on which the outcomes of its requests depend.
pub(crate) fn facts_of<'a, K: LifecycleObject>(object: &'a K, clock: &Clock) -> TargetFacts<'a> {
    let position = position_of(object);
    let request = position.and_then(|it| it.request.as_ref());
    let serves = |it: &&RecordedRequest| position.is_some_and(|at| at.state.as_str() == it.state);
    let action = position.and_then(|it| it.action.as_ref());
    TargetFacts {
        request,
        is_recorded: position.is_some(),
        deleting: object.meta().deletion_timestamp.is_some(),
        transition: position.map_or(0, |it| it.transition),
        action: request.filter(serves).and(action).map(|it| it.id.as_str()),
        now: clock.now(),
    }
}
