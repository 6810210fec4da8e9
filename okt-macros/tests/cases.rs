//! Compiles the valid cases of `ui-tests` under every lint of this workspace.
//!
//! Clippy does not check what trybuild compiles, and must find nothing in generated code.
#![expect(dead_code, reason = "the `main` of a case is run by trybuild")]

#[path = "../../ui-tests/cases/pass/database.rs"]
pub mod database;
#[path = "../../ui-tests/cases/pass/every_attribute.rs"]
pub mod every_attribute;
#[path = "../../ui-tests/cases/pass/idle.rs"]
pub mod idle;
#[path = "../../ui-tests/cases/pass/pass_graph.rs"]
pub mod pass_graph;
#[path = "../../ui-tests/cases/pass/requests.rs"]
pub mod requests;
