//! The replicas of an operator: which of them acts on which objects.
//!
//! Operators use [`okt`](https://docs.rs/okt), which has what they need of this: [`membership`].
//!
//! | module | content |
//! |---|---|
//! | [`ranges`], `table` | the ranges of the hash of uids; which member holds which range |
//! | `plan`, `protocol` | which member should hold which range; the words of the protocol |
//! | `time`, `member` | a member, without I/O |
//! | `lease`, [`selector`] | members and tables as leases; lists and watches of some ranges only |
//! | [`gate`], [`membership`] | what reconciliations ask; the membership of this process |

// A duration from user code must not cause a panic: `clock::after` adds times, and durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod gate;
pub mod lease;
mod member;
pub mod membership;
mod plan;
mod protocol;
pub mod ranges;
pub mod selector;
mod table;
#[cfg(test)]
mod tests;
mod time;
