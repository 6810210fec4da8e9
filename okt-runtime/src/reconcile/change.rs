//! Compares the stored status with the one to write: whether the difference is worth a write.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use okt_core::machine::StatusDiff;
use okt_core::names::RESERVED;
use okt_core::{ConditionStatus, Graph, Lifecycle, reasons};
use okt_wire::object::{LifecycleObject, StatusOf};
use okt_wire::status::Position;

use super::acting;
use crate::resources::Inventory;

/// The graph of the pass that an application runs, if it has one.
pub(crate) type PassOf = Option<&'static Graph<'static>>;

/// Compares the status to write with the stored one.
///
/// `pass` is the graph of the pass that the application runs, if it has one.
pub(crate) fn change<K: LifecycleObject>(
    object: &K,
    next: &StatusOf<K>,
    pass: PassOf,
) -> StatusDiff {
    let Some(old) = object.status_of() else {
        return StatusDiff::Main;
    };
    let progress = |position: &Option<Position<K::State>>| {
        position
            .as_ref()
            .and_then(|position| position.action.as_ref())
            .map_or_else(String::new, |action| action.message.clone())
    };
    let silent = |position: &Option<Position<K::State>>| {
        let mut position = position.clone();
        if let Some(position) = &mut position {
            // It is written with whatever else is news.
            position.revision_generation = None;
            position.parts.values_mut().for_each(String::clear);
            position.acting = None;
            position.absent_since = None;
            if let Some(action) = &mut position.action {
                action.message.clear();
            }
        }
        position
    };
    let absent =
        |position: &Option<Position<K::State>>| position.as_ref().and_then(|it| it.absent_since);
    let number = |position: &Option<Position<K::State>>| position.as_ref().map(|p| p.transition);
    let recorded = Inventory::compare(&old.recorded_resources, &next.recorded_resources);
    let same = old.observed_generation == next.observed_generation
        && number(&old.lifecycle) == number(&next.lifecycle)
        && recorded != StatusDiff::Main
        && (old.lifecycle == next.lifecycle || silent(&old.lifecycle) == silent(&next.lifecycle))
        && same_conditions::<K>(&old.conditions, &next.conditions, pass);
    if !same {
        StatusDiff::Main
    } else if old.extra != next.extra
        || recorded == StatusDiff::Side
        || absent(&old.lifecycle) != absent(&next.lifecycle)
        || old
            .lifecycle
            .as_ref()
            .zip(next.lifecycle.as_ref())
            .is_some_and(|(old, next)| acting::is_due(old, next))
        || progress(&old.lifecycle) != progress(&next.lifecycle)
        || differ(&old.conditions, &next.conditions, pass)
    {
        StatusDiff::Side
    } else {
        StatusDiff::None
    }
}

/// Returns whether a graph declares a condition of this type.
fn is_declared(graph: &Graph<'_>, name: &str) -> bool {
    let mut all = graph.states.iter().flat_map(|state| state.conditions);
    all.any(|condition| condition.name == name)
}

/// Returns whether OKT writes the condition of this type; an apply that leaves one of these out removes it.
pub(crate) fn is_own<S: Lifecycle>(name: &str, pass: PassOf) -> bool {
    RESERVED.contains(&name) || is_declared(S::GRAPH, name) || is_of_pass(name, pass)
}

fn is_of_pass(name: &str, pass: PassOf) -> bool {
    pass.is_some_and(|pass| is_declared(pass, name))
}

/// Reasons whose message names the observed state: another name is news.
const NAMING: [&str; 2] = [reasons::UNFORESEEN_STATE, reasons::OBSERVED_ELSEWHERE];

/// The condition types that summarize the status of an object.
pub(crate) const SUMMARY: [&str; 3] = ["Ready", "Reconciling", "Stalled"];

/// Returns whether a reason is about owned resources.
pub(crate) fn is_about_resources(reason: &str) -> bool {
    reasons::resources::ALL.contains(&reason)
}

/// Returns whether other owned resources are in the way now, or a step of the pass reports something else.
fn differ(old: &[Condition], next: &[Condition], pass: PassOf) -> bool {
    let counts = |next: &Condition| {
        is_about_resources(&next.reason)
            || is_of_pass(&next.type_, pass)
            || (pass.is_some() && SUMMARY.contains(&next.type_.as_str()))
    };
    next.iter().any(|next| {
        counts(next)
            && old
                .iter()
                .any(|old| old.type_ == next.type_ && old.message != next.message)
    })
}

/// Returns whether OKT's conditions are the same. Messages alone, which an upgrade may change, are no reason to write.
fn same_conditions<K: LifecycleObject>(
    old: &[Condition],
    next: &[Condition],
    pass: PassOf,
) -> bool {
    let own = |name: &str| is_own::<K::State>(name, pass);
    let unknown = ConditionStatus::Unknown.as_str();
    old.iter().filter(|condition| own(&condition.type_)).count() == next.len()
        && next.iter().all(|next| {
            old.iter().any(|old| {
                old.type_ == next.type_
                    && old.status == next.status
                    && old.observed_generation == next.observed_generation
                    && (old.message == next.message || !NAMING.contains(&next.reason.as_str()))
                    && (is_same_reason::<K::State>(&old.reason, &next.reason)
                        || (is_declared(K::State::GRAPH, &next.type_) && next.status != unknown))
            })
        })
}

/// Returns whether two reasons are the same. A reason may name a state; a renamed state is the same one.
fn is_same_reason<S: Lifecycle>(old: &str, next: &str) -> bool {
    old == next || S::from_name(old).is_some_and(|state| Some(state) == S::from_name(next))
}
