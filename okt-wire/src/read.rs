//! Converts the stored position and the desired state of an object into the numbers that the core decides on.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_core::decide::Why;
use okt_core::facts::{DesiredState, DesiredVisit, Named};
use okt_core::machine::Version;
use okt_core::record::{ActionRecord, DesiredRecord, Record, Recorded, VisitRecord, WaitRecord};
use okt_core::request::RequestRecord;
use okt_core::{Graph, Lifecycle, Plan, StateId};
use sha2::{Digest, Sha256};

use crate::cause;
use crate::desired::{Desired, REQUEST_LIMIT, StateName};
use crate::digest;
use crate::status::{
    Position, RecordedAction, RecordedDesired, RecordedRequest, RecordedVisit, RecordedWait,
    Transition,
};

/// Converts a stored position into a record.
///
/// If another writer's status lacks a revision, the present one counts: then nothing has changed.
pub fn record<S: Lifecycle>(
    position: Option<&Position<S>>,
    deleting: bool,
    present: u64,
) -> Recorded {
    let Some(position) = position else {
        return Recorded::Nothing;
    };
    Recorded::At(Record {
        state: id(&position.state),
        left: left(position),
        transition: position.transition,
        jumps: position.jumps,
        jumped: last(position).is_some_and(|last| cause::is_jump(&last.cause)),
        rounds: position.rounds,
        deleting,
        desired: desired_record::<S>(position.desired.as_ref()),
        visit: position.visit.as_ref().map(visit_record::<S>),
        request: position.request.as_ref().map(request_record::<S>),
        revision: digest::number(&position.revision).unwrap_or(present),
        changed: digest::number(&position.changed).unwrap_or(present),
        // Another writer may have moved the object: then the recorded action belongs to another state, and the work of
        // this state has no known end.
        action: position
            .action
            .as_ref()
            .filter(|action| transition_of(&action.id) == Some(position.transition))
            .map(action),
        waiting: position.waiting.as_ref().and_then(wait_record::<S>),
        returned: position.returned,
    })
}

/// Returns a recorded wait; none for a gate or a state of another release.
fn wait_record<S: Lifecycle>(recorded: &RecordedWait) -> Option<WaitRecord> {
    let mut gates = S::GRAPH.all_gates();
    Some(WaitRecord {
        gate: gates.find(|(_, gate)| gate.name == recorded.gate)?.0,
        to: StateName::<S>::of(&recorded.to).known()?.id(),
        why: cause::why(&recorded.cause)?,
        plan: recorded.plan.as_deref().and_then(Plan::parse),
    })
}

fn id<S: Lifecycle>(name: &StateName<S>) -> StateId {
    name.known().map_or(StateId::UNKNOWN, Lifecycle::id)
}

/// Returns the previous state, from the history.
fn left<S: Lifecycle>(position: &Position<S>) -> StateId {
    last(position).map_or(StateId::UNKNOWN, |last| id(&StateName::<S>::of(&last.from)))
}

/// Returns the cause of the transition into the present state, from the history.
pub fn cause<S: Lifecycle>(position: &Position<S>) -> Option<Why> {
    cause::why(&last(position)?.cause)
}

/// Returns the transition into the present state; none if another writer moved the object.
fn last<S>(position: &Position<S>) -> Option<&Transition> {
    let last = position.history.last();
    last.filter(|last| last.transition == position.transition)
}

fn desired_record<S: Lifecycle>(recorded: Option<&RecordedDesired>) -> DesiredRecord {
    match recorded {
        Some(desired) => DesiredRecord {
            state: StateName::<S>::of(&desired.state).named(),
            transition: desired.transition,
            reached: desired.reached,
        },
        // Another writer wrote the status: the present desired state counts as unchanged.
        None => DesiredRecord {
            state: Named::Unknown,
            transition: 0,
            reached: false,
        },
    }
}

fn visit_record<S: Lifecycle>(recorded: &RecordedVisit) -> VisitRecord {
    VisitRecord {
        state: StateName::<S>::of(&recorded.state).named(),
        transition: recorded.transition,
        outcome: recorded.outcome,
    }
}

fn request_record<S: Lifecycle>(recorded: &RecordedRequest) -> RequestRecord {
    RequestRecord {
        state: StateName::<S>::of(&recorded.state).named(),
        token: hash(&recorded.uid),
        transition: recorded.transition,
        outcome: recorded.outcome,
    }
}

fn action(recorded: &RecordedAction) -> ActionRecord {
    ActionRecord {
        run: run(&recorded.id),
        attempt: recorded.attempt.max(1),
        phase: recorded.phase,
        generation: recorded.generation,
        leaving: recorded.leaving,
    }
}

/// Returns the id of the work of a state, as the position records it.
///
/// It is the id [minted](mint) when the work was recorded, or a plain one if another writer wrote the position.
pub fn action_id<S>(
    position: Option<&Position<S>>,
    uid: &str,
    transition: u64,
    number: u32,
) -> String {
    let recorded = position.and_then(|position| position.action.as_ref());
    let plain = plain_id(uid, transition, number);
    let recorded = recorded.filter(|action| self::plain(&action.id) == plain);
    recorded.map_or(plain, |action| action.id.clone())
}

/// Returns a new, unique id for the work of a state.
///
/// The id contains the time, so that it is unique even if the history of the cluster went back and the same transition
/// happens again.
pub fn mint(uid: &str, transition: u64, number: u32, now: Timestamp) -> String {
    let plain = plain_id(uid, transition, number);
    format!("{plain}{TOKEN}{:x}", now.as_millisecond())
}

/// The separator before the time in an id.
pub const TOKEN: char = '@';

fn plain_id(uid: &str, transition: u64, number: u32) -> String {
    match number {
        0 | 1 => format!("{uid}/{transition}"),
        _ => format!("{uid}/{transition}/{number}"),
    }
}

/// Returns the transition in an id.
fn transition_of(id: &str) -> Option<u64> {
    plain(id).split('/').nth(1)?.parse().ok()
}

/// Returns the run within the transition in an id, starting at 1.
fn run(id: &str) -> u32 {
    plain(id)
        .splitn(3, '/')
        .nth(2)
        .and_then(|run| run.parse().ok())
        .unwrap_or(1)
}

/// Returns an id without its time.
pub fn plain(id: &str) -> &str {
    id.split(TOKEN).next().unwrap_or(id)
}

/// Compares the desired state of the spec with the recorded one.
pub fn desired<S: Lifecycle>(
    desired: &Desired<S>,
    recorded: Option<&RecordedDesired>,
) -> DesiredState {
    let state = desired.state.as_ref().map(StateName::named);
    let (other_state, other_request) = match recorded {
        None => (false, false),
        Some(recorded) => {
            let before = StateName::<S>::of(&recorded.state);
            (
                desired_name(desired).as_ref() != Some(&before),
                // Removing a request requests nothing.
                desired.request.is_some() && request(desired) != recorded.request,
            )
        }
    };
    DesiredState {
        state,
        fresh: other_state || other_request,
        requested: other_request,
    }
}

/// Returns the desired state, from the spec or the default.
pub fn desired_name<S: Lifecycle>(desired: &Desired<S>) -> Option<StateName<S>> {
    desired
        .state
        .clone()
        .map(bounded_name)
        .or_else(|| S::GRAPH.home().and_then(S::from_id).map(StateName::Known))
}

fn bounded_name<S: Lifecycle>(name: StateName<S>) -> StateName<S> {
    match name {
        StateName::Unknown(name) => StateName::Unknown(bounded(&name).into_owned()),
        StateName::Known(_) => name,
    }
}

/// Returns the request in its recorded form.
pub fn request<S>(desired: &Desired<S>) -> Option<String> {
    desired
        .request
        .as_deref()
        .map(|request| bounded(request).into_owned())
}

/// Returns a text in its recorded form: a hash replaces a text that is too long, which an older CRD may have accepted.
pub fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= REQUEST_LIMIT {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("sha256:{}", digest::hex(&Sha256::digest(text))))
    }
}

/// Compares the visit of the spec with the recorded one.
pub fn visit<S: Lifecycle>(
    desired: &Desired<S>,
    recorded: Option<&RecordedVisit>,
) -> Option<DesiredVisit> {
    let visit = desired.visit.as_ref()?;
    let same = recorded.is_some_and(|recorded| {
        StateName::<S>::of(&recorded.state) == bounded_name(visit.state.clone())
            && recorded.request == bounded(&visit.request)
    });
    Some(DesiredVisit {
        state: visit.state.named(),
        fresh: !same,
    })
}

/// Returns the generation of the object at which its recorded revision was last found, and that revision; none if an
/// older release recorded no generation.
pub fn recorded_revision<S>(position: &Position<S>) -> Option<(i64, u64)> {
    let revision = digest::number(&position.revision)?;
    if let Some(generation) = position.revision_generation {
        return Some((generation, revision));
    }
    let generation = last(position)?.generation?;
    let action = position.action.as_ref().map(|action| action.generation);
    Some((
        action.map_or(generation, |action| action.max(generation)),
        revision,
    ))
}

/// Returns the recorded hash of the referred objects that are part of the revision.
pub fn recorded_referred<S>(position: &Position<S>) -> Option<u64> {
    digest::number(position.referred.as_ref()?)
}

/// Returns a hash of the graph.
pub fn graph_hash(graph: &Graph<'_>) -> String {
    format!("sha256:{}", digest::hex(&Sha256::digest(graph.json())))
}

/// Returns the version of an object.
pub fn version(meta: &ObjectMeta) -> Option<Version> {
    let text = meta.resource_version.as_deref()?;
    Some(match text.parse() {
        Ok(number) => Version::Number(number),
        Err(_) => Version::Other(hash(text)),
    })
}

/// Returns a hash of a text. It is the same for the life of this process.
pub fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Returns a hash of the time in the recorded id of the work.
pub fn token<S>(position: Option<&Position<S>>) -> u64 {
    let action = position.and_then(|it| it.action.as_ref());
    let time = action.and_then(|action| action.id.split_once(TOKEN));
    time.map_or(0, |(_, time)| hash(time))
}
