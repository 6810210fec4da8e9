//! The two sorts of faults: those of requests and those of events.

use super::{event::OnEvent, failure::OnRequest, fault::Fault};

/// The subject of a [`Fault`]: [`OnRequest`] or [`OnEvent`].
pub trait What: sealed::Sorted {}

impl What for OnRequest {}
impl What for OnEvent {}

impl sealed::Sorted for OnRequest {
    fn sort(fault: Fault<Self>) -> Either {
        Either::Request(fault)
    }
}

impl sealed::Sorted for OnEvent {
    fn sort(fault: Fault<Self>) -> Either {
        Either::Event(fault)
    }
}

/// A fault of either sort.
#[derive(Clone, Debug)]
pub enum Either {
    /// A fault of requests.
    Request(Fault<OnRequest>),
    /// A fault of events.
    Event(Fault<OnEvent>),
}

pub(super) mod sealed {
    use super::{Either, Fault};

    /// Seals [`What`](super::What), so that no other crate can add a sort.
    pub trait Sorted: Sized {
        /// Returns the fault as one of its sort.
        fn sort(fault: Fault<Self>) -> Either;
    }
}
