//! Compiles every case; runs those that pass, and compares the compiler's output for the others.

mod awkward;
mod right;

use std::fs;
use std::path::Path;

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("cases/pass/*.rs");
    cases.compile_fail("cases/fail/*/*.rs");
    for (name, program) in [
        ("awkward_names.rs", awkward::program()),
        ("right_examples.rs", right::program()),
    ] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // A file that is written again is compiled again.
        if fs::read_to_string(&file).ok().as_ref() != Some(&program) {
            fs::write(&file, program).expect("the target directory can be written");
        }
        cases.pass(file);
    }
}
