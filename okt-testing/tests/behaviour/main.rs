//! These tests are about the double itself; what it shares with a real server is in
//! `okt_testing::conformance`.

mod cascades;
mod derived;
mod handles;
mod http;
mod many;
mod not_served;
mod records;
mod robustness;
mod support;
