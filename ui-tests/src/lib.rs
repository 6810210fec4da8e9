//! Cases for the compiler: see `cases/`, and `tests/ui.rs` which runs them.
