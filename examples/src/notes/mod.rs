//! This module is a small document server, `notes`: the application whose life an operator drives.
//!
//! It is a process of its own with its own data, so that everything that happens to real servers happens to it: it is
//! killed in the middle of a backup, its operator is, a client writes while it leaves.
//!
//! ```text
//!   operator, tour                     one process of `notes`
//!   +--------------+  HTTP, loopback   +------------------------------------------+
//!   |   Instance   |------------------>| routes -> library -> store (SQLite, WAL)  |
//!   |              |  PUT /actions/id  |        -> actions -> backup               |
//!   |              |  GET /actions/id  |              results are rows of the store |
//!   +--------------+                   +------------------------------------------+
//!      |  spawn, SIGKILL                  | holds           | writes
//!      |                                  v                 v
//!      |   <data>/  notes.lock (pid)   notes.json (address, bootId)   notes.db  backups/  notes.log
//!      |                                                                 |
//!      +---- archive: when nobody holds the lock -----------------------> <archive>/<name>-<id>/
//! ```
//!
//! Three facts carry the rest:
//!
//! - **Who runs is known by a lock**, not by a pid: the kernel drops it with the process, also on SIGKILL.
//! - **What was done is known by the database**: an action that succeeded is a row there, and its id never works twice.
//! - **Every file that matters appears by a rename**: whoever finds a backup or an archive finds a whole one.
//!
//! # Example
//!
//! ```
//! use okt_examples::notes::{Store, open_backup};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("notes.db");
//!
//! let store = Store::create(&file)?;
//! store.insert("groceries", "bread, salt")?;
//! store.fold()?;
//! drop(store);
//!
//! assert_eq!(open_backup(&file)?, 1);
//! # Ok(())
//! # }
//! ```

mod actions;
mod archive;
mod backup;
mod client;
mod error;
mod files;
mod instance;
mod ledger;
mod library;
mod orders;
mod process;
mod program;
mod routes;
mod schema;
mod server;
mod store;
mod wire;

pub use backup::open_backup;
pub use error::{Error, StoreError};
pub use instance::{Archive, Instance, Observed};
pub use orders::{Backup, Drained};
pub use program::Program;
pub use server::{ServeArgs, serve};
pub use store::Store;
pub use wire::{
    Action, ActionKind, ActionState, Detail, Document, Door, Page, RunningAction, Settings, Status,
};
