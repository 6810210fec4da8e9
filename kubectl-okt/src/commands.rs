//! The commands, one file each.

pub(crate) mod approve;
pub(crate) mod complete;
pub(crate) mod conditions;
pub(crate) mod diff;
pub(crate) mod get;
pub(crate) mod go;
pub(crate) mod graph;
pub(crate) mod limit;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod plan;
pub(crate) mod request;
pub(crate) mod steer;
pub(crate) mod top;
pub(crate) mod trail;
pub(crate) mod wait;
pub(crate) mod why;
