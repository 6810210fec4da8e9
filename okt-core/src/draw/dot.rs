//! A graph in the language of Graphviz.

use alloc::format;
use alloc::string::String;

use super::{EdgeKind, joined};
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
        for (id, state) in self.iter() {
            let from = quoted(state.name);
            for edge in self.edges(id) {
                let attributes = match edge.kind {
                    EdgeKind::Trigger => {
                        let label = joined(&edge.causes, &edge.gates);
                        format!(" [style=dashed, label={}]", quoted(&label))
                    }
                    EdgeKind::Next => format!(" [label={}]", quoted(&joined("Next", &edge.gates))),
                    EdgeKind::Child if edge.gates.is_empty() => String::new(),
                    EdgeKind::Child => format!(" [label={}]", quoted(&edge.gates)),
                };
                let to = quoted(self.name_of(edge.to));
                text.push_str(&format!("    {from} -> {to}{attributes};\n"));
            }
        }
        text.push_str("}\n");
        text
    }
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}
