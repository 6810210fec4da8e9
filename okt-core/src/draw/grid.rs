//! Where the states and edges of a graph are in a picture that has too many edges for layers: rows of states, and straight
//! lines.
//!
//! The layers of layout-rs take minutes for a few hundred edges, and anyone who may write a CRD chooses its graph.

use alloc::format;
use alloc::vec::Vec;

use layout::core::geometry::{Point, get_size_for_str};

use super::EdgeKind;
use super::picture::{Area, FONT, Line, Places, label};
use crate::graph::{Graph, State};

/// The most lines between states and layers that layers are drawn for: they take a tenth of a second then.
const SEGMENTS: usize = 100;

/// The most lines that are drawn at all.
const LINES: usize = 1000;

/// The space between two states, in pixels.
const GAP: f64 = 90.0;

/// Returns whether a graph has too many edges, or too long ones, for layers.
pub(super) fn is_dense(graph: &Graph<'_>) -> bool {
    let layers = layers(graph);
    let layer = |index: usize| layers.get(index).copied().unwrap_or_default();
    let mut segments = 0_usize;
    for (from, state) in graph.iter() {
        // A target twice is one edge with two causes; it counts twice here.
        for to in state.targets() {
            let length = layer(from.index()).abs_diff(layer(to.index())).max(1);
            segments = segments.saturating_add(length);
            if segments > SEGMENTS {
                return true;
            }
        }
    }
    false
}

/// Returns how far each state is from the entry, by the order in which states are found.
fn layers(graph: &Graph<'_>) -> Vec<usize> {
    let mut layers = alloc::vec![usize::MAX; graph.states.len()];
    for (begin, _) in graph.iter() {
        if layers[begin.index()] != usize::MAX {
            continue;
        }
        layers[begin.index()] = 0;
        let mut found = alloc::vec![begin];
        let mut next = 0;
        while let Some(from) = found.get(next).copied() {
            next += 1;
            let layer = layers[from.index()];
            let targets = graph.get(from).into_iter().flat_map(State::targets);
            for to in targets {
                if let Some(known @ &mut usize::MAX) = layers.get_mut(to.index()) {
                    *known = layer.saturating_add(1);
                    found.push(to);
                }
            }
        }
    }
    layers
}

/// Places states in rows; `size` returns the size of a box around a name of this size.
pub(super) fn places(graph: &Graph<'_>, size: impl Fn(Point) -> Point) -> Places {
    let boxes: Vec<Point> = graph
        .states
        .iter()
        .map(|state| size(get_size_for_str(state.name, FONT)))
        .collect();
    let largest = boxes.iter().fold(Point::zero(), |largest, size| {
        Point::new(largest.x.max(size.x), largest.y.max(size.y))
    });
    let is_enough = |columns: &usize| columns * columns >= boxes.len();
    let columns = (1..=boxes.len()).find(is_enough).unwrap_or(1);
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let at = |index: usize| {
        let (column, row) = (number(index % columns), number(index / columns));
        let (x, y) = (column * (largest.x + GAP), row * (largest.y + GAP));
        Area {
            x: GAP / 2.0 + x,
            y: GAP / 2.0 + y,
            width: largest.x,
            height: largest.y,
        }
    };
    let states: Vec<Area> = (0..boxes.len()).map(at).collect();
    let mut lines = Vec::new();
    let mut labels = Vec::new();
    let mut left_out = 0_usize;
    for (from, state) in graph.iter() {
        for edge in graph.edges(from) {
            let (Some(begin), Some(end)) = (states.get(from.index()), states.get(edge.to.index()))
            else {
                continue;
            };
            if lines.len() >= LINES {
                left_out = left_out.saturating_add(1);
                continue;
            }
            let (start, stop) = (border(begin, end), border(end, begin));
            let x = f64::midpoint(start.x, stop.x);
            let y = f64::midpoint(start.y, stop.y);
            lines.push(Line {
                path: format!(
                    "M{:.1} {:.1} L{:.1} {:.1}",
                    start.x, start.y, stop.x, stop.y
                ),
                is_trigger: edge.kind == EdgeKind::Trigger,
            });
            let label = label(&edge, state);
            if !label.is_empty() {
                labels.push((x, y, label));
            }
        }
    }
    let rows = boxes.len().div_ceil(columns);
    let (width, height) = (number(columns), number(rows));
    if left_out > 0 {
        let text = format!("{left_out} more edges are not drawn");
        labels.push((width * (largest.x + GAP) / 2.0, GAP / 4.0, text));
    }
    Places {
        width: width * (largest.x + GAP),
        height: height * (largest.y + GAP),
        states,
        lines,
        labels,
    }
}

/// Returns where a line from the middle of one box to that of another one leaves the first.
fn border(from: &Area, to: &Area) -> Point {
    let middle = |area: &Area| Point::new(area.x + area.width / 2.0, area.y + area.height / 2.0);
    let (begin, end) = (middle(from), middle(to));
    let (x, y) = (end.x - begin.x, end.y - begin.y);
    // An edge to the same state has no direction.
    let share = |length: f64, half: f64| {
        if length == 0.0 {
            1.0
        } else {
            half / length.abs()
        }
    };
    let part = share(x, from.width / 2.0)
        .min(share(y, from.height / 2.0))
        .min(1.0);
    Point::new(begin.x + x * part, begin.y + y * part)
}
