//! Where the states and edges of a graph are in a picture: for pages that draw it themselves.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use layout::core::base::Orientation;
use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::{Point, get_size_for_str};
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Element, ShapeKind};

use super::svg::{FONT, picture, style};
use crate::graph::Graph;

/// The least size of a state, in pixels: it has room for its objects.
const WIDTH: f64 = 168.0;
const HEIGHT: f64 = 76.0;

/// The space beside the name of a state, in pixels.
const SPACE: f64 = 28.0;

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
    /// The causes of triggers, each with the middle of its text.
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
    /// The line as the `d` of an SVG path.
    pub path: String,
    /// Whether it is a trigger.
    pub is_trigger: bool,
    /// Whether the line ends at a state, and not at the label of the edge.
    pub has_head: bool,
}

impl Graph<'_> {
    /// Lays the graph out in layers, with boxes that have room for the objects in a state.
    ///
    /// The same graph always has the same picture.
    #[must_use]
    pub fn places(&self) -> Places {
        let (mut picture, nodes) = picture(self, |state| {
            let text = get_size_for_str(state.name, FONT);
            let size = Point::new((text.x + SPACE).max(WIDTH), HEIGHT);
            let shape = ShapeKind::new_box(state.name);
            Element::create(shape, style(1, None), Orientation::TopToBottom, size)
        });
        let mut drawing = Drawing::default();
        picture.do_it(false, false, false, &mut drawing);
        let mut places = drawing.0;
        let areas = nodes.iter().map(|node| {
            let (upper_left, lower_right) = picture.pos(*node).bbox(false);
            Area {
                x: upper_left.x,
                y: upper_left.y,
                width: lower_right.x - upper_left.x,
                height: lower_right.y - upper_left.y,
            }
        });
        places.states = areas.collect();
        for area in &places.states {
            places.width = places.width.max(area.x + area.width);
            places.height = places.height.max(area.y + area.height);
        }
        // The names of the states were drawn as texts too.
        let names = |text: &str| self.states.iter().any(|state| state.name == text);
        places.labels.retain(|(_, _, text)| !names(text));
        for (x, _, text) in &places.labels {
            let half = get_size_for_str(text, FONT).x / 2.0;
            places.width = places.width.max(x + half);
        }
        places
    }
}

/// Notes what is drawn.
#[derive(Default)]
struct Drawing(Places);

impl Drawing {
    fn extend(&mut self, point: Point) {
        self.0.width = self.0.width.max(point.x);
        self.0.height = self.0.height.max(point.y);
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
            self.0.labels.push((at.x, at.y, text.into()));
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
        let Some(((start, control), rest)) = path.split_first() else {
            return;
        };
        self.extend(*start);
        let mut text = format!("M{:.1} {:.1}", start.x, start.y);
        // As `SVGWriter` of layout-rs reads a path: the first pair is a point and its control, the second is the
        // control before a point and the point, and each other one is smooth.
        for (number, (before, point)) in rest.iter().enumerate() {
            self.extend(*point);
            if number == 0 {
                text.push_str(&format!(
                    " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                    control.x, control.y, before.x, before.y, point.x, point.y
                ));
            } else {
                text.push_str(&format!(
                    " S{:.1} {:.1} {:.1} {:.1}",
                    before.x, before.y, point.x, point.y
                ));
            }
        }
        self.0.lines.push(Line {
            path: text,
            is_trigger: is_dashed,
            has_head: head.1,
        });
    }

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}
