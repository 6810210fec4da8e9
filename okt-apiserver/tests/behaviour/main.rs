//! Tests of the test double itself; the behaviours that it shares with a real server are in
//! `tests/tests/conformance`.

mod access;
mod cascades;
mod handles;
mod http;
mod many;
mod not_served;
mod records;
mod remote;
mod robustness;
mod shards;
mod support;
mod webhooks;
