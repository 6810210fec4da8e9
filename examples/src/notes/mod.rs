//! This module is a small document server, `notes`: the application whose life an operator drives.
//!
//! It is a process of its own with its own data, so that everything that happens to real servers happens to it: it is
//! killed in the middle of a backup, its operator is, a client writes while it leaves.
//!
//! ```text
//!   operator                            one process of `notes`
//!   +------------+  agent.sock (0600)   +------------------------------------------+
//!   |   Agents   |--------------------->| okt-sidecar's agent -> work -> backup     |
//!   |            |  docs/sidecar.md     |                          |               |
//!   |  Instance  |  HTTP, loopback      |                          v               |
//!   |   (tour) --|--------------------->| routes ----------> library -> store      |
//!   +------------+  POST /documents     +------------------------------------------+
//!      |  spawn, SIGTERM, SIGKILL          | holds                       | writes
//!      |                                   v                             v
//!      |   <data>/  notes.lock (pid)  notes.json (address)  agent/  notes.db  backups/  notes.log
//!      |                                                                 |
//!      +---- archive: when nobody holds the lock -----------------------> <archive>/<name>-<id>/
//! ```
//!
//! Three facts carry the rest:
//!
//! - **Who runs is known by a lock**, not by a pid: the kernel drops it with the process, also on SIGKILL.
//! - **What was done is known by the agent's journal**, and by what the work leaves: a backup has the name of its id.
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

mod archive;
mod backup;
mod client;
mod error;
mod files;
mod instance;
mod library;
mod process;
mod program;
mod routes;
mod running;
mod schema;
mod server;
mod store;
mod wire;
mod work;

pub use archive::archived;
pub use backup::open_backup;
pub use error::{Error, StoreError};
pub use instance::{Archive, Instance, Observed, endpoint};
pub use program::Program;
pub use server::{ServeArgs, serve};
pub use store::Store;
pub use wire::{Document, Page, Settings};
