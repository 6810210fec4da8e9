//! A graph in the language of Graphviz.

use alloc::format;
use alloc::string::String;

use super::trigger_edges;
use crate::graph::{Graph, Mark};

impl Graph<'_> {
    /// Draws a graph as a Graphviz digraph.
    ///
    /// Resting states have two borders, leaves a thick one. Triggers are dashed and labelled with their cause.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut text = format!(
            "digraph {} {{\n    node [shape=box, style=rounded];\n",
            quoted(self.name)
        );
        for (_, state) in self.iter() {
            let mut attributes = String::new();
            if state.is(Mark::Rest) {
                attributes.push_str(", peripheries=2");
            }
            if state.is(Mark::Hold) || state.is(Mark::Visit) {
                attributes.push_str(", style=\"rounded,dashed\"");
            }
            if state.is(Mark::Leaf) {
                attributes.push_str(", penwidth=3");
            }
            if state.is(Mark::Entry) {
                attributes.push_str(", shape=oval");
            }
            text.push_str(&format!(
                "    {} [tooltip={}{attributes}];\n",
                quoted(state.name),
                quoted(state.doc)
            ));
        }
        for (_, state) in self.iter() {
            let from = quoted(state.name);
            for (to, causes) in trigger_edges(state) {
                text.push_str(&format!(
                    "    {from} -> {} [style=dashed, label={}];\n",
                    quoted(self.name_of(to)),
                    quoted(&causes)
                ));
            }
            for (index, child) in state.children.iter().enumerate() {
                let next = index + 1 == state.children.len();
                let label = if next { " [label=\"Next\"]" } else { "" };
                text.push_str(&format!(
                    "    {from} -> {}{label};\n",
                    quoted(self.name_of(*child))
                ));
            }
        }
        text.push_str("}\n");
        text
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
