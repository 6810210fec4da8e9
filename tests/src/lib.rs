//! The shared parts of the end-to-end tests: scripted applications, and a cluster around them.

mod broker;
mod bucket;
mod chart;
mod cluster;
mod database;
pub mod definition;
mod fleet;
mod https;
mod in_time;
mod kiosk;
mod ladder;
pub mod lamps;
mod log;
pub mod measured;
mod mill;
mod objects;
mod proxy;
mod queue;
mod quiet;
pub mod releases;
mod rig;
pub mod rollout;
pub mod rules;
mod runner;
mod script;
mod shelf;
mod shop;
mod site;
mod slate;
mod stall;
mod tap;
pub mod transitions;
pub mod upgrades;
mod vault;
mod web_app;
mod wire;

pub use broker::{Broker, BrokerMemory, BrokerSpec, BrokerState, Brokers, Resize, STEPS};
pub use bucket::{Bucket, BucketSpec, BucketState, Buckets};
pub use chart::{Chart, ChartPass, ChartSpec, Charts};
pub use cluster::{Cluster, Served, assert_contains, assert_within, numbered};
pub use database::{Database, DatabaseSpec, DatabaseState, Databases, Ran, Reply, Sight};
pub use https::https_get;
pub use in_time::{in_time, until};
pub use kiosk::{Kiosk, KioskSpec, KioskState, Kiosks, Part};
pub use ladder::{Ladder, LadderSpec, Ladders};
pub use log::Log;
pub use mill::{Mill, MillAnswer, MillSpec, MillState, Mills, mill_state};
pub use objects::{Objects, Scoped};
pub use proxy::Proxy;
pub use queue::{Queue, QueuePass, QueueSpec, QueueState, Queues};
pub use quiet::rest;
pub use rig::{Options, Rig};
pub use runner::{Runner, RunnerSpec, RunnerState, Runners};
pub use script::{Script, Scripted};
pub use shelf::{Shelf, ShelfSpec, ShelfState, Shelves};
pub use shop::{Shop, ShopSpec, ShopState, ShopStateHandler, Shops, shop_state};
pub use site::{Site, SiteExtra, SiteSpec, SiteState, Sites};
pub use slate::{Slate, SlateSpec, Slates};
pub use stall::{Stall, StallSpec, StallState, Stalls, Surroundings, jobs, services};
pub use tap::{Tap, Tapped};
pub use vault::{
    Do, Restore, RestoreArgs, RestoreSchedule, Restored, Save, SaveArgs, Vault, VaultSpec,
    VaultState, Vaults,
};
pub use web_app::{Mistake, WebApp, WebAppSpec, WebAppState, WebApps};
pub use wire::{OPERATOR, Wire};
