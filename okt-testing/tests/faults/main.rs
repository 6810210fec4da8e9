//! These tests make the API misbehave, one way each, and look at it through kube.

mod chaos;
mod combined;
mod connections;
mod events;
mod http;
mod limits;
mod order;
mod recordings;
mod refusals;
mod replicas;
mod support;
