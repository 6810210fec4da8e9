//! Operators in a cluster inside the test process: claims, objects that always exist, a queue, and a fleet.

mod always;
mod claims;
mod fleet;
mod land;
mod queue;
