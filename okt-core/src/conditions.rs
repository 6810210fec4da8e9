//! What an object says of itself to machines.

/// How many condition types a graph may declare: an object holds 32, of which the operator writes 5 and others need some.
pub const DECLARED_LIMIT: usize = 24;
