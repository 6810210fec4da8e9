//! An operator as a program.
//!
//! | module | content |
//! |---|---|
//! | `install` | the roles, policies and manifests that install it, its dashboard and its alerts |
//! | `in_use` | the CRDs in use |
//! | `migrate` | brings all objects to the version that their definition stores |
//! | `preview` | what a release would do to the objects of a cluster |
//! | `webhooks` | what the API server asks a program: to convert, check and complete objects |
//! | `program` | the command line: `run`, `preview`, `migrate`, `crd`, `rbac`, `manifests`, `graph`, `dashboards`, `argo-cd` |
//!
//! Operators use [`okt`](https://docs.rs/okt), which has what they need of this.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

#[cfg(feature = "cli")]
mod in_use;
mod install;
#[cfg(feature = "cli")]
mod migrate;
#[cfg(feature = "cli")]
mod preview;
#[cfg(feature = "cli")]
mod program;
#[cfg(feature = "webhooks")]
mod webhooks;

pub use install::account::{ServiceAccount, ServiceAccountError};
pub use install::defaults::default_policy;
pub use install::policy::{approval_policy, status_policy, verb_policy};
pub use install::rbac::{Rbac, lease_roles, metrics_roles, rbac, verb_roles, webhook_roles};
pub use install::rules::rule_policy;
pub use install::webhooks::KindWebhooks;
#[cfg(feature = "cli")]
pub use program::{NoOptions, Program, main};
#[cfg(feature = "webhooks")]
pub use webhooks::webhooks_of;
