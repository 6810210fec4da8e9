//! The program copies itself to where the container of an application finds it.

use std::process::Command;

use crate::site::Run;

#[test]
fn the_program_installs_itself_and_the_copy_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = env!("CARGO_BIN_EXE_okt-sidecar");
    for _ in 0..2 {
        let installed = Run::of(Command::new(program).arg("install").arg(directory.path()));
        assert_eq!(installed.code, Some(0), "{}", installed.err);
    }
    let files = std::fs::read_dir(directory.path()).expect("it is read");
    assert_eq!(files.count(), 1, "nothing else is left there");
    let copy = Run::of(Command::new(directory.path().join("okt-sidecar")).arg("--version"));
    assert_eq!(copy.code, Some(0), "{}", copy.err);
}

#[test]
fn a_directory_that_is_not_there_is_reported() {
    let program = env!("CARGO_BIN_EXE_okt-sidecar");
    let failed = Run::of(Command::new(program).args(["install", "/nowhere/okt"]));
    let wanted = "okt-sidecar: /nowhere/okt: No such file or directory (os error 2)\n";
    assert_eq!((failed.code, &*failed.err), (Some(1), wanted));
}
