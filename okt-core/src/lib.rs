//! The core of a lifecycle: graph, checks, routes, decisions, trail, backoff, conditions and passes; no I/O, no clock.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
// Arithmetic on durations from your code or from an object must not panic: it saturates.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

extern crate alloc;

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `names`, `duration`, `backoff`, `reasons`, `trail` | rules for names, durations as text, backoff, reasons of conditions, the trail |
// | `state`, `hops`, `gate`, `graph`, `routes` | states, edges and marks; gates; the next hop to every desired state, the route to a leaf |
// | `facts`, `decision`, `request`, `record`, `decide`, `after` | the decision of a lifecycle: its input, its result, and the record after it |
// | `answer`, `pass`, `lifecycle`, `conditions` | the answers of handlers; a pass and its runs; traits of generated code; the conditions of an object |
// | `check`, `draw`, `evolution`, `stored`, `private` | every rule of a graph; drawings, and where the parts of a picture are; what two graphs differ in; a graph as a cluster stores it; paths that generated code uses |
// | `machine/time`, `machine/object`, `machine/draft`, `machine/results`, `machine/facts` | what a machine reads, and what is reported to it, as numbers; the facts of one moment |
// | `machine/requeue`, `machine/effect`, `machine/findings` | its outputs; what only one reconciliation knows |
// | `machine/writes`, `machine/observation`, `machine/resources`, `machine/work`, `machine/pass` | what is remembered, one file for each subject |
// | `machine/decide` | the decision of a reconciliation, which composes all of this |
// | `machine` | the machine of an object; its output |
// | `machine/events`, `machine/reports` | its inputs: what happens to the object; the results of effects |

mod after;
mod answer;
pub mod backoff;
pub mod check;
pub mod conditions;
pub mod decide;
mod decision;
pub mod draw;
pub mod duration;
pub mod evolution;
pub mod facts;
pub mod gate;
pub mod graph;
mod hops;
pub mod lifecycle;
pub mod machine;
pub mod names;
pub mod pass;
pub mod reasons;
pub mod record;
pub mod request;
pub mod routes;
mod state;
#[cfg(feature = "stored")]
pub mod stored;
pub mod trail;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use answer::{Answer, Successor, VisitSuccessor};
pub use decide::{Verdict, decide};
pub use facts::LifecycleFacts;
pub use gate::{Gate, GateId, GateKind, Gates, Passes, Plan, PlannedMove};
pub use graph::{
    Cause, ConditionStatus, Declared, Event, Graph, Kind, Mark, Marks, NoRoute, Parts, State,
    StateId, Taken, Trigger,
};
pub use lifecycle::{
    Delegate, Delegated, Dispatch, Lifecycle, LifecycleGate, NoGate, PassDispatch, Serves,
    SpecPart, SpecParts, Visited,
};
pub use pass::Step;
pub use record::{Record, Recorded};
