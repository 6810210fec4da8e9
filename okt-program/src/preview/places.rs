//! Where a release would find the objects on its graph: those that have no place there, and those that it would move.

use jiff::Timestamp;
use kube::Resource;
use okt_core::{Cause, Graph, Lifecycle, Mark, StateId};
use okt_view::{Goal, View};
use okt_wire::digest;
use okt_wire::object::{LifecycleObject, position_of};
use okt_wire::parts;
use okt_wire::read;
use okt_wire::revision::Referred;

use okt_runtime::__program::revision_of;
use okt_runtime::Application;

/// Returns why an object has no place in the graph of a release; none if it has one.
pub(super) fn lost(after: &View<'_>) -> Option<String> {
    let graph = after.kind.graph()?;
    let lacks = |name: &&str| graph.named(name).is_none();
    let of_spec = (!after.is_deleting()).then_some(());
    if let Some(state) = after.state().filter(lacks) {
        return Some(format!(
            "it is in {state}, which the graph does not have: it would stay there"
        ));
    }
    if let Some(state) = of_spec.and(after.desired()).filter(lacks) {
        return Some(format!(
            "its spec asks for {state}, which the graph does not have"
        ));
    }
    if let Some(state) = of_spec.and(after.pending_visit()).filter(lacks) {
        return Some(format!(
            "its spec asks for a visit to {state}, which the graph does not have"
        ));
    }
    None
}

/// Returns the move that a release would make at once, and that the release in use does not make; none if there is none.
pub(super) fn moved(before: &View<'_>, after: &View<'_>, now: Timestamp) -> Option<String> {
    // A pause is over only when a user ends it.
    if after.is_paused() {
        return None;
    }
    let old = next(before, now);
    let (to, why) = next(after, now)?;
    let (graph, at) = after.place()?;
    let is_new = old.is_none_or(|(old, _)| old != to);
    is_new.then(|| format!("{} → {to}: {why}", graph.name_of(at)))
}

/// Returns what a release would do with an object because its application returns another revision than is recorded, although
/// nobody changed the spec; none if it does not.
pub(super) fn revised<A: Application>(object: &A::Resource) -> Option<String> {
    let position = position_of(object)?;
    let (generation, recorded) = read::recorded_revision(position)?;
    let now = revision_of::<A>(object).counted(object, Referred::Unknown, &mut None);
    let is_revised = object.meta().generation == Some(generation) && now != recorded;
    is_revised.then(|| {
        format!(
            "`revision` says {} and said {}: work of its state begins anew, and an `on_change` edge is taken",
            digest::text(now),
            digest::text(recorded)
        )
    })
}

/// Returns the edge that a release would take for a change of the spec, because it has a trigger for it that the release in
/// use does not have; none if there is none.
pub(super) fn moved_by_change<A: Application>(
    object: &A::Resource,
    before: &View<'_>,
    after: &View<'_>,
) -> Option<String> {
    if after.is_paused() || after.is_deleting() {
        return None;
    }
    let position = position_of(object)?;
    let revision = revision_of::<A>(object).counted(object, Referred::Unknown, &mut None);
    let parts = parts::changed(object, &mut Vec::new());
    let graph = <A::Resource as LifecycleObject>::State::GRAPH;
    let at = position.state.known()?.id();
    let trigger = graph.get(at)?.triggers.iter().find(|it| match it.cause {
        Cause::OnChange => digest::number(&position.changed) != Some(revision),
        Cause::OnChangeOf(these) => !these.and(parts).is_empty(),
        _ => false,
    })?;
    let edge = |graph: &Graph<'_>, at: StateId, to: &str| {
        let edges = graph.edges(at).into_iter();
        let mut texts = edges.map(|edge| (graph.name_of(edge.to) == to, edge.text(graph)));
        texts.find_map(|(is_it, text)| is_it.then_some(text))
    };
    let to = graph.name_of(trigger.to);
    let old = before.place().and_then(|(graph, at)| edge(graph, at, to));
    if old == edge(graph, at, to) {
        return None;
    }
    let what = match trigger.cause {
        Cause::OnChangeOf(these) => these.and(parts).text(graph.parts),
        _ => "its revision".to_owned(),
    };
    Some(format!(
        "{} → {to}: {what} changed, and no edge was taken for it",
        graph.name_of(at)
    ))
}

/// Returns the next state of an object that rests, and why it goes there.
fn next(view: &View<'_>, now: Timestamp) -> Option<(&'static str, String)> {
    let (graph, at) = view.place()?;
    if let Some(deadline) = view.deadline().filter(|it| it.at <= now) {
        let why = format!("the time for {} is over", graph.name_of(at));
        return Some((graph.name_of(deadline.to), why));
    }
    let state = graph.get(at)?;
    // A passing state is left when its work ends, and a holding one when a user asks.
    if !state.is(Mark::Rest) || state.is(Mark::Hold) {
        return None;
    }
    let (to, why) = match view.goal()? {
        Goal::Deletion => return None,
        Goal::Visit(visit) => (graph.hop(at, visit)?, asked("a visit to ", graph, visit)),
        Goal::Desired(desired) => (graph.hop(at, desired)?, asked("", graph, desired)),
    };
    Some((graph.name_of(to), why))
}

fn asked(what: &str, graph: &Graph<'_>, state: StateId) -> String {
    format!("on the way to {what}{}", graph.name_of(state))
}
