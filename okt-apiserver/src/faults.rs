//! Faults of requests and watches, planned or drawn from a seed.

mod book;
mod chaos;
mod fault;
mod injected;
mod occasion;
mod rule;
mod seed;

pub use chaos::Chaos;
pub use fault::{Fault, OnEvent, OnRequest};
pub use injected::{Injected, Strike};
pub use occasion::EventKind;
pub use seed::Seed;

pub(crate) use book::{Book, Delay, EventFaults, RequestFaults, TerminalFault};
pub(crate) use injected::{Due, Hold};
pub(crate) use occasion::Delivery;
pub(crate) use rule::{FaultKind, Limits, Resource, Rule, limits, time};
