//! Operators in a cluster inside the test process: claims, objects that always exist, and a queue.

mod always;
mod claims;
mod land;
mod queue;
