//! The replicas of an operator: which of them acts on which objects.
//!
//! Uses the helpers. `author`, `reconcile`, `operator` and `program` use it.
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

pub(crate) mod gate;
pub(crate) mod lease;
mod member;
pub(crate) mod membership;
mod plan;
mod protocol;
pub(crate) mod ranges;
pub(crate) mod selector;
mod table;
#[cfg(test)]
mod tests;
mod time;
