//! The cache of objects, as packed text that is decoded when they are reconciled, and the queue that names them.

pub(crate) mod arrived;
pub(crate) mod cached;
pub(crate) mod guarded;
pub(crate) mod history;
pub(crate) mod objects;
pub(crate) mod packed;
pub(crate) mod queue;
pub(crate) mod store;
