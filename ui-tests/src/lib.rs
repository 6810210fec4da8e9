//! Cases for the compiler: see `cases/`, and `tests/ui.rs` which compiles and runs them.
//!
//! Those that pass stand here once more, under every lint of this workspace: clippy sees nothing of what
//! trybuild compiles, and must find nothing in generated code.
#![cfg_attr(
    test,
    expect(dead_code, reason = "the `main` of a case is run by trybuild")
)]

#[cfg(test)]
#[path = "../cases/pass/database.rs"]
pub mod database;
#[cfg(test)]
#[path = "../cases/pass/every_attribute.rs"]
pub mod every_attribute;
#[cfg(test)]
#[path = "../cases/pass/idle.rs"]
pub mod idle;
#[cfg(test)]
#[path = "../cases/pass/keywords.rs"]
pub mod keywords;
#[cfg(test)]
#[path = "../cases/pass/pass_graph.rs"]
pub mod pass_graph;
