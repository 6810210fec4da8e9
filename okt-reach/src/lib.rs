//! How handlers reach their applications ([`reach`], with the feature of that name), and how they fail ([`Failure`]).
//!
//! Operators use [`okt`](https://docs.rs/okt), which has all of this.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `failure` | why work failed, and whether a retry helps |
// | `reach` | commands in containers, HTTP, forwarded ports |
// | `from_error` | any error as a failure |

mod failure;
mod from_error;
#[cfg(feature = "reach")]
pub mod reach;

pub use failure::Failure;
pub use from_error::ResultExt;
