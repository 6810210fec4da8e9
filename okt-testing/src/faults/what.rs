//! This file tells the two sorts of faults apart: those of requests and those of events.

use super::{event::OnEvent, fault::Fault, request::OnRequest};

/// What a [`Fault`] can be about: [`OnRequest`] or [`OnEvent`].
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
    /// About requests.
    Request(Fault<OnRequest>),
    /// About events.
    Event(Fault<OnEvent>),
}

pub(super) mod sealed {
    use super::{Either, Fault};

    /// Nobody else adds a sort.
    pub trait Sorted: Sized {
        /// The fault as one of its sort.
        fn sort(fault: Fault<Self>) -> Either;
    }
}
