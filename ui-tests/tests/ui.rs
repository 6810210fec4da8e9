//! Compiles every case; runs those that pass, and compares the compiler's output for the others.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("cases/pass/*.rs");
    cases.compile_fail("cases/fail/*/*.rs");
}
