//! An event on its way to a client.

use bytes::Bytes;
use tokio::time::Instant;

use crate::{faults::EventKind, refusal::Refusal, store::Key};

/// An event that a watch sends.
#[derive(Debug)]
pub(super) struct SeenChange {
    pub(super) kind: EventKind,
    pub(super) key: Key,
    pub(super) version: u64,
    /// The object in the format that the client accepts.
    pub(super) shown: Bytes,
    /// The time from which on a fault delays it.
    pub(super) came: Instant,
    /// Whether its faults are already determined.
    pub(super) is_decided: bool,
}

impl SeenChange {
    /// Merges two events of one object into one; `None` if the object came and went.
    pub(super) fn merge(self, next: Self) -> Option<Self> {
        let kind = match (self.kind, next.kind) {
            (EventKind::Added, EventKind::Deleted) => return None,
            (EventKind::Added, _) => EventKind::Added,
            (EventKind::Deleted, EventKind::Added) => EventKind::Modified,
            (_, kind) => kind,
        };
        Some(Self {
            kind,
            is_decided: true,
            ..next
        })
    }

    /// Returns the line of the event.
    pub(super) fn line(&self) -> Bytes {
        line(self.kind.as_str(), &self.shown)
    }

    /// Whether both events belong to the same object.
    pub(super) fn is_about(&self, other: &Self) -> bool {
        self.kind != EventKind::Bookmark
            && other.kind != EventKind::Bookmark
            && self.key == other.key
    }
}

/// Builds a line of a watch from texts.
fn line(event: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(event.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

/// Returns the line of the error that ends a watch.
pub(super) fn error(refusal: &Refusal) -> Bytes {
    line("ERROR", refusal.body().to_string().as_bytes())
}
