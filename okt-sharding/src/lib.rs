//! The replicas of an operator: which of them acts on which objects.
//!
//! Operators use [`okt`](https://docs.rs/okt), which has what they need of this: [`membership`].
//!
//! | content | file |
//! |---|---|
//! | the ranges of the hash of uids | `ranges` |
//! | the table: which member holds which range | `table` |
//! | which member should hold which range | `plan` |
//! | the words of the protocol | `protocol` |
//! | a member, without I/O | `member`, `time` |
//! | members and tables as leases | `lease` |
//! | lists and watches of some ranges only | `selector` |
//! | the gate that reconciliations ask | `gate` |
//! | the membership of this process | `membership` |

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
