//! Objects as the operator keeps them: packed text in a cache, decoded when they are reconciled, named in one queue.
//!
//! Uses `wire`; everything that reads objects uses it.

pub(crate) mod cached;
pub(crate) mod guarded;
pub(crate) mod history;
pub(crate) mod packed;
pub(crate) mod pruned;
pub(crate) mod queue;
