//! Tests of fault injection, through kube clients.

mod chaos;
mod combined;
mod connections;
mod events;
mod http;
mod late;
mod limits;
mod order;
mod recordings;
mod refusals;
mod replicas;
mod support;
