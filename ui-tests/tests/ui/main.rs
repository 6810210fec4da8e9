//! Compiles every case; runs those that pass, and compares the compiler's output for the others.

mod awkward;

use std::path::Path;

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("cases/pass/*.rs");
    cases.compile_fail("cases/fail/*/*.rs");
    let generated = Path::new(env!("CARGO_TARGET_TMPDIR")).join("awkward_names.rs");
    awkward::write(&generated);
    cases.pass(generated);
}
