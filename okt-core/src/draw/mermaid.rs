//! A graph as a Mermaid state diagram, which GitHub and most viewers draw.

use alloc::format;
use alloc::string::String;

use super::trigger_edges;
use crate::graph::{Graph, Mark};

impl Graph<'_> {
    /// Draws a graph as a Mermaid `stateDiagram-v2`.
    ///
    /// Resting states have a thick border, holding ones a thick dashed one, visits a dotted one. The Next edge is labelled
    /// if there is a choice, and triggers are labelled with their cause.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = String::from("stateDiagram-v2\n");
        if let Some(entry) = self.entry() {
            text.push_str(&format!("    [*] --> {}\n", self.name_of(entry)));
        }
        for (_, state) in self.iter() {
            for (to, causes) in trigger_edges(state) {
                let label = if causes.is_empty() {
                    "trigger"
                } else {
                    &causes
                };
                text.push_str(&format!(
                    "    {} --> {} : {label}\n",
                    state.name,
                    self.name_of(to)
                ));
            }
            let choice = state.children.len() > 1;
            for (index, child) in state.children.iter().enumerate() {
                let next = choice && index + 1 == state.children.len();
                let label = if next { " : Next" } else { "" };
                text.push_str(&format!(
                    "    {} --> {}{label}\n",
                    state.name,
                    self.name_of(*child)
                ));
            }
            if state.is(Mark::Leaf) {
                text.push_str(&format!("    {} --> [*]\n", state.name));
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
            text.push_str(&format!("    class {} {class}\n", state.name));
        }
        text
    }
}
