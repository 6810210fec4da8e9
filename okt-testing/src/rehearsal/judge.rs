//! Checks the rules that hold for every run, whatever its fault.

use std::collections::{BTreeMap, BTreeSet};

use okt_core::{Cause, Mark};
use okt_runtime::__testing::AttemptFault;
use okt_runtime::{Application, Lifecycle, StateOf};
use serde_json::Value;
use tokio::time::Instant;

use super::plan::RehearsalPlan;
use super::rules::Rules;
use super::stage::{DIFFERS, EndedRun, OPERATOR};
use super::{Rehearsal, difference};
use crate::{EventKind, Verb};

/// The tolerance for a deadline.
const LATE: std::time::Duration = std::time::Duration::from_mins(2);

/// Checks a run and adds the broken rules to those that are known already.
pub(super) fn judge<A: Application + Clone>(
    rehearsal: &Rehearsal<A>,
    mut ended: EndedRun,
    undisturbed: Option<&EndedRun>,
) -> EndedRun {
    if let Some(undisturbed) = undisturbed
        && let Some(at) = ended.broken.iter().position(|it| it == DIFFERS)
    {
        ended.broken[at] = difference::of_courses(&ended, undisturbed);
    }
    let mut broken = Vec::new();
    if ended.broken.is_empty()
        && let Some(undisturbed) = undisturbed
    {
        broken.extend(same_end(&ended, undisturbed, rehearsal));
    }
    if ended.broken.is_empty() && is_comparable(&ended, rehearsal) {
        let claims = rehearsal.claims.iter();
        let untrue = claims.filter(|(_, is_true)| !is_true(&ended.server));
        broken.extend(untrue.map(|(claim, _)| format!("not true at the end: {claim}")));
    }
    broken.extend(course_of_states::<StateOf<A>>(&ended));
    broken.extend(conditions_hold::<A>(&ended));
    broken.extend(refused_writes(&ended));
    broken.extend(work(&ended));
    ended.broken.extend(broken);
    ended
}

/// Checks that after each step the object is where it was in the undisturbed run.
fn same_end<A: Application + Clone>(
    ended: &EndedRun,
    undisturbed: &EndedRun,
    rehearsal: &Rehearsal<A>,
) -> Vec<String> {
    let mut broken = Vec::new();
    if !is_comparable(ended, rehearsal) {
        return broken;
    }
    for (rest, before) in ended.rests.iter().zip(&undisturbed.rests) {
        if rest != before {
            let differs = difference::of_places(rest.place.as_ref(), before.place.as_ref());
            let differs = differs.unwrap_or_else(|| "a field is null in one run alone".to_owned());
            broken.push(format!("after {}: {differs}", rest.after));
            // Later differences are consequences of this one.
            break;
        }
    }
    if rehearsal.effects.is_some() {
        broken.extend(difference::of_effects(&ended.effects, &undisturbed.effects));
    }
    broken
}

/// Returns whether a run must end as the undisturbed run does.
fn is_comparable<A: Application + Clone>(ended: &EndedRun, rehearsal: &Rehearsal<A>) -> bool {
    match ended.plan {
        RehearsalPlan::Deletion { .. } => false,
        RehearsalPlan::Attempt { attempt, fault } => {
            fault == AttemptFault::Twice || !is_awaited(rehearsal, ended, attempt)
        }
        RehearsalPlan::Undisturbed
        | RehearsalPlan::Crash { .. }
        | RehearsalPlan::Unanswered { .. }
        | RehearsalPlan::Refused { .. }
        | RehearsalPlan::Event { .. }
        | RehearsalPlan::Past { .. }
        | RehearsalPlan::Restart { .. }
        | RehearsalPlan::Two => true,
    }
}

/// Returns whether an edge waits for an attempt that never ends: for its failure, or for time that passes.
fn is_awaited<A: Application + Clone>(
    rehearsal: &Rehearsal<A>,
    ended: &EndedRun,
    attempt: usize,
) -> bool {
    let begun = ended.attempts.get(attempt - 1);
    let state = begun.and_then(|begun| StateOf::<A>::from_name(begun.attempt.state));
    let Some(state) = state else { return false };
    let limit = (rehearsal.fresh)().attempt_limit(state);
    let declared = StateOf::<A>::GRAPH.get(state.id());
    let triggers = declared.map_or(&[][..], |state| state.triggers);
    triggers.iter().any(|trigger| match trigger.cause {
        Cause::OnError { attempts } => attempts == 1,
        Cause::After(due) | Cause::Deadline(due) => due <= limit.saturating_add(LATE),
        Cause::Named
        | Cause::OnDelete
        | Cause::OnChange
        | Cause::OnChangeOf(_)
        | Cause::OnGiveUp
        | Cause::OnAbort => false,
    })
}

/// Returns the states that the object was recorded in.
pub(super) fn entered(ended: &EndedRun) -> BTreeSet<String> {
    let versions = ended.server.versions().resource(&ended.plural);
    let objects = versions.into_iter().map(|version| version.object());
    let state = |object: Value| Some(object["status"]["lifecycle"]["state"].as_str()?.to_owned());
    objects.filter_map(state).collect()
}

/// Checks that every change of state was an edge, a jump or a new life, was in time, and was counted.
fn course_of_states<S: Lifecycle>(ended: &EndedRun) -> Vec<String> {
    let mut broken = Vec::new();
    let mut before: BTreeMap<String, (Value, Instant)> = BTreeMap::new();
    for version in ended.server.versions().resource(&ended.plural) {
        let object = version.object();
        let uid = object["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let position = object["status"]["lifecycle"].clone();
        if version.kind == EventKind::Deleted {
            continue;
        }
        let Some((last, since)) = before.get(&uid).cloned() else {
            before.insert(uid, (position, version.at));
            continue;
        };
        let moved = number(&last, "transition") != number(&position, "transition");
        if last.is_null() || !moved {
            if last["state"] != position["state"] && !last.is_null() {
                let what = format!(
                    "{} became {} without a transition",
                    last["state"], position["state"]
                );
                broken.push(what);
            }
            let since = if last.is_null() { version.at } else { since };
            before.insert(uid, (position, since));
            continue;
        }
        broken.extend(step::<S>(
            &last,
            &position,
            version.at.duration_since(since),
        ));
        before.insert(uid, (position, version.at));
    }
    broken
}

fn number(position: &Value, key: &str) -> u64 {
    position[key].as_u64().unwrap_or(0)
}

/// Checks one transition.
fn step<S: Lifecycle>(last: &Value, next: &Value, stayed: std::time::Duration) -> Vec<String> {
    let mut broken = Vec::new();
    let state = |position: &Value| position["state"].as_str().unwrap_or_default().to_owned();
    let (from, to) = (state(last), state(next));
    if number(next, "transition") != number(last, "transition") + 1 {
        broken.push(format!(
            "from transition {} to {}",
            number(last, "transition"),
            number(next, "transition")
        ));
    }
    let jumped = number(next, "jumps") > number(last, "jumps");
    let (Some(here), Some(there)) = (S::from_name(&from), S::from_name(&to)) else {
        return broken;
    };
    let Some(declared) = S::GRAPH.get(here.id()) else {
        return broken;
    };
    let is_edge = declared.targets().any(|target| target == there.id());
    let is_new_life = declared.is(Mark::Leaf) && S::GRAPH.entry() == Some(there.id());
    if !is_edge && !jumped && !is_new_life {
        broken.push(format!("{from} to {to}: no such edge"));
    }
    let history = next["history"].as_array();
    let cause = history
        .and_then(|history| history.last())
        .map(|last| &last["cause"]);
    for trigger in declared
        .triggers
        .iter()
        .filter(|trigger| trigger.to == there.id())
    {
        if let Cause::After(due) = trigger.cause
            && cause.is_some_and(|cause| cause == "After")
            && stayed > due.saturating_add(LATE)
        {
            broken.push(format!(
                "{from} was left for {to} after {} s, due after {} s",
                stayed.as_secs(),
                due.as_secs()
            ));
        }
    }
    broken
}

/// Checks that every status that an operator wrote obeys the rules for conditions.
fn conditions_hold<A: Application>(ended: &EndedRun) -> Vec<String> {
    let rules = Rules::of_application::<A>();
    let versions = rules.broken_by(&ended.server, OPERATOR, &ended.plural);
    let lines = versions.into_iter().flat_map(|(version, broken)| {
        let line = move |rule: String| format!("version {}: {rule}", version.version);
        broken.into_iter().map(line)
    });
    lines.collect()
}

/// Checks that no write of the operator was refused by the CRD's schema or rules.
fn refused_writes(ended: &EndedRun) -> Vec<String> {
    let mut requests = ended.server.requests();
    requests.retain(|request| request.client == OPERATOR);
    let mut broken = Vec::new();
    for (index, refused) in requests.iter().enumerate() {
        // A resource whose fields cannot change is deleted and created again.
        let is_replaced = || {
            requests[index..].iter().any(|later| {
                later.verb == Verb::Delete
                    && (&later.path, &later.name) == (&refused.path, &refused.name)
            })
        };
        if refused.status == 422 && !is_replaced() {
            broken.push(format!("{refused} was refused with 422"));
        }
    }
    broken
}

/// Checks that each piece of work has its own id, and is not begun twice or after its end.
fn work(ended: &EndedRun) -> Vec<String> {
    let mut broken = Vec::new();
    let mut states: BTreeMap<&str, &str> = BTreeMap::new();
    let mut begun: BTreeSet<(usize, &str, u32)> = BTreeSet::new();
    for one in &ended.attempts {
        let attempt = &one.attempt;
        let state = states.entry(&attempt.id).or_insert(attempt.state);
        if *state != attempt.state {
            broken.push(format!(
                "the id {} is that of the work of {state} and of {}",
                attempt.id, attempt.state
            ));
        }
        let fresh = begun.insert((one.start, &attempt.id, attempt.number));
        if !fresh && !attempt.resumed && !attempt.continues {
            broken.push(format!(
                "attempt {} of the work of {} ({}) began twice",
                attempt.number, attempt.state, attempt.id
            ));
        }
    }
    let (mut written, mut over) = (BTreeMap::new(), BTreeMap::new());
    for version in ended.server.versions().resource(&ended.plural) {
        let action = version.object()["status"]["lifecycle"]["action"].clone();
        let id = action["id"].as_str().unwrap_or_default();
        written.entry(id.to_owned()).or_insert(version.at);
        if action["phase"] != "Pending" {
            over.entry(id.to_owned()).or_insert(version.at);
        }
    }
    for one in &ended.attempts {
        let id = &one.attempt.id;
        if written.get(id).is_none_or(|written| *written > one.at) {
            broken.push(format!(
                "the work of {} ({id}) began before its position was written",
                one.attempt.state
            ));
        }
        let again = over.get(id).is_some_and(|over| *over < one.at);
        if again && one.attempt.number == 1 && !ended.plan.repeats_work() {
            broken.push(format!(
                "the work of {} ({id}) began again after its end",
                one.attempt.state
            ));
        }
    }
    broken
}
