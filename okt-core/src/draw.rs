//! Drawings of a graph: Mermaid, DOT and SVG. The same graph gives the same text.

mod dot;
#[cfg(feature = "svg")]
mod grid;
mod mermaid;
#[cfg(feature = "svg")]
mod picture;
#[cfg(feature = "svg")]
mod places;
#[cfg(feature = "svg")]
mod svg;

#[cfg(feature = "svg")]
pub use self::picture::{Area, Line, Places};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::duration;
use crate::graph::{Cause, Graph, Mark, State, StateId, Trigger};

/// What begins the words of a trigger by parts of the spec.
pub(crate) const ON_CHANGE_OF: &str = "on change of ";

/// Returns the cause of a trigger in words; none if only its name raises it. `parts` are those of the graph.
pub(crate) fn cause(cause: Cause, parts: &[&str]) -> Option<String> {
    match cause {
        Cause::Named => None,
        Cause::After(after) => Some(format!("after {}", duration::text(after))),
        Cause::Deadline(time) => Some(format!("deadline {}", duration::text(time))),
        Cause::OnError { attempts: 1 } => Some("on error".to_string()),
        Cause::OnError { attempts } => Some(format!("on {attempts} errors")),
        Cause::OnDelete => Some("on delete".to_string()),
        Cause::OnChange => Some("on change".to_string()),
        Cause::OnChangeOf(these) => Some(format!("{ON_CHANGE_OF}{}", these.text(parts))),
        Cause::OnGiveUp => Some("on give-up".to_string()),
        Cause::OnAbort => Some("on abort".to_string()),
    }
}

/// An edge as it is drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The state that the edge leads to.
    pub to: StateId,
    /// Whether it is a trigger, a child, or the last child.
    pub kind: EdgeKind,
    /// The causes of a trigger in words (e.g. `after 30m or on error`); empty if only its name raises it.
    pub causes: String,
    /// The gates before which an object waits on it, in words (e.g. `window maintenance`); empty if there is none.
    pub gates: String,
}

/// The kind of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKind {
    /// A trigger: taken for an event of the application, before any child.
    Trigger,
    /// A child that is not the last.
    Child,
    /// The last child.
    Next,
}

impl Edge {
    /// Returns the name of the target with the causes (e.g. `Failed (on 3 errors)`).
    pub fn text(&self, graph: &Graph<'_>) -> String {
        let name = graph.get(self.to).map_or("?", |to| to.name);
        match joined(&self.causes, &self.gates).as_str() {
            "" => name.to_string(),
            words => format!("{name} ({words})"),
        }
    }
}

impl Graph<'_> {
    /// Returns the edges of a state as they are drawn: the triggers first, then the children, in declaration order.
    ///
    /// Triggers with one target are one edge.
    pub fn edges(&self, from: StateId) -> Vec<Edge> {
        let mut edges: Vec<Edge> = Vec::new();
        let Some(state) = self.get(from) else {
            return edges;
        };
        for trigger in state.triggers {
            let words = cause(trigger.cause, self.parts);
            let drawn = edges.iter_mut().find(|edge| edge.to == trigger.to);
            match (drawn, words) {
                (Some(edge), Some(words)) if !edge.causes.is_empty() => {
                    edge.causes.push_str(" or ");
                    edge.causes.push_str(&words);
                }
                (_, words) => edges.push(Edge {
                    to: trigger.to,
                    kind: EdgeKind::Trigger,
                    causes: words.unwrap_or_default(),
                    gates: String::new(),
                }),
            }
        }
        let last = state.children.len();
        let children = state.children.iter().zip(1..);
        edges.extend(children.map(|(to, index)| Edge {
            to: *to,
            kind: if index == last {
                EdgeKind::Next
            } else {
                EdgeKind::Child
            },
            causes: String::new(),
            gates: String::new(),
        }));
        for edge in &mut edges {
            let gates = self.waits_on(from, edge.to);
            // A trigger by another cause than a change does not wait.
            let by_change = |trigger: &Trigger| trigger.to == edge.to && trigger.cause.is_change();
            let waits = edge.kind != EdgeKind::Trigger || state.triggers.iter().any(by_change);
            let gates = gates.filter(|_| waits);
            let words: Vec<String> = gates
                .map(|(_, gate)| format!("{} {}", gate.kind.as_str(), gate.name))
                .collect();
            edge.gates = words.join(", ");
        }
        edges
    }
}

/// Returns two texts as one.
fn joined(one: &str, other: &str) -> String {
    let between = if one.is_empty() || other.is_empty() {
        ""
    } else {
        ", "
    };
    format!("{one}{between}{other}")
}

/// Each mark with its word.
pub(crate) const ROLES: [(Mark, &str); 8] = [
    (Mark::Entry, "entry"),
    (Mark::Rest, "rest"),
    (Mark::Hold, "hold"),
    (Mark::Leaf, "leaf"),
    (Mark::Visit, "visit"),
    (Mark::Args, "args"),
    (Mark::NoTransit, "no_transit"),
    (Mark::Idle, "idle"),
];

/// Returns the roles of a state in words (e.g. `["rest", "hold"]`).
pub fn roles(state: &State<'_>) -> Vec<&'static str> {
    let roles = ROLES.iter().filter(|(mark, _)| state.is(*mark));
    roles.map(|(_, word)| *word).collect()
}
