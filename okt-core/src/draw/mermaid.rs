//! A graph as a Mermaid state diagram, which GitHub and most viewers draw.

use alloc::format;
use alloc::string::String;

use super::{EdgeKind, joined};
use crate::graph::{Graph, Mark};

impl Graph<'_> {
    /// Draws a graph as a Mermaid `stateDiagram-v2`.
    ///
    /// Resting states have a thick border, holding ones a thick dashed one, visits a dotted one. The Next edge is labelled
    /// if there is a choice, and triggers are labelled with their cause. An edge on which objects wait has the gate.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = String::from("stateDiagram-v2\n");
        for (_, state) in self.iter().filter(|(_, state)| is_word(state.name)) {
            text.push_str(&format!(
                "    state \"{}\" as {}\n",
                state.name,
                node(state.name)
            ));
        }
        if let Some(entry) = self.entry() {
            text.push_str(&format!("    [*] --> {}\n", node(self.name_of(entry))));
        }
        for (id, state) in self.iter() {
            for edge in self.edges(id) {
                let words = match edge.kind {
                    EdgeKind::Trigger if edge.causes.is_empty() => "trigger",
                    EdgeKind::Trigger => &edge.causes,
                    EdgeKind::Next if state.children.len() > 1 => "Next",
                    EdgeKind::Next | EdgeKind::Child => "",
                };
                let words = joined(words, &edge.gates);
                let label = if words.is_empty() {
                    words
                } else {
                    format!(" : {}", label(&words))
                };
                let to = node(self.name_of(edge.to));
                text.push_str(&format!("    {} --> {to}{label}\n", node(state.name)));
            }
            if state.is(Mark::Leaf) {
                text.push_str(&format!("    {} --> [*]\n", node(state.name)));
            }
        }
        text.push_str("    classDef rest stroke-width:3px\n");
        text.push_str("    classDef hold stroke-width:3px,stroke-dasharray:6 3\n");
        text.push_str("    classDef visit stroke-dasharray:2 2\n");
        for (_, state) in self.iter() {
            let class = if state.is(Mark::Hold) {
                "hold"
            } else if state.is(Mark::Rest) {
                "rest"
            } else if state.is(Mark::Visit) {
                "visit"
            } else {
                continue;
            };
            text.push_str(&format!("    class {} {class}\n", node(state.name)));
        }
        text
    }
}

/// The words with which lines of a state diagram begin, in any case (`stateDiagram.jison` of Mermaid 11).
const WORDS: [&str; 9] = [
    "state",
    "note",
    "class",
    "classdef",
    "style",
    "click",
    "scale",
    "hide",
    "direction",
];

fn is_word(name: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// Returns the name of a state in a diagram.
fn node(name: &str) -> String {
    if is_word(name) {
        format!("{name}_")
    } else {
        name.into()
    }
}

/// Returns a text as a label: characters with a meaning are written by their numbers.
fn label(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " .,-_/()=<>+".contains(c);
    let escaped = |mut all: String, c: char| {
        if plain(c) {
            all.push(c);
        } else {
            all.push_str(&format!("#{};", u32::from(c)));
        }
        all
    };
    text.chars().fold(String::new(), escaped)
}
