//! What a lifecycle is: graph, checks, routes, decisions, trail, backoff, conditions; no I/O, no clock.
#![no_std]

extern crate alloc;

pub mod check;
pub mod conditions;
pub mod graph;
pub mod lifecycle;
pub mod names;
pub mod routes;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use graph::{
    Cause, ConditionStatus, Declared, Event, Graph, Kind, Mark, Marks, NoRoute, State, StateId,
    Trigger,
};
pub use lifecycle::{Answer, Dispatch, Lifecycle};
