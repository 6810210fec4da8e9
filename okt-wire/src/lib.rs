//! What OKT programs and the Kubernetes API exchange.
//!
//! | module | content |
//! |---|---|
//! | [`keys`] | every annotation, label and finalizer |
//! | `clock`, `texts`, `provider` | time, error messages, the crypto provider of TLS |
//! | [`refusal`], [`limit`], [`api_timeout`], [`watch`] | requests: what a refusal means, how many there may be, how long an answer may take, watches that end their silence |
//! | [`pruned`], [`digest`] | reads an object in one pass, without the parts that nobody wants; hashes |
//! | [`limits`], [`cause`], [`desired`], [`sealed`], [`status`], [`annotations`], [`version`], [`object`], [`scope`] | the parts of an object as types, and how long they may be |
//! | [`request`], [`window`], [`places`] | requests as types, and the trait of their arguments; a window of a calendar; the places of a limit |
//! | [`versions`] | an object of one version of its kind as an object of another |
//! | [`schema`] | the schema of a status, with the rules that the API server checks |
//! | [`read`], [`parts`], [`revision`] | their conversion to the numbers of `okt_core` |
//!
//! Operators use [`okt`](https://docs.rs/okt), which has what they need of this.
#![cfg_attr(docsrs, feature(doc_cfg))]
// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod annotations;
pub mod api_timeout;
pub mod cause;
pub mod clock;
pub mod desired;
pub mod digest;
pub mod keys;
pub mod limit;
pub mod limits;
pub mod object;
pub mod parts;
pub mod places;
#[cfg(feature = "tls")]
pub mod provider;
pub mod pruned;
pub mod read;
pub mod refusal;
pub mod request;
pub mod revision;
pub mod schema;
pub mod scope;
pub mod sealed;
pub mod status;
pub mod texts;
pub mod version;
pub mod versions;
pub mod watch;
pub mod window;
