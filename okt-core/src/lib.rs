//! The core of a lifecycle: graph, checks, routes, decisions, trail, backoff, conditions and passes; no I/O, no clock.
#![no_std]
// Arithmetic on durations from your code or from an object must not panic: it saturates.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

extern crate alloc;

pub mod backoff;
pub mod check;
pub mod conditions;
pub mod decide;
mod decision;
pub mod draw;
pub mod duration;
pub mod evolution;
pub mod facts;
pub mod graph;
mod hops;
pub mod lifecycle;
pub mod machine;
pub mod names;
pub mod pass;
pub mod reasons;
pub mod record;
pub mod routes;
mod state;
#[cfg(feature = "stored")]
pub mod stored;
pub mod trail;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use decide::{Verdict, decide};
pub use facts::LifecycleFacts;
pub use graph::{
    Cause, ConditionStatus, Declared, Event, Graph, Kind, Mark, Marks, NoRoute, State, StateId,
    Trigger,
};
pub use lifecycle::{Answer, Delegate, Delegated, Dispatch, Lifecycle, PassDispatch, Successor};
pub use pass::Step;
pub use record::{Record, Recorded};
