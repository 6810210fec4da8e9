//! This crate holds what the end-to-end tests share: a database without a database, and a cluster around it.

mod database;
mod rig;

pub use database::{Database, DatabaseSpec, DatabaseState, Databases, Ran, Reply, Sight};
pub use rig::Rig;
