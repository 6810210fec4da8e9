//! Faults of requests and watches, planned or drawn from a seed.

mod book;
mod chaos;
mod count;
mod draw;
mod event;
mod failure;
mod fault;
mod injected;
mod request;
mod seed;
mod target;
mod what;

pub use chaos::Chaos;
pub use event::OnEvent;
pub use failure::OnRequest;
pub use fault::Fault;
pub use injected::{Injected, Strike};
pub use seed::Seed;
pub use target::EventKind;
pub use what::What;

pub(crate) use book::{Book, Delay, RequestFaults, TerminalFault};
pub(crate) use event::EventFault;
pub(crate) use failure::{FailureResponse, RequestFault};
pub(crate) use injected::{Due, Hold};
pub(crate) use target::Delivery;
