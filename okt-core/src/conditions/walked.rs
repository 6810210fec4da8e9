//! What an object says of a pass: the declared conditions of its states, and how it stands by it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{
    CANNOT_END, Condition, Resources, Standing, Text, advised, condition, framed, of_resources,
    text,
};
use crate::graph::{ConditionStatus, Declared, Graph, State};
use crate::pass::{Said, Walk};

/// What was done with the pass of an object in one turn.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// It was walked through.
    Walked(&'a Walk<'a>),
    /// Somebody has paused the object before it was ever walked through.
    Paused,
    /// The object is being deleted, and its turn to go has not come.
    Leaving,
}

/// Every condition that OKT owns on an object that has a pass and no lifecycle.
///
/// `resources` is how what it owns in the cluster stands beside what the walk says of it.
pub fn of_walk(
    graph: &Graph<'_>,
    way: Way<'_>,
    resources: Resources<'_>,
    deleting: bool,
    paused: bool,
) -> Vec<Condition> {
    let standing = standing(way, resources, deleting);
    let leaving = deleting.then(|| match &standing {
        Standing::Stalled(_) => CANNOT_END.to_string(),
        Standing::Ready(_) | Standing::Moving(_) | Standing::Lost(_) => String::new(),
    });
    let mut all = framed(&standing, leaving, paused);
    all.extend(declared(graph, way));
    all
}

/// The declared conditions of a pass: `Unknown` for those of states that were not reached.
pub fn declared(graph: &Graph<'_>, way: Way<'_>) -> Vec<Condition> {
    let mut all: Vec<Condition> = Vec::new();
    for declared in graph.states.iter().flat_map(|state| state.conditions) {
        if all.iter().any(|said| said.name == declared.name) {
            continue;
        }
        all.push(match way {
            Way::Walked(walk) => said(graph, walk, declared.name),
            Way::Paused => unknown(declared.name, "Paused"),
            Way::Leaving => unknown(declared.name, "Deleting"),
        });
    }
    all
}

fn unknown(name: &str, reason: &str) -> Condition {
    condition(name, ConditionStatus::Unknown, &text(reason, ""))
}

/// What the states that were gone through say of one type: the first that is not as declared, else the last.
fn said(graph: &Graph<'_>, walk: &Walk<'_>, name: &str) -> Condition {
    let mut last = None;
    for visited in walk.visited() {
        let Some(state) = graph.get(visited.state) else {
            continue;
        };
        let Some(declared) = state.conditions.iter().find(|it| it.name == name) else {
            continue;
        };
        let (status, text) = of_state(state, declared, &visited.said);
        let is_due = status == declared.status;
        last = Some(condition(name, status, &text));
        if !is_due {
            break;
        }
    }
    last.unwrap_or_else(|| unknown(name, "NotReached"))
}

fn of_state(state: &State<'_>, declared: &Declared<'_>, said: &Said) -> (ConditionStatus, Text) {
    // Nobody can say of what went wrong that it is not there.
    let not_done = match declared.status {
        ConditionStatus::True => ConditionStatus::False,
        ConditionStatus::False | ConditionStatus::Unknown => ConditionStatus::Unknown,
    };
    match said {
        Said::Done { own, text: words } => {
            let (status, reason) = match own {
                Some((status, reason)) => (*status, reason.as_str()),
                None if declared.reason.is_empty() => (declared.status, state.name),
                None => (declared.status, declared.reason),
            };
            let words = words.as_deref().unwrap_or(declared.message);
            (status, text(reason, words))
        }
        Said::Waits { reason, message } => (not_done, text(reason, message.as_str())),
        Said::Failed(failure) => (not_done, text(&failure.reason, failure.message.as_str())),
        Said::GaveUp { message } => (not_done, text("GaveUp", message.as_str())),
    }
}

fn standing(way: Way<'_>, resources: Resources<'_>, deleting: bool) -> Standing {
    let walk = match way {
        Way::Walked(walk) => walk,
        Way::Leaving => return Standing::Moving(text("Deleting", "")),
        Way::Paused => {
            return Standing::Moving(text(
                "Paused",
                "remove the annotation okt.dev/paused to go on",
            ));
        }
    };
    let Some(way) = walk.in_the_way() else {
        return match of_resources(resources) {
            Some(standing) => standing,
            None if deleting => Standing::Moving(text("Deleting", "")),
            None => Standing::Ready(text("Complete", "every step of the pass is done")),
        };
    };
    if !way.permanent {
        return Standing::Moving(text(&way.reason, way.message));
    }
    let advice = if deleting {
        "change the spec to try again, or give the object up with the annotation okt.dev/abandon: <its uid>"
    } else {
        "it is tried again when something changes"
    };
    let message = if way.message.is_empty() {
        advice.to_string()
    } else {
        advised(way.message, &format!("; {advice}"))
    };
    Standing::Stalled(text(&way.reason, message))
}
