//! What differs between the status that is stored and the one that would be written, as far as writing goes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use okt_core::names::RESERVED;
use okt_core::{ConditionStatus, Lifecycle};

use crate::object::LifecycleObject;
use crate::status::{Position, Status};

/// What differs between two statuses, as far as writing goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// Only what is written at most every ten seconds: a progress text, or what the application adds.
    Side,
    /// Something that is to be written now.
    Main,
}

/// Compares what would be written with what is stored.
pub(crate) fn change<K: LifecycleObject>(object: &K, next: &Status<K::State, K::Extra>) -> Change {
    let Some(old) = object.status_of() else {
        return Change::Main;
    };
    let progress = |position: &Option<Position<K::State>>| {
        (position.as_ref())
            .and_then(|position| position.action.as_ref())
            .map_or_else(String::new, |action| action.message.clone())
    };
    let silent = |position: &Option<Position<K::State>>| {
        let mut position = position.clone();
        if let Some(action) = position
            .as_mut()
            .and_then(|position| position.action.as_mut())
        {
            action.message.clear();
        }
        position
    };
    let number = |position: &Option<Position<K::State>>| position.as_ref().map(|p| p.transition);
    let same = old.observed_generation == next.observed_generation
        && number(&old.lifecycle) == number(&next.lifecycle)
        && (old.lifecycle == next.lifecycle || silent(&old.lifecycle) == silent(&next.lifecycle))
        && same_conditions::<K>(&old.conditions, &next.conditions);
    if !same {
        Change::Main
    } else if old.extra != next.extra
        || progress(&old.lifecycle) != progress(&next.lifecycle)
        || says_other(&old.conditions, &next.conditions)
    {
        Change::Side
    } else {
        Change::None
    }
}

/// Whether the graph declares a condition of this type.
fn is_declared<S: Lifecycle>(name: &str) -> bool {
    let mut all = S::GRAPH.states.iter().flat_map(|state| state.conditions);
    all.any(|condition| condition.name == name)
}

/// Whether OKT writes the condition of this type; an apply that leaves one of these out removes it.
pub(crate) fn is_own<S: Lifecycle>(name: &str) -> bool {
    RESERVED.contains(&name) || is_declared::<S>(name)
}

/// Reasons whose message names what was seen: another name is news.
const NAMING: [&str; 2] = ["UnforeseenState", "ObservedElsewhere"];

/// Reasons about what an object owns, whose message says which of it.
const ABOUT_RESOURCES: [&str; 12] = [
    "WaitingForResources",
    "NotOwned",
    "BadResource",
    "BadTemplate",
    "ResourceRefused",
    "ResourceForbidden",
    "ResourceNotFound",
    "ResourceConflict",
    "ResourceNotReady",
    "ResourceNotWatched",
    "ResourceFailed",
    "ResourceUnanswered",
];

/// Whether another part of what the object owns is in the way now.
fn says_other(old: &[Condition], next: &[Condition]) -> bool {
    next.iter().any(|next| {
        ABOUT_RESOURCES.contains(&next.reason.as_str())
            && old
                .iter()
                .any(|old| old.type_ == next.type_ && old.message != next.message)
    })
}

/// Whether OKT's conditions say the same; texts alone, which an upgrade may change, are no reason to write.
fn same_conditions<K: LifecycleObject>(old: &[Condition], next: &[Condition]) -> bool {
    let own = is_own::<K::State>;
    let unknown = ConditionStatus::Unknown.as_str();
    old.iter().filter(|condition| own(&condition.type_)).count() == next.len()
        && next.iter().all(|next| {
            old.iter().any(|old| {
                old.type_ == next.type_
                    && old.status == next.status
                    && old.observed_generation == next.observed_generation
                    && (old.message == next.message || !NAMING.contains(&next.reason.as_str()))
                    && (is_same_reason::<K::State>(&old.reason, &next.reason)
                        || (is_declared::<K::State>(&next.type_) && next.status != unknown))
            })
        })
}

/// A reason may name a state; a renamed state is the same one.
fn is_same_reason<S: Lifecycle>(old: &str, next: &str) -> bool {
    old == next || S::from_name(old).is_some_and(|state| Some(state) == S::from_name(next))
}
