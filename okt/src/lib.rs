//! Everything that an operator needs, in one crate.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use okt_core::Graph;
pub use okt_macros::crates;
pub use okt_program::*;
#[cfg(feature = "reach")]
pub use okt_reach::reach;
pub use okt_runtime::*;
#[cfg(feature = "serve")]
pub use okt_serve::{ListenAddress, ListenAddressError};
pub use okt_telemetry::metrics::requests::CountRequests;
#[cfg(feature = "cloudevents")]
pub use okt_telemetry::receivers::cloud_events::{CloudEvents, CloudEventsError};
#[cfg(feature = "otel")]
pub use okt_telemetry::receivers::collector::Traces;
pub use okt_view as view;
pub use okt_wire::api_timeout::limit_answers;
pub use okt_wire::limit::limit_requests;
pub use okt_wire::version::{KindVersion, PreviousVersion};
pub use okt_wire::versions::{ConversionError, KindVersions};

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
