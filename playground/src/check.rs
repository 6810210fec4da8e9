//! The mistakes of a text, and its graphs.

use okt_core::{Graph, Kind};
use okt_syntax::source::{Cfg, Mistake, Source};
use serde::Serialize;

/// What the page shows of a text.
#[derive(Serialize)]
struct Checked {
    mistakes: Vec<ShownMistake>,
    graphs: Vec<ShownGraph>,
}

/// A mistake, as the compiler prints it, and its place in UTF-16 units, in which a browser counts.
#[derive(Serialize)]
struct ShownMistake {
    text: String,
    line: usize,
    start: usize,
    end: usize,
}

#[derive(Serialize)]
struct ShownGraph {
    name: String,
    svg: String,
    /// Whether an object can be played on it.
    is_lifecycle: bool,
}

/// Returns the mistakes of a text and its graphs, as JSON.
pub fn check(text: &str) -> String {
    let checked = match Source::parse(text, &Cfg::new([])) {
        Ok(source) => Checked {
            mistakes: source.mistakes().iter().map(|it| shown(text, it)).collect(),
            graphs: source.graphs(drawn),
        },
        Err(mistake) => Checked {
            mistakes: vec![shown(text, &mistake)],
            graphs: Vec::new(),
        },
    };
    serde_json::to_string(&checked).unwrap_or_default()
}

fn shown(text: &str, mistake: &Mistake) -> ShownMistake {
    let units = |at: usize| text.get(..at).unwrap_or(text).encode_utf16().count();
    let before = text.get(..mistake.at.start).unwrap_or(text);
    let help = match mistake.help.as_str() {
        "" => String::new(),
        help => format!("\nhelp: {help}"),
    };
    let rule = mistake
        .rule
        .map_or(String::new(), |rule| format!("{rule}: "));
    ShownMistake {
        text: format!("{rule}{}{help}", mistake.message),
        line: before.matches('\n').count() + 1,
        start: units(mistake.at.start),
        end: units(mistake.at.end),
    }
}

fn drawn(graph: &Graph<'_>) -> ShownGraph {
    ShownGraph {
        name: graph.name.to_owned(),
        svg: graph.svg(),
        is_lifecycle: graph.kind == Kind::Lifecycle,
    }
}
