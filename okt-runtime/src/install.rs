//! What installs an operator in a cluster: roles, and manifests.
//!
//! Uses `author` and below. `program` prints it.

#[cfg(feature = "cli")]
pub(crate) mod health;
#[cfg(feature = "cli")]
pub(crate) mod manifests;
pub(crate) mod rbac;
