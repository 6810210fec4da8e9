//! This module is a small document server, `notes`: the application that an operator manages.
//!
//! It runs in its own process with its own data, and meets the failures of real servers: it is killed in the middle of
//! a backup, its operator is killed, and clients write while it stops.
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
//! It relies on three rules:
//!
//! - **A lock shows which process runs**, not a pid: the kernel releases it with the process, also on SIGKILL.
//! - **The agent's journal shows finished work**, and so do the results: a backup has the name of its id.
//! - **Every file that matters appears by a rename**, so each backup or archive that exists is complete.
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
