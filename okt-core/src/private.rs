//! What generated code names, under one path; no part of the public API.

pub use core;

use core::fmt;

pub use crate::graph::{
    Cause, ConditionStatus, Declared, Graph, Kind, Marks, NoRoute, State, StateId, Trigger,
};
pub use crate::lifecycle::{Answer, Dispatch, Lifecycle, Successor};
pub use crate::routes::{Routes, Table};

/// Writes a successor as derived code would, with the work here instead of once per state.
pub fn debug(answer: Answer, graph: &Graph<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match answer {
        Answer::Stay => f.write_str("Stay"),
        Answer::Next => f.write_str("Next"),
        Answer::Wait(time) => f.debug_tuple("Wait").field(&time).finish(),
        Answer::To(to) => f.write_str(graph.get(to).map_or("?", |state| state.variant)),
    }
}
