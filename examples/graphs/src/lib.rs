//! Published lifecycles of well-known systems as OKT graphs.
//!
//! Each module has one system: its graph with every hole mended, so that it compiles.
//! The folder `published` has the same graphs as their projects have them, with the messages of the compiler.
//! The README shows the diagrams, and says which holes the projects mended later.

pub mod cluster_api;
pub mod metal3;
pub mod odoo;
pub mod pg_auto_failover;
pub mod strimzi;
