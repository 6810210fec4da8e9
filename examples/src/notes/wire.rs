//! This file holds what the server and those who write and read documents say to each other, as JSON.

use serde::{Deserialize, Serialize};

/// A request that carries another boot id in this header is not for this process.
///
/// A port is free as soon as its process is killed, and the next server on it may be that of another instance.
pub(super) const BOOT_HEADER: &str = "notes-boot";

/// What a client keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Rises with every document of one database, and is never used again.
    pub id: i64,
    /// At least one character, at most 200.
    pub title: String,
    /// At most [`Settings::maximum_body_bytes`].
    pub body: String,
    /// When the server took it, in RFC 3339.
    pub created: String,
}

/// The body of `POST /documents`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDocument {
    pub(super) title: String,
    pub(super) body: String,
}

/// The answer to `GET /documents?after=..&limit=..`, in order of id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The documents with an id above `after`.
    pub documents: Vec<Document>,
    /// What to pass as `after` for the next page; `None` on the last one.
    pub next: Option<i64>,
}

/// The answer to `GET /documents/count`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) documents: u64,
}

/// What the work of a state sets: all of it, so that what is absent is its default again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The pause after each step of a backup; by default what the command line says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_pause_ms: Option<u64>,
    /// The longest body of a document; 1 MiB by default, 8 MiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_body_bytes: Option<usize>,
    /// Whether no document is taken any more.
    #[serde(default)]
    pub read_only: bool,
}

/// The body of every answer that is no success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Problem {
    /// What is wrong and, where there is something, what to do.
    pub(super) error: String,
}

/// The content of `notes.json`: how those with documents reach the process that wrote it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Announcement {
    pub(super) boot_id: String,
    pub(super) address: std::net::SocketAddr,
}
