//! Patterns of operators, in a cluster inside the test process: claims, and objects that always exist.

mod always;
mod claims;
mod land;
