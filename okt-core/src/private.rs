//! The paths that generated code uses, in one place; not part of the public API.

pub use core;

use core::fmt;

use crate::graph::Mark;
pub use crate::graph::{
    Cause, ConditionStatus, Declared, Graph, Kind, Marks, NoRoute, State, StateId, Trigger,
};
pub use crate::lifecycle::{
    Answer, Delegate, Delegated, Dispatch, Lifecycle, PassDispatch, Successor,
};
pub use crate::pass::Step;
pub use crate::routes::{Routes, Table};

/// Formats a successor like derived code, but with one function instead of code per state.
pub fn debug(answer: Answer, graph: &Graph<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match answer {
        Answer::Stay => f.write_str("Stay"),
        Answer::Next => f.write_str("Next"),
        Answer::Wait(time) => f.debug_tuple("Wait").field(&time).finish(),
        Answer::To(to) => f.write_str(graph.get(to).map_or("?", |state| state.variant)),
    }
}

/// Delegates the work of a state; an idle state has none.
pub async fn hand_on<S: Lifecycle, D: Delegate<S>>(
    state: S,
    delegated: &Delegated<D>,
    cx: &D::Context,
) -> Result<Answer, D::Error> {
    let is_idle = S::GRAPH
        .get(state.id())
        .is_some_and(|state| state.is(Mark::Idle));
    if is_idle {
        return Ok(Answer::Stay);
    }
    delegated.0.delegate(state, cx).await
}
