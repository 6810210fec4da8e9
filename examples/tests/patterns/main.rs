//! Patterns of operators, in a cluster inside the test process: claims, and what is there always.

mod always;
mod claims;
mod land;
