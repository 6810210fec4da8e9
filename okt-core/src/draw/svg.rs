//! A graph as a picture, laid out in layers.

use alloc::string::String;
use alloc::vec::Vec;

use layout::adt::dag::NodeHandle;
use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::{Point, get_size_for_str};
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::EdgeKind;
use crate::graph::{Graph, Mark, State};

/// Sizes in pixels.
pub(super) const FONT: usize = 15;
const CORNER: usize = 8;
const SPACE: f64 = 16.0;

impl Graph<'_> {
    /// Draws a graph as a picture in SVG.
    ///
    /// Resting states have a thick border, holding ones a thick dashed one, visits a dotted one, leaves are grey. The entry
    /// is round. Triggers are dashed and labelled with their cause.
    #[must_use]
    pub fn svg(&self) -> String {
        let (mut picture, _) = picture(self, element);
        let mut svg = SVGWriter::new();
        picture.do_it(false, false, false, &mut svg);
        svg.finalize()
    }
}

/// Returns a picture with an element for each state, and these elements.
pub(super) fn picture(
    graph: &Graph<'_>,
    element: impl Fn(&State<'_>) -> Element,
) -> (VisualGraph, Vec<NodeHandle>) {
    let mut picture = VisualGraph::new(Orientation::TopToBottom);
    let nodes: Vec<_> = (graph.states.iter())
        .map(|state| picture.add_node(element(state)))
        .collect();
    for (from, state) in graph.iter() {
        for edge in graph.edges(from) {
            let (line, label) = match edge.kind {
                EdgeKind::Trigger => (LineStyleKind::Dashed, edge.causes.as_str()),
                EdgeKind::Next if state.children.len() > 1 => (LineStyleKind::Normal, "Next"),
                EdgeKind::Next | EdgeKind::Child => (LineStyleKind::Normal, ""),
            };
            let (start, end) = (LineEndKind::None, LineEndKind::Arrow);
            let arrow = Arrow::new(start, end, line, label, &style(1, None), &None, &None);
            // A graph that was not checked may name a target that it does not have.
            if let Some(to) = nodes.get(edge.to.index()) {
                picture.add_edge(arrow, nodes[from.index()], *to);
            }
        }
    }
    (picture, nodes)
}

fn element(state: &State<'_>) -> Element {
    let shape = if state.is(Mark::Entry) {
        ShapeKind::new_circle(state.name)
    } else {
        ShapeKind::new_box(state.name)
    };
    let width = if state.is(Mark::Rest) { 3 } else { 1 };
    let fill = state.is(Mark::Leaf).then(|| Color::fast("lightgray"));
    let text = get_size_for_str(state.name, FONT);
    let size = Point::new(text.x + SPACE, text.y + SPACE);
    let dashes = if state.is(Mark::Hold) {
        "stroke-dasharray=\"6 3\""
    } else if state.is(Mark::Visit) {
        "stroke-dasharray=\"2 2\""
    } else {
        ""
    };
    let look = style(width, fill);
    Element::create_with_properties(shape, look, Orientation::TopToBottom, size, dashes)
}

pub(super) fn style(width: usize, fill: Option<Color>) -> StyleAttr {
    let fill = fill.or(Some(Color::fast("white")));
    StyleAttr::new(Color::fast("black"), width, fill, CORNER, FONT)
}
