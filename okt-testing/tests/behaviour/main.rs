//! These tests drive the API through kube, one behaviour each.

mod objects;
mod support;
