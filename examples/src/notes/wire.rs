//! This file holds the JSON messages between the server and its clients.

use serde::{Deserialize, Serialize};

/// The header with a boot id; a request with the boot id of another process is not for this one.
///
/// A port is free as soon as its process is killed, and the next server on it may be that of another instance.
pub(super) const BOOT_HEADER: &str = "notes-boot";

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Increases with every document of one database, and is never used again.
    pub id: i64,
    /// At least one character, at most 200.
    pub title: String,
    /// At most [`Settings::maximum_body_bytes`].
    pub body: String,
    /// When the server accepted it, in RFC 3339.
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
    /// The value of `after` for the next page; `None` on the last one.
    pub next: Option<i64>,
}

/// The answer to `GET /documents/count`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) documents: u64,
}

/// The settings that the work of a state sets as a whole: an absent one returns to its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The pause after each step of a backup; by default that of the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_pause_ms: Option<u64>,
    /// The longest body of a document; 1 MiB by default, 8 MiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_body_bytes: Option<usize>,
    /// Whether documents are no longer accepted.
    #[serde(default)]
    pub read_only: bool,
}

/// The body of every error answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Problem {
    /// The error and, where there is one, its remedy.
    pub(super) error: String,
}

/// The content of `notes.json`: how clients reach the process that wrote it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Announcement {
    pub(super) boot_id: String,
    pub(super) address: std::net::SocketAddr,
}
