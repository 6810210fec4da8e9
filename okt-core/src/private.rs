//! What generated code names, under one path; no part of the public API.

pub use core;

pub use crate::graph::{
    Cause, ConditionStatus, Declared, Graph, Kind, Marks, NoRoute, State, StateId, Trigger,
};
pub use crate::lifecycle::{Answer, Dispatch, Lifecycle, Successor};
pub use crate::routes::{Routes, Table};
