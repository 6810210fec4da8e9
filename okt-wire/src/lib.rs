//! What OKT programs and the Kubernetes API exchange.
//!
//! | module | content |
//! |---|---|
//! | [`keys`] | every annotation, label and finalizer |
//! | [`object`], [`desired`], [`status`], [`annotations`] | the parts of an object, as types |
//! | [`limits`], [`cause`], [`read`], [`revision`] | how long they may be; their conversion to the numbers of `okt_core` |
//! | [`schema`] | the schema of a status, with the rules that the API server checks |
//! | [`pruned`] | reads an object in one pass, without the parts that nobody wants |
//! | [`api_timeout`], [`limit`], [`watch`], [`refusal`] | requests: how long an answer may take, how many there may be, watches that end their silence, and what a refusal means |
//! | [`clock`], [`texts`], `provider` | time, error messages, the crypto provider of TLS |
//!
//! Operators use [`okt`](https://docs.rs/okt), which has what they need of this.

// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod annotations;
pub mod api_timeout;
pub mod cause;
pub mod clock;
pub mod desired;
pub mod keys;
pub mod limit;
pub mod limits;
pub mod object;
#[cfg(feature = "tls")]
pub mod provider;
pub mod pruned;
pub mod read;
pub mod refusal;
pub mod revision;
pub mod schema;
pub mod status;
pub mod texts;
pub mod watch;
