//! Everything that an operator needs, in one crate.
//!
#![doc = include_str!("../README.md")]

pub use okt_core::Graph;
pub use okt_macros::crates;
pub use okt_runtime::*;
pub use okt_view as view;

pub use k8s_openapi;
pub use kube;
pub use prometheus_client;
pub use schemars;
pub use serde;
pub use serde_json;
pub use tracing;

#[doc = include_str!("alerts.md")]
#[expect(
    clippy::doc_markdown,
    reason = "the headings are names of alerts, and links go to them"
)]
pub mod alerts {}
