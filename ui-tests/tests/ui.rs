//! Every case is compiled; those that pass are run, what the compiler says of the others is compared.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("cases/pass/*.rs");
    cases.compile_fail("cases/fail/*/*.rs");
}
