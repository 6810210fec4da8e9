//! What installs an operator in a cluster: roles, policies, manifests, and what monitors it.

pub(crate) mod account;
#[cfg(feature = "cli")]
pub(crate) mod alerts;
#[cfg(feature = "cli")]
pub(crate) mod argo_cd;
#[cfg(feature = "cli")]
pub(crate) mod bundle;
#[cfg(feature = "cli")]
pub(crate) mod chart;
#[cfg(feature = "cli")]
pub(crate) mod dashboards;
pub(crate) mod defaults;
#[cfg(feature = "cli")]
pub(crate) mod generated;
#[cfg(feature = "cli")]
pub(crate) mod kind;
#[cfg(feature = "cli")]
pub(crate) mod kustomize;
#[cfg(feature = "cli")]
pub(crate) mod manifests;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod rules;
#[cfg(feature = "cli")]
pub(crate) mod state_metrics;
pub(crate) mod webhooks;
