//! Compiles every case; runs those that pass, and compares the compiler's output for the others.

mod awkward;
#[path = "../../../okt-syntax/tests/common/pages.rs"]
mod pages;
mod right;
#[path = "../../../okt-core/tests/common/rng.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod rng;

use std::fs;
use std::path::Path;

use pages::{pages, wrong_program};

#[test]
fn ui() {
    // rustc names a case by its path, so these stand beside their output.
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/fail/rules");
    for (rule, page) in pages() {
        write(&rules.join(format!("{rule}.rs")), &wrong_program(&page));
    }
    let cases = trybuild::TestCases::new();
    cases.pass("cases/pass/*.rs");
    cases.compile_fail("cases/fail/*/*.rs");
    for (name, program) in [
        ("awkward_names.rs", awkward::program()),
        ("right_examples.rs", right::program()),
    ] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        write(&file, &program);
        cases.pass(file);
    }
}

/// Writes a program, if it has changed: a file that is written again is compiled again.
fn write(file: &Path, program: &str) {
    if fs::read_to_string(file).is_ok_and(|former| former == program) {
        return;
    }
    fs::write(file, program).expect("the file can be written");
}
