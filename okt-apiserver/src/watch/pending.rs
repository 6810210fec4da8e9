//! An event that a lag, a hold or a merge delays.

use tokio::time::{self, Instant};

use super::seen::SeenChange;
use crate::faults::{FaultKind, Hold};

/// A delayed event.
pub(super) struct Pending {
    pub(super) seen: SeenChange,
    /// The end of its lag.
    pub(super) opens: Instant,
    pub(super) held: Vec<Hold>,
    /// Whether lag and holds are over.
    pub(super) is_open: bool,
    /// The time until which it waits for the next event of its object.
    pub(super) merges: Option<Instant>,
    pub(super) fault: Option<FaultKind>,
}

impl Pending {
    /// Whether it waits for the next event of its object.
    pub(super) fn wants_next(&self) -> bool {
        self.merges.is_some()
    }
}

/// Waits for the end of the pending event's delay: first of its lag and holds, then of its wait for the next event.
pub(super) async fn go_ahead(pending: Option<&Pending>) {
    let Some(pending) = pending else {
        return std::future::pending().await;
    };
    if pending.is_open {
        return time_or_never(pending.merges).await;
    }
    time::sleep_until(pending.opens).await;
    for hold in &pending.held {
        hold.ended().await;
    }
}

/// Waits until a moment, if there is one.
pub(super) async fn time_or_never(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
