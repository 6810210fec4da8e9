//! Drawings of a graph: Mermaid, DOT and JSON. The same graph gives the same text.

mod dot;
mod json;
mod mermaid;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::duration;
use crate::graph::{Cause, Mark, State, StateId};

/// Returns the cause of a trigger in words; none if only its name raises it.
fn cause(cause: Cause) -> Option<String> {
    match cause {
        Cause::Named => None,
        Cause::After(after) => Some(format!("after {}", duration::text(after))),
        Cause::Deadline(time) => Some(format!("deadline {}", duration::text(time))),
        Cause::OnError { attempts: 1 } => Some("on error".to_string()),
        Cause::OnError { attempts } => Some(format!("on {attempts} errors")),
        Cause::OnDelete => Some("on delete".to_string()),
        Cause::OnChange => Some("on change".to_string()),
        Cause::OnGiveUp => Some("on give-up".to_string()),
    }
}

/// Returns the trigger edges of a state, each with its causes in words; empty if only its name raises it.
fn trigger_edges(state: &State<'_>) -> Vec<(StateId, String)> {
    let mut edges: Vec<(StateId, String)> = Vec::new();
    for trigger in state.triggers {
        let words = cause(trigger.cause);
        let drawn = edges.iter_mut().find(|(to, _)| *to == trigger.to);
        match (drawn, words) {
            (Some((_, label)), Some(words)) if !label.is_empty() => {
                label.push_str(" or ");
                label.push_str(&words);
            }
            (_, words) => edges.push((trigger.to, words.unwrap_or_default())),
        }
    }
    edges
}

/// The roles of a state in words (e.g. `["rest", "hold"]`).
fn roles(state: &State<'_>) -> Vec<&'static str> {
    [
        (Mark::Entry, "entry"),
        (Mark::Rest, "rest"),
        (Mark::Hold, "hold"),
        (Mark::Leaf, "leaf"),
        (Mark::Visit, "visit"),
        (Mark::NoTransit, "no_transit"),
        (Mark::Idle, "idle"),
    ]
    .into_iter()
    .filter(|(mark, _)| state.is(*mark))
    .map(|(_, word)| word)
    .collect()
}
