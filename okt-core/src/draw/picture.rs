//! A picture of a graph: where its states and edges are.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Edge, EdgeKind, joined};
use crate::graph::State;

/// The size of a text, in pixels.
pub(super) const FONT: usize = 15;

/// A picture of a graph: its size, and where its parts are. All numbers are pixels.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Places {
    /// The width of the picture.
    pub width: f64,
    /// The height of the picture.
    pub height: f64,
    /// The box of each state, in declaration order.
    pub states: Vec<Area>,
    /// The lines of the edges.
    pub lines: Vec<Line>,
    /// The texts beside edges, each with its middle: the causes of triggers, and `Next`.
    pub labels: Vec<(f64, f64, String)>,
}

/// A rectangle.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Area {
    /// The left side.
    pub x: f64,
    /// The upper side.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

/// The line of an edge.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The line as the `d` of an SVG path: it begins at a state and ends at its target.
    pub path: String,
    /// Whether it is a trigger.
    pub is_trigger: bool,
}

/// Returns the text beside an edge of a state: the causes of a trigger, or `Next` where that is one of several children,
/// and its gates.
pub(super) fn label(edge: &Edge, state: &State<'_>) -> String {
    let words = match edge.kind {
        EdgeKind::Trigger => &edge.causes,
        EdgeKind::Next if state.children.len() > 1 => "Next",
        EdgeKind::Next | EdgeKind::Child => "",
    };
    joined(words, &edge.gates)
}
