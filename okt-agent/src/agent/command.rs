//! The requests to the actor.

use serde_json::Value;
use tokio::sync::oneshot;

use super::body::BodyPermit;
use crate::wire::{Acknowledgement, ActionId, ActionReport, ActionRequest, Problem};
use crate::work::NotRemembered;

/// Whether a command has begun something, and the report.
pub(super) type Answered = Result<(bool, ActionReport), Problem>;

/// A request to the actor.
#[derive(Debug)]
pub(super) enum ActorRequest {
    /// A command of a client.
    Command {
        command: Command,
        reply: oneshot::Sender<Answered>,
    },
    /// A note of running work.
    Remember {
        id: ActionId,
        attempt: u32,
        key: String,
        value: Value,
        reply: oneshot::Sender<Result<(), NotRemembered>>,
    },
}

/// A request of a client that changes something.
#[derive(Debug)]
pub(super) enum Command {
    Ask {
        id: ActionId,
        request: Box<ActionRequest>,
        traceparent: Option<String>,
        permit: BodyPermit,
    },
    Cancel {
        id: ActionId,
        epoch: u64,
    },
    Acknowledge {
        id: ActionId,
        acknowledgement: Acknowledgement,
    },
}
