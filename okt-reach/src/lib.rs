//! How handlers reach their applications ([`reach`], with the feature of that name), and how they fail ([`Failure`]).
//!
//! Operators use [`okt`](https://docs.rs/okt), which has all of this.

mod failure;
mod from_error;
#[cfg(feature = "reach")]
pub mod reach;

pub use failure::Failure;
pub use from_error::ResultExt;
