//! What an object says of itself to machines: conditions, as plain data.

mod walked;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use self::walked::{Way, declared as of_pass, of_walk};
use crate::decide::{Decision, Stand, rounds_limit};
use crate::facts::{Facts, Observed};
use crate::graph::{ConditionStatus, Graph, Mark, State, StateId};
use crate::names::is_reason;
use crate::record::{Outcome, Record, Recorded};

/// How many condition types a graph may declare: an object holds 32, of which the operator writes 5 and others need some.
pub const DECLARED_LIMIT: usize = 24;

/// The longest message, in bytes.
pub const MESSAGE_LIMIT: usize = 1024;

/// One condition, without what only a writer knows (time of the last flip, generation).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The type (e.g. `Ready`).
    pub name: String,
    /// The status.
    pub status: ConditionStatus,
    /// One word: the state, or what is in the way.
    pub reason: String,
    /// For people: what is the matter, and what to change.
    pub message: String,
}

/// The texts that a condition may need and that a decision does without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words<'a> {
    /// The stored name of the state, where the graph does not know it.
    pub state: &'a str,
    /// The wished name, where the graph does not know it.
    pub wish: &'a str,
    /// Reason and message of the failure that the action stands at.
    pub failure: Option<(&'a str, &'a str)>,
    /// Reason and message of the failure that led into this state, if one did.
    pub led_here: Option<(&'a str, &'a str)>,
    /// What the observation said: the name of an unforeseen state, or why the application is not reachable.
    pub observed: &'a str,
    /// How what the object owns in the cluster stands.
    pub resources: Resources<'a>,
}

/// How what an object owns in the cluster stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Resources<'a> {
    /// As its state asks for, or there is nothing to own.
    #[default]
    AsDeclared,
    /// Something is not ready, or not gone, yet: what, and why.
    Awaited(&'a str),
    /// Something could not be done.
    Failed {
        /// One word.
        reason: &'a str,
        /// The details for people.
        message: &'a str,
        /// Whether trying again is of no use.
        permanent: bool,
    },
}

/// Where an object stands, as far as machines care.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Standing {
    /// Where it is wished, with its work done.
    Ready(Text),
    /// Something will happen by itself.
    Moving(Text),
    /// Nothing will happen until somebody changes something.
    Stalled(Text),
    /// Nobody can say.
    Lost(Text),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Text {
    reason: String,
    message: String,
}

fn text(reason: &str, message: impl Into<String>) -> Text {
    Text {
        // A reason that a handler made up must not cost the whole write.
        reason: if is_reason(reason) { reason } else { "Failed" }.to_string(),
        message: bounded(message.into()),
    }
}

/// Cuts a message to [`MESSAGE_LIMIT`], between characters.
pub fn bounded(message: String) -> String {
    cut(message, MESSAGE_LIMIT)
}

fn cut(mut message: String, room: usize) -> String {
    if message.len() > room {
        let mut end = room.saturating_sub("…".len());
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push('…');
    }
    message
}

/// Every condition that OKT owns on an object: `Ready`, then `Reconciling` or `Stalled` while True, `Deleting`, `Paused`, and the declared ones in declaration order.
///
/// `after` is the record as the same write leaves it, `decision` what led to it.
pub fn conditions(
    graph: &Graph<'_>,
    after: &Recorded,
    facts: &Facts<'_>,
    decision: &Decision,
    words: &Words<'_>,
) -> Vec<Condition> {
    let standing = standing(graph, after, facts, decision, words);
    let leaving = facts
        .deleting
        .then(|| deletion_message(graph, after, decision));
    let mut all = framed(&standing, leaving, facts.paused);
    for (name, status, text) in declared(graph, after, facts, words) {
        all.push(condition(name, status, &text));
    }
    all
}

fn condition(name: &str, status: ConditionStatus, text: &Text) -> Condition {
    Condition {
        name: name.to_string(),
        status,
        reason: text.reason.clone(),
        message: text.message.clone(),
    }
}

/// The conditions that every object has, whatever its graph declares; `leaving` is what is said of a deletion.
fn framed(standing: &Standing, leaving: Option<String>, paused: bool) -> Vec<Condition> {
    let yes_no = |yes| {
        if yes {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        }
    };
    let (ready, beside, why) = match standing {
        Standing::Ready(why) => (ConditionStatus::True, None, why),
        Standing::Moving(why) => (ConditionStatus::False, Some("Reconciling"), why),
        Standing::Stalled(why) => (ConditionStatus::False, Some("Stalled"), why),
        Standing::Lost(why) => (ConditionStatus::Unknown, Some("Reconciling"), why),
    };
    let mut all = alloc::vec![condition("Ready", ready, why)];
    if let Some(beside) = beside {
        all.push(condition(beside, ConditionStatus::True, why));
    }
    let is_leaving = leaving.is_some();
    let deleting = match leaving {
        Some(message) => text("Deleting", message),
        None => text("NotDeleting", ""),
    };
    all.push(condition("Deleting", yes_no(is_leaving), &deleting));
    let because = if paused && is_leaving {
        text(
            "Paused",
            "paused, but deletion goes on; the annotation is okt.dev/paused",
        )
    } else if paused {
        text("Paused", "remove the annotation okt.dev/paused to go on")
    } else {
        text("NotPaused", "")
    };
    all.push(condition("Paused", yes_no(paused), &because));
    all
}

/// The declared conditions: those of the present state, `False` for the other types, `Unknown` for all where nobody can say.
fn declared<'g>(
    graph: &Graph<'g>,
    after: &Recorded,
    facts: &Facts<'_>,
    words: &Words<'_>,
) -> Vec<(&'g str, ConditionStatus, Text)> {
    let at = after.at().and_then(|record| graph.get(record.state));
    let lost = lost(facts, at, words);
    let mut said: Vec<(&str, ConditionStatus, Text)> = Vec::new();
    for declared in graph.states.iter().flat_map(|state| state.conditions) {
        if said.iter().any(|(name, ..)| *name == declared.name) {
            continue;
        }
        let (status, text) = match (&lost, at) {
            // `Ready` has the message; repeated in each of up to 24 types it would not fit into a status.
            (Some(why), _) => (ConditionStatus::Unknown, text(&why.reason, "")),
            (None, None) => (ConditionStatus::Unknown, text("UnknownState", "")),
            (None, Some(state)) => {
                match state.conditions.iter().find(|c| c.name == declared.name) {
                    Some(here) => {
                        let reason = if here.reason.is_empty() {
                            state.name
                        } else {
                            here.reason
                        };
                        (here.status, text(reason, here.message))
                    }
                    None => (ConditionStatus::False, text(state.name, "")),
                }
            }
        };
        said.push((declared.name, status, text));
    }
    said
}

/// Why nobody can say how the application is; none where somebody can, and in a leaf, where nothing is observed.
fn lost(facts: &Facts<'_>, at: Option<&State<'_>>, words: &Words<'_>) -> Option<Text> {
    if at.is_some_and(|state| state.is(Mark::Leaf)) {
        return None;
    }
    match facts.observed {
        Observed::Unforeseen => Some(text(
            "UnforeseenState",
            format!(
                "the application says it is in `{}`, which the graph does not know; declare the state, or map it in `observe`",
                words.observed
            ),
        )),
        // A first look that fails is no reason to wait for two more: there is nothing as before.
        Observed::Unreachable { .. } if facts.observed.is_lost() || at.is_none() => Some(text(
            "Unreachable",
            format!("the application cannot be reached: {}", words.observed),
        )),
        Observed::Failed { .. } if facts.observed.is_lost() || at.is_none() => Some(text(
            "ObservationFailed",
            format!("looking at the application failed: {}", words.observed),
        )),
        Observed::In(_)
        | Observed::Absent
        | Observed::Unobserved
        | Observed::Unreachable { .. }
        | Observed::Failed { .. } => None,
    }
}

fn deletion_message(graph: &Graph<'_>, after: &Recorded, decision: &Decision) -> String {
    let Some(record) = after.at() else {
        return String::new();
    };
    if is_stuck(graph, record, decision) {
        return "cannot end; to drop the finalizer all the same, annotate the object with okt.dev/abandon: <its uid>".into();
    }
    let leaf = leaf_ahead(graph, record.state);
    if leaf == record.state {
        format!("in {}", graph.name_of(leaf))
    } else {
        format!(
            "in {}, on the way to {}",
            graph.name_of(record.state),
            graph.name_of(leaf)
        )
    }
}

/// Where the way out ends.
fn leaf_ahead(graph: &Graph<'_>, from: StateId) -> StateId {
    let mut at = from;
    for _ in graph.states {
        match graph.out(at) {
            Some(hop) => at = hop,
            None => break,
        }
    }
    at
}

fn is_stuck(graph: &Graph<'_>, record: &Record, decision: &Decision) -> bool {
    graph.get(record.state).is_none() || stands_failed(graph, record, decision)
}

/// Whether the work failed for good, and nothing leads on from there by itself.
fn stands_failed(graph: &Graph<'_>, record: &Record, decision: &Decision) -> bool {
    record.failed(graph) && !matches!(decision, Decision::Stand(Stand::Braking(_)))
}

/// The table of DESIGN section 5, from what decides to what is decided by it.
fn standing(
    graph: &Graph<'_>,
    after: &Recorded,
    facts: &Facts<'_>,
    decision: &Decision,
    words: &Words<'_>,
) -> Standing {
    let Some(record) = after.at() else {
        return of_resources(words.resources).unwrap_or_else(|| unrecorded(facts, words));
    };
    let Some(state) = graph.get(record.state) else {
        return Standing::Stalled(text(
            "UnknownState",
            format!(
                "the graph has no state `{}`, and no observation says where the application is; add `#[was(..)]`, or let `observe` name the state",
                words.state
            ),
        ));
    };
    if facts.deleting {
        return deletion(graph, record, state, decision, words);
    }
    if stands_failed(graph, record, decision) {
        return Standing::Stalled(failure(words, "; it is tried again when the spec changes"));
    }
    // At its wish too, something may be due that only the pause keeps back: a new revision, or a move.
    let kept_back = matches!(decision, Decision::Stand(Stand::Paused));
    if facts.is_paused() && (kept_back || !record.wish.reached) {
        return Standing::Moving(text(
            "Paused",
            format!(
                "in {}; remove the annotation okt.dev/paused to go on",
                state.name
            ),
        ));
    }
    // An application that waits for its own parts cannot be reached yet: the parts are the news.
    if let Some(standing) = of_resources(words.resources) {
        return standing;
    }
    if let Some(why) = lost(facts, Some(state), words) {
        return Standing::Lost(why);
    }
    if goes_round(graph, record, decision) {
        return Standing::Moving(text(
            "GoingRound",
            "many transitions without coming to rest where wished; the next ones wait. Compare what handlers and `observe` say with the trail",
        ));
    }
    if record.in_flight(graph) || state.is_passing() {
        return under_way(graph, facts, record, state, words);
    }
    if state.is(Mark::Leaf) {
        return in_leaf(graph, facts, record, state, words);
    }
    at_rest(graph, facts, record, state, words)
}

/// What of what an object owns keeps it from going.
fn left_behind(words: &Words<'_>) -> Option<Text> {
    let (reason, message) = match words.resources {
        Resources::AsDeclared => return None,
        Resources::Awaited(what) => ("WaitingForResources", what),
        Resources::Failed {
            reason, message, ..
        } => (reason, message),
    };
    let advice = "; to give it up, annotate the object with okt.dev/abandon: <its uid>";
    let mut message = cut(message.to_string(), MESSAGE_LIMIT - advice.len());
    message.push_str(advice);
    Some(text(reason, message))
}

/// What is in the way of what the object owns in the cluster.
fn of_resources(resources: Resources<'_>) -> Option<Standing> {
    match resources {
        Resources::AsDeclared => None,
        Resources::Awaited(what) => Some(Standing::Moving(text("WaitingForResources", what))),
        Resources::Failed {
            reason,
            message,
            permanent: false,
        } => Some(Standing::Moving(text(reason, message))),
        Resources::Failed {
            reason,
            message,
            permanent: true,
        } => Some(Standing::Stalled(text(reason, message))),
    }
}

/// Whether the object has moved on and on; having settled at last, it is said to be where it settled.
fn goes_round(graph: &Graph<'_>, record: &Record, decision: &Decision) -> bool {
    match decision {
        Decision::Stand(Stand::Braking(_)) => true,
        Decision::Stand(Stand::Settled | Stand::Paused) => false,
        Decision::Stand(_)
        | Decision::Go(_)
        | Decision::Run(_)
        | Decision::Retry { .. }
        | Decision::End(_)
        | Decision::Release { .. } => record.rounds > rounds_limit(graph),
    }
}

/// Nothing is recorded yet, and nothing is about to be.
fn unrecorded(facts: &Facts<'_>, words: &Words<'_>) -> Standing {
    match lost(facts, None, words) {
        Some(why) => Standing::Lost(why),
        None if facts.is_paused() => Standing::Moving(text(
            "Paused",
            "nothing was done yet; remove the annotation okt.dev/paused to begin",
        )),
        None => Standing::Lost(text(
            "Unobserved",
            "nothing is known of the application yet",
        )),
    }
}

fn failure(words: &Words<'_>, then: &str) -> Text {
    let (reason, message) = words.failure.unwrap_or(("Failed", "the action failed"));
    // The advice must survive a long message.
    let mut message = cut(message.to_string(), MESSAGE_LIMIT - then.len());
    message.push_str(then);
    text(reason, message)
}

/// The failure that led here, if one did, before what is to be done about it.
fn after_failure(words: &Words<'_>, advice: &str) -> String {
    let Some((reason, message)) = words.led_here else {
        return advice.to_string();
    };
    let advice = format!("; {advice}");
    let mut text = cut(
        format!("{reason}: {message}"),
        MESSAGE_LIMIT.saturating_sub(advice.len()),
    );
    text.push_str(&advice);
    text
}

fn deletion(
    graph: &Graph<'_>,
    record: &Record,
    state: &State<'_>,
    decision: &Decision,
    words: &Words<'_>,
) -> Standing {
    if is_stuck(graph, record, decision) {
        return Standing::Stalled(failure(
            words,
            "; change the spec to try again, or give the object up with the annotation okt.dev/abandon: <its uid>",
        ));
    }
    if record.in_flight(graph) && words.failure.is_some() {
        return Standing::Moving(failure(words, ""));
    }
    if let Some(why) = left_behind(words) {
        return Standing::Moving(why);
    }
    Standing::Moving(text(
        state.name,
        deletion_message(graph, &Recorded::At(*record), decision),
    ))
}

/// Where the object is led: the visit it makes, else the state it is wished in, else just on.
fn target<'g>(graph: &Graph<'g>, facts: &Facts<'_>, record: &Record) -> Option<&'g str> {
    let visit = record
        .visit
        .filter(|visit| visit.outcome == Outcome::Pending && facts.visit.is_some())
        .and_then(|visit| visit.state.known());
    visit
        .or_else(|| facts.wanted(graph))
        .and_then(|to| graph.get(to))
        .map(|state| state.name)
}

fn under_way(
    graph: &Graph<'_>,
    facts: &Facts<'_>,
    record: &Record,
    state: &State<'_>,
    words: &Words<'_>,
) -> Standing {
    if words.failure.is_some() && record.in_flight(graph) {
        return Standing::Moving(failure(words, ""));
    }
    let target = target(graph, facts, record).unwrap_or(state.name);
    let message = if target == state.name {
        format!("the work of {target} is under way")
    } else {
        format!("in {}, on the way to {target}", state.name)
    };
    Standing::Moving(text(target, message))
}

/// A leaf whose work is done.
fn in_leaf(
    graph: &Graph<'_>,
    facts: &Facts<'_>,
    record: &Record,
    state: &State<'_>,
    words: &Words<'_>,
) -> Standing {
    if record.wish.reached {
        return Standing::Ready(text(state.name, format!("in {}, as wished", state.name)));
    }
    let Some(wanted) = facts.wanted(graph) else {
        return unknown_wish(words);
    };
    Standing::Stalled(text(
        state.name,
        format!(
            "ended in {}; nothing is made anew behind your back: to get to {}, set spec.lifecycle.request to a new text",
            state.name,
            graph.name_of(wanted)
        ),
    ))
}

fn unknown_wish(words: &Words<'_>) -> Standing {
    Standing::Stalled(text(
        "UnknownWish",
        format!(
            "spec.lifecycle.state: there is no state `{}` in the graph",
            words.wish
        ),
    ))
}

/// A resting state whose work is done.
fn at_rest(
    graph: &Graph<'_>,
    facts: &Facts<'_>,
    record: &Record,
    state: &State<'_>,
    words: &Words<'_>,
) -> Standing {
    let holds = |made: u64| state.is(Mark::Hold) && made != record.transition;
    let visit = record
        .visit
        .filter(|visit| visit.outcome == Outcome::Pending && facts.visit.is_some())
        .and_then(|visit| Some((visit.state.known()?, visit.transition)))
        .filter(|(to, made)| !holds(*made) && graph.hop(record.state, *to).is_some());
    if visit.is_some() {
        return under_way(graph, facts, record, state, words);
    }
    let Some(wanted) = facts.wanted(graph) else {
        return unknown_wish(words);
    };
    if wanted == record.state {
        return match facts.observed {
            Observed::In(seen) if seen != record.state && state.is(Mark::Hold) => {
                Standing::Stalled(text(
                    "ObservedElsewhere",
                    format!(
                        "{} holds, but the application is seen in {}; wish for a state to leave it",
                        state.name,
                        graph.name_of(seen)
                    ),
                ))
            }
            Observed::Absent => Standing::Stalled(text(
                "Absent",
                format!("in {}, but there is no application to be seen", state.name),
            )),
            Observed::In(_)
            | Observed::Unobserved
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => {
                Standing::Ready(text(state.name, format!("in {}, as wished", state.name)))
            }
        };
    }
    let name = graph.name_of(wanted);
    if graph.hop(record.state, wanted).is_none() {
        let declared = state.no_routes.iter().find(|claim| claim.to == wanted);
        return Standing::Stalled(text(
            "NoRoute",
            match declared {
                Some(claim) => format!("no route from {} to {name}: {}", state.name, claim.reason),
                None => format!(
                    "no route from {} to {name}: a spec may not wish for it here",
                    state.name
                ),
            },
        ));
    }
    if holds(record.wish.transition) {
        let advice = format!(
            "{} holds until somebody asks again: set spec.lifecycle.request to a new text to go to {name}",
            state.name
        );
        return Standing::Stalled(text(state.name, after_failure(words, &advice)));
    }
    under_way(graph, facts, record, state, words)
}
