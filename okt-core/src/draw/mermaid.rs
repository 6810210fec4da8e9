//! A graph as a Mermaid state diagram, which GitHub and most viewers draw.

use alloc::format;
use alloc::string::String;

use super::cause;
use crate::graph::{Graph, Mark};

/// Draws a graph as a Mermaid `stateDiagram-v2`.
///
/// Resting states have a thick border, holding ones a thick dashed one, visits a dotted one. The Next edge is labelled
/// if there is a choice, and triggers are labelled with their cause.
pub fn mermaid(graph: &Graph<'_>) -> String {
    let mut text = String::from("stateDiagram-v2\n");
    if let Some(entry) = graph.entry() {
        text.push_str(&format!("    [*] --> {}\n", graph.name_of(entry)));
    }
    for (_, state) in graph.iter() {
        for trigger in state.triggers {
            let label = cause(trigger.cause).unwrap_or_else(|| "trigger".into());
            text.push_str(&format!(
                "    {} --> {} : {label}\n",
                state.name,
                graph.name_of(trigger.to)
            ));
        }
        let choice = state.children.len() > 1;
        for (index, child) in state.children.iter().enumerate() {
            let next = choice && index + 1 == state.children.len();
            let label = if next { " : Next" } else { "" };
            text.push_str(&format!(
                "    {} --> {}{label}\n",
                state.name,
                graph.name_of(*child)
            ));
        }
        if state.is(Mark::Leaf) {
            text.push_str(&format!("    {} --> [*]\n", state.name));
        }
    }
    text.push_str("    classDef rest stroke-width:3px\n");
    text.push_str("    classDef hold stroke-width:3px,stroke-dasharray:6 3\n");
    text.push_str("    classDef visit stroke-dasharray:2 2\n");
    for (_, state) in graph.iter() {
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
