//! Tests of the test double itself; the behaviours that it shares with a real server are in
//! `okt_testing::conformance`.

mod cascades;
mod derived;
mod handles;
mod http;
mod many;
mod not_served;
mod records;
mod robustness;
mod shards;
mod support;
