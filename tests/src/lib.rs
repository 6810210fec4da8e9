//! This crate holds what the end-to-end tests share: applications without an application, and a cluster around them.

mod database;
pub mod definition;
mod rig;
mod site;
mod wire;

pub use database::{Database, DatabaseSpec, DatabaseState, Databases, Ran, Reply, Sight};
pub use rig::{Options, Rig, Served};
pub use site::{Site, SiteExtra, SiteSpec, SiteState, Sites};
pub use wire::{OPERATOR, Wire};
