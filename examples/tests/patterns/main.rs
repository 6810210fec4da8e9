//! Operators in a cluster inside the test process: claims, objects that always exist, a queue, a fleet, and
//! tents in three versions.

mod always;
mod claims;
mod fleet;
mod land;
mod queue;
mod tents;
