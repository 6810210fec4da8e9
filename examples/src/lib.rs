//! This crate holds operators written with OKT, and the applications they drive.

pub mod notes;
