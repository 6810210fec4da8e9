//! This file tests scripts of the agent by themselves: what a killed server has left is cleared away, a living one is not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// Something that is at work in a data directory; ended when it is dropped.
struct AtWork(Child);

impl AtWork {
    fn in_directory(data: &Path) -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("600").current_dir(data).spawn().expect("sleep"))
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_some()
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("data")).expect("a directory");
        Self { directory }
    }

    fn data(&self) -> PathBuf {
        let data = self.directory.path().join("data");
        data.canonicalize().expect("it is there")
    }

    fn nobody(&self, arguments: &[&str]) -> ExitStatus {
        let mut command = self.script("nobody");
        command.args(arguments).status().expect("a shell")
    }

    /// Prepares a start of a server that stands so by what PostgreSQL says; whether its recovery goes on then.
    fn recovers(&self, state: &str) -> bool {
        let programs = self.directory.path().join("programs");
        fs::create_dir_all(&programs).expect("a directory");
        let says = format!("#!/bin/sh\necho 'Database cluster state:               {state}'\n");
        let program = programs.join("pg_controldata");
        fs::write(&program, says).expect("written");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let prepared = self.script("prepare").env("PATH", path).status();
        assert!(prepared.expect("a shell").success());
        fs::remove_file(self.data().join("recovery.signal")).is_ok()
    }

    fn script(&self, name: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("postgres");
        let mut command = Command::new("sh");
        command.arg(scripts.join(name));
        command.env("SCRIPTS", scripts).env("PGDATA", self.data());
        command.env("OKT_RESULT", self.directory.path().join("result"));
        command
    }

    fn said(&self) -> String {
        fs::read_to_string(self.directory.path().join("result")).unwrap_or_default()
    }
}

#[test]
fn what_a_killed_server_has_left_at_work_is_ended() {
    let place = Place::new();
    let mut left = AtWork::in_directory(&place.data());
    let mut other = AtWork::in_directory(place.directory.path());
    // The number of a server that is gone.
    fs::write(place.data().join("postmaster.pid"), "1\n").expect("written");
    assert!(place.nobody(&["--unless-served"]).success());
    assert!(left.has_ended());
    assert!(!other.has_ended(), "somebody else was ended");
    assert!(place.nobody(&[]).success(), "nobody is there any more");
}

#[test]
fn a_recovery_that_was_killed_at_its_very_end_goes_on() {
    let place = Place::new();
    assert!(place.recovers("in archive recovery"));
    for state in ["in production", "shut down", "shut down in recovery"] {
        assert!(!place.recovers(state), "{state}");
    }
    let server = AtWork::in_directory(&place.data());
    let number = format!("{}\n", server.0.id());
    fs::write(place.data().join("postmaster.pid"), number).expect("written");
    assert!(
        !place.recovers("in archive recovery"),
        "the server is at it"
    );
}

#[test]
fn a_living_server_is_left_alone() {
    let place = Place::new();
    let mut server = AtWork::in_directory(&place.data());
    let mut backend = AtWork::in_directory(&place.data());
    let number = format!("{}\n", server.0.id());
    fs::write(place.data().join("postmaster.pid"), number).expect("written");
    assert!(place.nobody(&["--unless-served"]).success());
    assert_eq!(place.nobody(&[]).code(), Some(1));
    assert_eq!(place.said(), "message: PostgreSQL is still at work\n");
    assert!(!server.has_ended() && !backend.has_ended());
}
