//! A graph in the terminal: a line for each state, with the edges out of it.

use okt_core::draw::{EdgeKind, roles};
use okt_core::{Graph, State, StateId};

use crate::output::{BOLD, FAINT, TextTable, styled};

/// What is marked in a drawing.
#[derive(Default)]
pub(crate) struct Marks {
    /// The state that the object is in.
    pub(crate) at: Option<StateId>,
    /// The states on the way to the goal, and last the goal.
    pub(crate) route: Vec<StateId>,
}

/// The signs of a drawing.
const HERE: &str = "▶";
const GOAL: &str = "◎";
const ON_THE_WAY: &str = "┊";

/// Draws a graph in declaration order.
pub(crate) fn draw(graph: &Graph<'_>, marks: &Marks) -> String {
    let mut table = TextTable::untitled();
    for (id, state) in graph.iter() {
        let is_here = marks.at == Some(id);
        let sign = if is_here {
            HERE
        } else if marks.route.last() == Some(&id) {
            GOAL
        } else if marks.route.contains(&id) {
            ON_THE_WAY
        } else {
            " "
        };
        let name = if is_here {
            styled(BOLD, state.name)
        } else {
            state.name.to_owned()
        };
        let roles = styled(FAINT, &roles(state).join(", "));
        let (children, triggers) = edges(graph, id, state);
        table.row(&[format!("{sign} {name}"), roles, children, triggers]);
    }
    table.text()
}

/// Explains the signs of a drawing.
pub(crate) fn legend() -> String {
    let legend = format!(
        "{HERE} here   {ON_THE_WAY} on the way   {GOAL} goal   → children   ⇢ triggers   (Next) where the work ends without another answer\n"
    );
    styled(FAINT, &legend)
}

/// Returns the children of a state and its triggers, in words.
fn edges(graph: &Graph<'_>, id: StateId, state: &State<'_>) -> (String, String) {
    let (mut children, mut triggers) = (Vec::new(), Vec::new());
    for edge in graph.edges(id) {
        let name = edge.text(graph);
        match edge.kind {
            EdgeKind::Trigger => triggers.push(name),
            EdgeKind::Next if state.children.len() > 1 => children.push(format!("{name} (Next)")),
            EdgeKind::Next | EdgeKind::Child => children.push(name),
        }
    }
    let list = |arrow: &str, names: Vec<String>| match names.join(", ") {
        names if names.is_empty() => names,
        names => format!("{arrow} {names}"),
    };
    (list("→", children), list("⇢", triggers))
}
