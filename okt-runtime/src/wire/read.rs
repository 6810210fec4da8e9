//! From what is stored to what is decided on: the record and the wishes of an object as numbers.

use std::borrow::Cow;

use jiff::Timestamp;
use okt_core::decide::Why;
use okt_core::facts::{DesiredState, Named, Visit as VisitFact};
use okt_core::record::{
    Action, DesiredRecord, Outcome as CoreOutcome, Phase as CorePhase, Record, Recorded,
    VisitRecord,
};
use okt_core::{Graph, Lifecycle, StateId, draw};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::wire::cause;
use crate::wire::desired::{Desired, REQUEST_LIMIT, StateName};
use crate::wire::status::{
    Outcome, Phase, Position, RecordedAction, RecordedDesired, RecordedVisit, Transition,
};

/// The record behind a stored position.
///
/// A revision that a foreign status lacks is taken to be the present one: nobody asked for anything.
pub(crate) fn record<S: Lifecycle>(
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
        revision: number(&position.revision).unwrap_or(present),
        changed: number(&position.changed).unwrap_or(present),
        // Somebody else may have moved the object: the action on record is then that of another state,
        // and the work of this one was never seen to end.
        action: position
            .action
            .as_ref()
            .filter(|action| transition_of(&action.id) == Some(position.transition))
            .map(action),
    })
}

fn id<S: Lifecycle>(name: &StateName<S>) -> StateId {
    name.known().map_or(StateId::UNKNOWN, Lifecycle::id)
}

/// The state before this one, from the history.
fn left<S: Lifecycle>(position: &Position<S>) -> StateId {
    last(position).map_or(StateId::UNKNOWN, |last| id(&StateName::<S>::of(&last.from)))
}

/// What led into the present state, from the history.
pub(crate) fn cause<S: Lifecycle>(position: &Position<S>) -> Option<Why> {
    cause::why(&last(position)?.cause)
}

/// The transition into the present state; none where somebody else moved the object.
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
        // A status that somebody else wrote: whatever is wished now was wished before.
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
        outcome: match recorded.outcome {
            Outcome::Pending => CoreOutcome::Pending,
            Outcome::Reached => CoreOutcome::Reached,
            Outcome::Refused => CoreOutcome::Refused,
            Outcome::Overtaken => CoreOutcome::Overtaken,
            Outcome::NotReplayed => CoreOutcome::NotReplayed,
        },
    }
}

fn action(recorded: &RecordedAction) -> Action {
    Action {
        run: run(&recorded.id),
        attempt: recorded.attempt.max(1),
        phase: match recorded.phase {
            Phase::Pending => CorePhase::Pending,
            Phase::Done => CorePhase::Done,
            Phase::Failed => CorePhase::Failed,
        },
        generation: recorded.generation,
        leaving: recorded.leaving,
    }
}

/// The id of the work of a state, as the position records it.
///
/// The one that was [minted](mint) when the work was recorded; a plain one where somebody else wrote the position.
pub(crate) fn action_id<S>(
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

/// A new id for the work of a state, which no other work has: not even where the history of the cluster went back and
/// the same transition is made again, because the time at which it is recorded is part of it.
pub(crate) fn mint(uid: &str, transition: u64, number: u32, now: Timestamp) -> String {
    let plain = plain_id(uid, transition, number);
    format!("{plain}{TOKEN}{:x}", now.as_millisecond())
}

/// What stands before the time in an id.
pub(crate) const TOKEN: char = '@';

fn plain_id(uid: &str, transition: u64, number: u32) -> String {
    match number {
        0 | 1 => format!("{uid}/{transition}"),
        _ => format!("{uid}/{transition}/{number}"),
    }
}

/// The transition whose work an id names.
fn transition_of(id: &str) -> Option<u64> {
    plain(id).split('/').nth(1)?.parse().ok()
}

/// Which run within its transition an id names.
fn run(id: &str) -> u32 {
    (plain(id).splitn(3, '/').nth(2))
        .and_then(|run| run.parse().ok())
        .unwrap_or(1)
}

/// An id without its time.
pub(crate) fn plain(id: &str) -> &str {
    id.split(TOKEN).next().unwrap_or(id)
}

/// What the spec wishes, against what is recorded.
pub(crate) fn desired<S: Lifecycle>(
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
                // Taking a request back asks for nothing.
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

/// What is wished, by the spec or by default.
pub(crate) fn desired_name<S: Lifecycle>(desired: &Desired<S>) -> Option<StateName<S>> {
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

/// The request as it is recorded.
pub(crate) fn request<S>(desired: &Desired<S>) -> Option<String> {
    desired
        .request
        .as_deref()
        .map(|request| bounded(request).into_owned())
}

/// A text as it is recorded: one that an older CRD let through is recorded by its hash, which tells it apart as well.
pub(crate) fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= REQUEST_LIMIT {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("sha256:{}", hex(&Sha256::digest(text))))
    }
}

/// The visit the spec wishes, against what is recorded.
pub(crate) fn visit<S: Lifecycle>(
    desired: &Desired<S>,
    recorded: Option<&RecordedVisit>,
) -> Option<VisitFact> {
    let visit = desired.visit.as_ref()?;
    let same = recorded.is_some_and(|recorded| {
        StateName::<S>::of(&recorded.state) == bounded_name(visit.state.clone())
            && recorded.request == bounded(&visit.request)
    });
    Some(VisitFact {
        state: visit.state.named(),
        fresh: !same,
    })
}

/// A hash of what handlers act upon.
pub(crate) fn revision(of: &impl Serialize) -> u64 {
    let text = serde_json::to_vec(of).unwrap_or_default();
    let digest = Sha256::digest(&text);
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A revision on the wire.
pub(crate) fn text(revision: u64) -> String {
    format!("{revision:016x}")
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// A digest as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

/// A hash of the graph.
pub(crate) fn graph_hash(graph: &Graph<'_>) -> String {
    format!("sha256:{}", hex(&Sha256::digest(draw::json(graph))))
}

/// A number that tells the jitter of one object from that of another.
pub(crate) fn seed(uid: &str) -> u64 {
    revision(&uid)
}
