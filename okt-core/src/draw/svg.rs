//! A graph as a picture in SVG.

use alloc::format;
use alloc::string::String;

use layout::core::geometry::Point;

use super::picture::Area;
use super::places::places;
use super::roles;
use crate::graph::{Graph, Mark, State};

/// The space around the name of a state, and around the picture, in pixels.
const SPACE: f64 = 16.0;

/// The styles, and the head of a line. Labels are edged, so that a line does not cross them out.
const STYLE: &str = r#"<style>
svg { font: 15px sans-serif; background: #fff; }
text { text-anchor: middle; dominant-baseline: central; }
path { fill: none; stroke: #000; marker-end: url(#head); }
path.trigger { stroke-dasharray: 5 5; }
rect { fill: #fff; stroke: #000; }
.label { stroke: #fff; stroke-width: 4px; paint-order: stroke; font-size: 13px; }
.rest { stroke-width: 3px; }
.hold { stroke-width: 3px; stroke-dasharray: 6 3; }
.visit { stroke-dasharray: 2 2; }
.leaf { fill: #d3d3d3; }
</style>
<marker id="head" viewBox="0 0 10 7" refX="10" refY="3.5" markerWidth="10" markerHeight="7" orient="auto"><polygon points="0 0 10 3.5 0 7"/></marker>
"#;

impl Graph<'_> {
    /// Draws a graph as a picture in SVG.
    ///
    /// Resting states have a thick border, holding ones a thick dashed one, visits a dotted one, leaves are grey. The entry
    /// is round. Triggers are dashed and labelled with their cause.
    #[must_use]
    pub fn svg(&self) -> String {
        let places = places(self, |name| Point::new(name.x + SPACE, name.y + SPACE));
        let (width, height) = (places.width + SPACE, places.height + SPACE);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.1}\" height=\"{height:.1}\" \
             viewBox=\"0 0 {width:.1} {height:.1}\">\n<title>{}</title>\n{STYLE}",
            escaped(self.name)
        );
        for line in &places.lines {
            let class = if line.is_trigger {
                " class=\"trigger\""
            } else {
                ""
            };
            svg.push_str(&format!("<path{class} d=\"{}\"/>\n", line.path));
        }
        for (x, y, label) in &places.labels {
            let label = escaped(label);
            svg.push_str(&format!(
                "<text class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>\n"
            ));
        }
        for (state, area) in self.states.iter().zip(&places.states) {
            svg.push_str(&drawn(state, area));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn drawn(state: &State<'_>, area: &Area) -> String {
    let Area {
        x,
        y,
        width,
        height,
    } = area;
    let round = if state.is(Mark::Entry) {
        height / 2.0
    } else {
        height / 4.0
    };
    format!(
        "<g><title>{}</title><rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         rx=\"{round:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>\n",
        escaped(state.doc),
        roles(state).join(" "),
        x + width / 2.0,
        y + height / 2.0,
        escaped(state.name),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
