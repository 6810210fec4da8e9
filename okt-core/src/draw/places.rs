//! Where the states and edges of a graph are in a picture: layers, by layout-rs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::{Point, get_size_for_str};
use layout::core::style::{LineStyleKind, StyleAttr};
use layout::std_shapes::shapes::{Arrow, Element, LineEndKind, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::picture::{Area, FONT, Line, Places, label};
use super::{EdgeKind, grid};
use crate::graph::{Graph, State};

/// The least size of a state, in pixels: it has room for its objects.
const WIDTH: f64 = 168.0;
const HEIGHT: f64 = 76.0;

/// The space beside the name of a state, in pixels.
const SPACE: f64 = 28.0;

/// How far the controls of two lines in the same place are moved apart, in pixels.
const APART: f64 = 16.0;

impl Graph<'_> {
    /// Lays the graph out in layers, with boxes that have room for the objects in a state; a graph with very many edges in
    /// rows.
    ///
    /// The same graph always has the same picture.
    #[must_use]
    pub fn places(&self) -> Places {
        places(self, |name| Point::new((name.x + SPACE).max(WIDTH), HEIGHT))
    }
}

/// Lays a graph out; `size` returns the size of a box around a name of this size.
pub(super) fn places(graph: &Graph<'_>, size: impl Fn(Point) -> Point) -> Places {
    if grid::is_dense(graph) {
        return grid::places(graph, size);
    }
    let mut picture = VisualGraph::new(Orientation::TopToBottom);
    let element = |state: &State<'_>| {
        let size = size(get_size_for_str(state.name, FONT));
        // The name is left out, so that only labels are drawn as texts.
        let shape = ShapeKind::new_box("");
        Element::create(shape, look(), Orientation::TopToBottom, size)
    };
    let nodes: Vec<_> = graph
        .states
        .iter()
        .map(|state| picture.add_node(element(state)))
        .collect();
    for (from, state) in graph.iter() {
        for edge in graph.edges(from) {
            let line = match edge.kind {
                EdgeKind::Trigger => LineStyleKind::Dashed,
                EdgeKind::Next | EdgeKind::Child => LineStyleKind::Normal,
            };
            let label = label(&edge, state);
            let (start, end) = (LineEndKind::None, LineEndKind::Arrow);
            let arrow = Arrow::new(start, end, line, &label, &look(), &None, &None);
            // A graph that was not checked may name a target that it does not have.
            if let Some(to) = nodes.get(edge.to.index()) {
                picture.add_edge(arrow, nodes[from.index()], *to);
            }
        }
    }
    let mut drawing = Drawing::default();
    picture.do_it(false, false, false, &mut drawing);
    let areas = nodes.iter().map(|node| {
        let (upper_left, lower_right) = picture.pos(*node).bbox(false);
        Area {
            x: upper_left.x,
            y: upper_left.y,
            width: lower_right.x - upper_left.x,
            height: lower_right.y - upper_left.y,
        }
    });
    drawing.into_places(areas.collect())
}

/// Nobody sees it: layout-rs wants a look for all that it places.
fn look() -> StyleAttr {
    StyleAttr::new(Color::fast("black"), 1, None, 0, FONT)
}

/// Notes what is drawn.
#[derive(Default)]
struct Drawing {
    lines: Vec<(Curve, bool)>,
    labels: Vec<(f64, f64, String)>,
}

impl Drawing {
    fn into_places(mut self, states: Vec<Area>) -> Places {
        self.separate();
        let corners = states
            .iter()
            .map(|area| (area.x + area.width, area.y + area.height));
        let points = self.lines.iter().flat_map(|(curve, _)| &curve.0);
        let ends = self.labels.iter().map(|(x, y, text)| {
            let half = get_size_for_str(text, FONT);
            (x + half.x / 2.0, y + half.y / 2.0)
        });
        let (width, height) = corners
            .chain(points.map(|point| (point.x, point.y)))
            .chain(ends)
            .fold((0.0_f64, 0.0_f64), |(width, height), (x, y)| {
                (width.max(x), height.max(y))
            });
        let lines = self.lines.iter().map(|(curve, is_trigger)| Line {
            path: curve.path(),
            is_trigger: *is_trigger,
        });
        Places {
            width,
            height,
            lines: lines.collect(),
            states,
            labels: self.labels,
        }
    }

    /// Bends lines that are in the same place, which those of two states that lead to each other are.
    fn separate(&mut self) {
        for one in 0..self.lines.len() {
            let mut same: Vec<usize> = (one + 1..self.lines.len())
                .filter(|other| self.lines[one].0.covers(&self.lines[*other].0))
                .collect();
            if same.is_empty() {
                continue;
            }
            same.insert(0, one);
            let across = self.lines[one].0.normal();
            let mut by = -APART / 2.0;
            for line in same {
                self.lines[line].0.bend(across, by);
                by += APART;
            }
        }
    }
}

/// A line of cubic curves: a point, then the two controls and the end of each curve.
struct Curve(Vec<Point>);

impl Curve {
    /// Reads a path as `SVGWriter` of layout-rs does: the first pair is a point and its control, each other one is the
    /// control before a point and the point, and curves go on smoothly.
    fn new(path: &[(Point, Point)]) -> Self {
        let mut points = Vec::new();
        if let Some(((start, control), rest)) = path.split_first() {
            points.push(*start);
            let mut control = *control;
            for (before, point) in rest {
                points.extend([control, *before, *point]);
                control = Point::new(2.0 * point.x - before.x, 2.0 * point.y - before.y);
            }
        }
        Self(points)
    }

    fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// Whether the other one is in the same place, in this direction or the other.
    fn covers(&self, other: &Self) -> bool {
        let near = |(one, two): (&Point, &Point)| {
            (one.x - two.x).abs() < 1.0 && (one.y - two.y).abs() < 1.0
        };
        self.0.len() == other.0.len()
            && (self.0.iter().zip(&other.0).all(near)
                || self.0.iter().zip(other.0.iter().rev()).all(near))
    }

    /// Returns the direction across the line, of length one; none for a line without length.
    fn normal(&self) -> Point {
        let (Some(start), Some(end)) = (self.0.first(), self.0.last()) else {
            return Point::zero();
        };
        let (x, y) = (end.x - start.x, end.y - start.y);
        let length = x.hypot(y).max(1.0);
        Point::new(-y / length, x / length)
    }

    /// Moves all but the ends.
    fn bend(&mut self, to: Point, by: f64) {
        let last = self.0.len().saturating_sub(1);
        for point in self.0.iter_mut().take(last).skip(1) {
            *point = Point::new(point.x + to.x * by, point.y + to.y * by);
        }
    }

    fn path(&self) -> String {
        let mut text = String::new();
        if let Some((start, rest)) = self.0.split_first() {
            text = format!("M{:.1} {:.1}", start.x, start.y);
            for [one, two, end] in rest.as_chunks().0 {
                text.push_str(&format!(
                    " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                    one.x, one.y, two.x, two.y, end.x, end.y
                ));
            }
        }
        text
    }
}

impl RenderBackend for Drawing {
    fn draw_rect(
        &mut self,
        _: Point,
        _: Point,
        _: &StyleAttr,
        _: Option<String>,
        _: Option<ClipHandle>,
    ) {
    }

    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_text(&mut self, at: Point, text: &str, _: &StyleAttr) {
        if !text.is_empty() {
            self.labels.push((at.x, at.y, text.into()));
        }
    }

    fn draw_arrow(
        &mut self,
        path: &[(Point, Point)],
        is_dashed: bool,
        head: (bool, bool),
        _: &StyleAttr,
        _: Option<String>,
        _: &str,
    ) {
        let curve = Curve::new(path);
        // An edge that leads to an upper layer is drawn from its end.
        let curve = if head.0 { curve.reversed() } else { curve };
        self.lines.push((curve, is_dashed));
    }

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}
