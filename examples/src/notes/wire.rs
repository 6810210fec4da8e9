//! This file holds what the server and its callers say to each other, as JSON.

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

/// The answer to `GET /status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The name the process was started with.
    pub name: String,
    /// Differs for every process that ever ran.
    pub boot_id: String,
    /// Of the process, in its own pid namespace.
    pub pid: u32,
    /// Whether new documents are taken.
    pub state: Door,
    /// How many the database holds now.
    pub documents: u64,
    /// The one that is under way, if any.
    pub action: Option<RunningAction>,
}

/// Whether new documents are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Door {
    /// They are.
    Accepting,
    /// They are refused with 503; the process is about to end.
    Draining,
}

/// The action that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningAction {
    /// As its caller named it.
    pub id: String,
    /// What it does.
    pub kind: ActionKind,
}

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ActionKind {
    /// Writes a checked copy of the database to `backups/`, then vacuums.
    Backup,
    /// Refuses new documents, finishes the open ones, checkpoints, ends the process.
    Drain,
    /// Replaces the settings.
    Configure,
}

impl ActionKind {
    /// The spelling in the database and in messages.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Drain => "drain",
            Self::Configure => "configure",
        }
    }
}

/// The body of `PUT /actions/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Order {
    Backup {},
    Drain {},
    Configure(Settings),
}

impl Order {
    pub(super) fn kind(&self) -> ActionKind {
        match self {
            Self::Backup {} => ActionKind::Backup,
            Self::Drain {} => ActionKind::Drain,
            Self::Configure(_) => ActionKind::Configure,
        }
    }
}

/// What `configure` sets; it replaces all of them, so that an absent one is its default again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The pause after each step of a backup; by default what the command line says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_pause_ms: Option<u64>,
    /// The longest body of a document; 1 MiB by default, 8 MiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_body_bytes: Option<usize>,
}

/// The answer to `PUT` and `GET /actions/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// As its caller named it.
    pub id: String,
    /// What it does.
    pub kind: ActionKind,
    /// How far it is.
    #[serde(flatten)]
    pub state: ActionState,
}

/// How far an action is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state")]
pub enum ActionState {
    /// It is under way in this process.
    Running,
    /// It is done and is never done again under its id.
    Succeeded {
        /// What it left behind.
        detail: Detail,
    },
    /// It is over without success; the next `PUT` of its id tries again.
    Failed {
        /// Why, as a sentence.
        message: String,
    },
    /// Its process ended in the middle; the next `PUT` of its id tries again.
    Unknown,
}

/// What an action left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// How many documents the backup, or for other actions the database, held at the end.
    pub documents: u64,
    /// The name of the backup's file in `backups/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The body of every answer that is no success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Problem {
    /// What is wrong and, where there is something, what to do.
    pub(super) error: String,
}

/// The content of `notes.json`: how to reach the process that wrote it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Announcement {
    pub(super) pid: u32,
    pub(super) boot_id: String,
    pub(super) address: std::net::SocketAddr,
    pub(super) started_at: String,
}
