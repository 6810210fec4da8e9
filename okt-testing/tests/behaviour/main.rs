//! These tests drive the API through kube, one behaviour each.

mod apply;
mod builtin;
mod crds;
mod deletion;
mod http;
mod lists;
mod many;
mod objects;
mod records;
mod robustness;
mod rules;
mod runtime;
mod schema;
mod status;
mod support;
mod watch;
