//! This file holds an event on its way to a client.

use bytes::Bytes;

use crate::{faults::EventKind, refusal::Refusal, store::Key};

/// An event that a watch is to send.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) kind: EventKind,
    pub(super) key: Key,
    pub(super) version: u64,
    /// The object in the form that the client accepts.
    pub(super) shown: Bytes,
    /// Whether it is settled what goes wrong with it.
    pub(super) is_judged: bool,
}

impl Seen {
    /// What becomes of two events about one object that are seen as one; nothing where it came
    /// and went.
    pub(super) fn merge(self, next: Self) -> Option<Self> {
        let kind = match (self.kind, next.kind) {
            (EventKind::Added, EventKind::Deleted) => return None,
            (EventKind::Added, _) => EventKind::Added,
            (EventKind::Deleted, EventKind::Added) => EventKind::Modified,
            (_, kind) => kind,
        };
        Some(Self {
            kind,
            is_judged: true,
            ..next
        })
    }

    /// The line that tells it.
    pub(super) fn line(&self) -> Bytes {
        line(self.kind.as_str(), &self.shown)
    }

    /// Whether both are about one object.
    pub(super) fn is_about(&self, other: &Self) -> bool {
        self.kind != EventKind::Bookmark
            && other.kind != EventKind::Bookmark
            && self.key == other.key
    }
}

/// A line of a watch, put together from texts.
fn line(event: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(event.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

/// The line that tells why a watch is over.
pub(super) fn error(refusal: &Refusal) -> Bytes {
    line("ERROR", refusal.body().to_string().as_bytes())
}
