//! The CRD of an application: its schema with the graph as CEL rules, the union of two releases, and the check of the
//! CRD in the cluster.

pub(crate) mod definition;
pub(crate) mod readiness;
pub(crate) mod union;
pub(crate) mod widen;
