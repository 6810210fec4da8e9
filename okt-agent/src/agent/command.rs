//! The requests to the actor.

use serde_json::Value;
use tokio::sync::oneshot;

use super::body::BodyPermit;
use crate::wire::{Acknowledgement, ActionId, ActionReport, ActionRequest, Problem};
use crate::work::NotRemembered;

/// The channel for the answer to a request: whether the request itself has begun something, and the report.
pub(super) type Reply = oneshot::Sender<Result<(bool, ActionReport), Problem>>;

/// A request to the actor.
#[derive(Debug)]
pub(super) enum ActorRequest {
    Ask {
        id: ActionId,
        request: Box<ActionRequest>,
        traceparent: Option<String>,
        place: BodyPermit,
        reply: Reply,
    },
    Cancel {
        id: ActionId,
        epoch: u64,
        reply: Reply,
    },
    Acknowledge {
        id: ActionId,
        acknowledgement: Acknowledgement,
        reply: Reply,
    },
    Remember {
        id: ActionId,
        attempt: u32,
        key: String,
        value: Value,
        reply: oneshot::Sender<Result<(), NotRemembered>>,
    },
}
