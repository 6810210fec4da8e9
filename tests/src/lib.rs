//! This crate holds what the end-to-end tests share: applications without an application, and a cluster around them.

mod bucket;
mod chart;
mod cluster;
mod database;
pub mod definition;
mod fleet;
mod ladder;
mod queue;
mod quiet;
pub mod releases;
mod rig;
pub mod rollout;
mod runner;
mod script;
mod shop;
mod site;
mod stall;
mod tap;
pub mod transitions;
pub mod upgrades;
mod wire;

pub use bucket::{Bucket, BucketSpec, BucketState, Buckets};
pub use chart::{Chart, ChartPass, ChartSpec, Charts};
pub use cluster::{Cluster, Served};
pub use database::{Database, DatabaseSpec, DatabaseState, Databases, Ran, Reply, Sight};
pub use ladder::{Ladder, LadderSpec, Ladders};
pub use queue::{Queue, QueuePass, QueueSpec, QueueState, Queues};
pub use quiet::rest;
pub use rig::{Options, Rig};
pub use runner::{Runner, RunnerSpec, RunnerState, Runners};
pub use script::{Say, Script};
pub use shop::{Shop, ShopSpec, ShopState, Shops};
pub use site::{Site, SiteExtra, SiteSpec, SiteState, Sites};
pub use stall::{Stall, StallSpec, StallState, Stalls, Surroundings, jobs, services};
pub use tap::{Tap, Tapped};
pub use wire::{OPERATOR, Wire};
