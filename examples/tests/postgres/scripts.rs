//! The agent's scripts without PostgreSQL: they do not misinterpret what is lost, killed or unreadable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// The stand-ins for PostgreSQL's programs, with their text; their input is in the environment.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "pg_controldata",
        "[ \"${LC_ALL:-$LANG}\" = C ] || { echo 'Datenbank-Cluster-Status: anders'; exit; }\n\
         echo \"Database cluster state:               $STATE\"",
    ),
    ("pg_isready", "exit 2"),
    ("pg_verifybackup", "exit 0"),
    (
        "initdb",
        "for it; do case $it in --pgdata=*) mkdir \"${it#*=}\"; cd \"${it#*=}\"; echo 15 > PG_VERSION ;; esac; done",
    ),
];

/// A process that works in a data directory; dropping this value kills it.
struct AtWork(Child);

impl AtWork {
    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_some()
    }

    /// Returns the text that the server would write to its pid file.
    fn pid_file(&self) -> String {
        format!("{}\n", self.0.id())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The directory of a server, by a path with a space and a link in it; each script runs as the agent would run it.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// Creates a place without data.
    fn empty() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let programs = directory.path().join("programs");
        for place in [&programs, &directory.path().join("a place/socket")] {
            fs::create_dir_all(place).expect("a directory");
        }
        std::os::unix::fs::symlink("a place", directory.path().join("home of it")).expect("a link");
        std::os::unix::fs::symlink("/bin/sleep", programs.join("postgres")).expect("a link");
        let place = Self { directory };
        for (name, text) in PROGRAMS {
            place.program(name, text);
        }
        place
    }

    /// Creates a place with a data directory that was served.
    fn new() -> Self {
        let place = Self::empty();
        place.succeeds("make");
        place.succeeds("prepare");
        place
    }

    /// Creates a place with a backup, too.
    fn with_backup() -> Self {
        let place = Self::new();
        place.write("backups/one/postgresql.conf", "");
        place.write("data/pg_wal/3", "three");
        place
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home of it")
    }

    /// Writes a program from another process: a file that this process holds open for writing cannot be executed.
    fn program(&self, name: &str, text: &str) {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"",
            "sh",
        ]);
        shell
            .arg(self.directory.path().join("programs").join(name))
            .arg(text);
        assert!(shell.status().expect("a shell").success());
    }

    /// Starts a process of this name that works here.
    fn at_work(&self, name: &str, here: &str) -> AtWork {
        let mut program = if name == "postgres" {
            Command::new(self.directory.path().join("programs/postgres"))
        } else {
            Command::new(name)
        };
        program.arg("600").current_dir(self.home().join(here));
        AtWork(program.spawn().expect("sleep"))
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.home().join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text).expect("written");
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.home().join(file)).ok()
    }

    fn is_there(&self, file: &str) -> bool {
        self.home().join(file).exists()
    }

    fn lose(&self, directory: &str) {
        fs::remove_dir_all(self.home().join(directory)).expect("it was there");
    }

    /// Returns a script with the environment of the agent's file.
    fn script(&self, name: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("postgres");
        let file = fs::read_to_string(scripts.join("sidecar.yaml")).expect("it is there");
        let (_, environment) = file.split_once("environment: &environment\n").expect("one");
        let mut command = Command::new("sh");
        command
            .arg(scripts.join(name))
            .env("LANG", "de_DE.UTF-8")
            .env_remove("LC_ALL");
        let lines = environment
            .lines()
            .take_while(|line| line.starts_with("    "));
        for line in lines.filter(|line| !line.trim_start().starts_with('#')) {
            let (key, value) = line.trim().split_once(": ").expect("a variable");
            let value = (value.trim_matches('"'))
                .replace("@HOME@", &self.home().to_string_lossy())
                .replace("@SCRIPTS@", &scripts.to_string_lossy())
                .replace(
                    "@PROGRAMS@",
                    &self.directory.path().join("programs").to_string_lossy(),
                );
            command.env(key, value);
        }
        command.env("OKT_RESULT", self.home().join("result"));
        command
            .env("OKT_ACTION_ID", "an-action")
            .env("OKT_ATTEMPT", "1");
        command
            .env("OKT_APPLICATION", "stopped")
            .env("STATE", "in production");
        command
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        self.script(name).args(arguments).output().expect("a shell")
    }

    fn succeeds(&self, name: &str) {
        let output = self.run(name, &[]);
        assert!(output.status.success(), "{name}: {output:?}");
    }

    /// Returns the answer of the probe, if it answers.
    fn seen(&self) -> Option<String> {
        let output = self.run("where", &[]);
        let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(printed)
    }

    /// Prepares a start with this state of PostgreSQL; returns whether its recovery continues then.
    fn recovers(&self, state: &str) -> bool {
        let prepared = self.script("prepare").env("STATE", state).status();
        assert!(prepared.expect("a shell").success());
        fs::remove_file(self.home().join("data/recovery.signal")).is_ok()
    }

    fn output(&self) -> String {
        self.read("result").unwrap_or_default()
    }
}

#[test]
fn leftover_processes_of_a_killed_server_are_ended() {
    let place = Place::new();
    let mut left = place.at_work("postgres", "data");
    let mut elsewhere = place.at_work("postgres", "");
    let mut somebody = place.at_work("sleep", "data");
    // The pid of a server that is gone.
    place.write("data/postmaster.pid", "1\n");
    assert!(place.run("nobody", &["--unless-served"]).status.success());
    assert!(left.has_ended());
    assert!(!elsewhere.has_ended(), "another server was ended");
    assert!(!somebody.has_ended(), "an unrelated process was ended");
    assert!(place.run("nobody", &[]).status.success(), "it is gone");
}

#[test]
fn a_living_server_is_left_alone() {
    let place = Place::new();
    let mut server = place.at_work("postgres", "data");
    let mut backend = place.at_work("postgres", "data");
    place.write("data/postmaster.pid", &server.pid_file());
    assert_eq!(
        place.run("nobody", &["--unless-served"]).stdout,
        b"served\n"
    );
    assert_eq!(place.run("nobody", &[]).status.code(), Some(1));
    assert_eq!(place.output(), "message: PostgreSQL is still at work\n");
    assert!(!server.has_ended() && !backend.has_ended());
}

#[test]
fn a_server_with_an_unreadable_working_directory_counts_as_running() {
    let place = Place::new();
    let server = place.at_work("postgres", "data");
    place.write("data/postmaster.pid", &server.pid_file());
    place.program(
        "readlink",
        "[ \"$1\" != -f ] || exec /usr/bin/readlink \"$@\"; exit 1",
    );
    assert_eq!(
        place.run("nobody", &["--unless-served"]).status.code(),
        Some(1)
    );
    assert!(
        place.output().contains("does not show"),
        "{}",
        place.output()
    );
    // Another program may have the pid of a server that is gone.
    let other = place.at_work("sleep", "");
    place.write("data/postmaster.pid", &other.pid_file());
    assert!(place.run("nobody", &[]).status.success());
}

#[test]
fn a_recovery_that_was_killed_at_its_very_end_goes_on() {
    let place = Place::new();
    // The states in the order of PostgreSQL; it removes the signal file in the first one.
    for state in [
        "in archive recovery",
        "shutting down",
        "shut down in recovery",
    ] {
        place.write("data/okt.recovering", "");
        assert!(place.recovers(state), "{state}");
        let server = place.at_work("postgres", "data");
        place.write("data/postmaster.pid", &server.pid_file());
        assert!(!place.recovers(state), "{state}: the server is at it");
    }
    for state in ["shut down", "in production"] {
        place.write("data/okt.recovering", "");
        assert!(!place.recovers(state), "{state}");
        assert!(
            !place.is_there("data/okt.recovering"),
            "{state}: it is over"
        );
    }
    for state in ["shutting down", "in production"] {
        assert!(!place.recovers(state), "{state}: nothing was restored");
    }
    // A backup was made while the server was in production; its recovery has not begun.
    place.write("data/okt.recovering", "");
    place.write("data/recovery.signal", "");
    assert!(place.recovers("in production"));
    assert!(place.is_there("data/okt.recovering"));
}

#[test]
fn a_server_whose_data_is_lost_is_not_created_again() {
    let place = Place::empty();
    assert_eq!(place.seen().as_deref(), Some("absent"));
    place.succeeds("make");
    place.succeeds("prepare");
    assert_eq!(place.seen().as_deref(), Some("Starting Starting"));
    place.write("backups/one/backup_label", "");
    place.lose("data");
    for volume in ["it is not there", "it is empty"] {
        assert_eq!(place.seen(), None, "{volume}");
        assert_eq!(place.run("make", &[]).status.code(), Some(1), "{volume}");
        assert!(!place.is_there("data/PG_VERSION"), "{volume}");
        assert!(place.is_there("backups/one/backup_label"), "{volume}");
        fs::create_dir_all(place.home().join("data")).expect("a directory");
    }
    place.succeeds("remove");
    assert_eq!(place.seen().as_deref(), Some("absent"), "it was removed");
}

#[test]
fn data_is_made_in_its_place_or_not_at_all() {
    let place = Place::empty();
    fs::create_dir(place.home().join("data")).expect("a directory");
    place.succeeds("make");
    assert!(place.is_there("data/PG_VERSION"), "in an empty directory");
    let place = Place::empty();
    place.write("data/lost+found/something", "");
    assert_eq!(place.run("make", &[]).status.code(), Some(1));
    assert!(
        !place.is_there("data/data.new"),
        "inside a foreign directory"
    );
}

#[test]
fn a_backup_takes_the_place_of_the_data_and_of_lost_data() {
    let place = Place::with_backup();
    place.write("data/okt.conf", "work_mem = '8MB'");
    place.write("data/pg_wal/2", "two");
    place.write("data/pg_wal/archive_status/2.ready", "");
    place.write("data/pg_wal/archive_status/1.ready", "");
    place.succeeds("restore");
    assert_eq!(place.read("archive/2").as_deref(), Some("two"), "whole");
    assert_eq!(place.read("archive/3"), None, "not whole");
    assert_eq!(place.read("archive.last/3").as_deref(), Some("three"));
    assert!(place.is_there("data/recovery.signal") && place.is_there("data/okt.conf"));
    assert!(place.is_there("data/okt.recovering") && place.is_there("data.old"));
    place.lose("data");
    let restored = place
        .script("restore")
        .env("OKT_ACTION_ID", "another")
        .status();
    assert!(restored.expect("a shell").success());
    assert_eq!(
        place.read("data/okt.restored").as_deref(),
        Some("another\n")
    );
    assert!(place.is_there("data.old"), "the last copy of the data");
}

#[test]
fn a_restoration_that_was_cut_off_between_its_moves_is_finished() {
    for next in ["restore", "prepare"] {
        let place = Place::with_backup();
        place.program(
            "mv",
            "case $2 in *.new) kill -9 $PPID ;; *) exec /bin/mv \"$@\" ;; esac",
        );
        assert_eq!(place.run("restore", &[]).status.code(), None, "killed");
        assert!(!place.is_there("data") && place.is_there("data.old"));
        assert_eq!(place.seen(), None);
        place.program("mv", "exec /bin/mv \"$@\"");
        place.succeeds(next);
        assert_eq!(
            place.read("data/okt.restored").as_deref(),
            Some("an-action\n")
        );
        assert!(!place.is_there("data.new"), "{next}");
    }
}

#[test]
fn a_restoration_that_is_cancelled_between_its_moves_makes_both() {
    let place = Place::with_backup();
    place.program("mv", "/bin/mv \"$@\"; kill -TERM $PPID");
    place.succeeds("restore");
    assert_eq!(
        place.read("data/okt.restored").as_deref(),
        Some("an-action\n")
    );
    assert!(place.is_there("data.old"));
}

#[test]
fn an_unreadable_log_segment_does_not_count_as_the_end() {
    let place = Place::new();
    let to = place.home().join("data/to");
    let to = to.to_str().expect("a path");
    let fetch = |name| place.run("fetch", &[name, to]).status.code();
    assert_eq!(fetch("1"), Some(255), "there is no archive of the rest");
    place.write("archive.last/2", "two");
    place.write("archive/1", "one");
    assert_eq!(fetch("1"), Some(0));
    assert_eq!(place.read("data/to").as_deref(), Some("one"));
    assert_eq!(fetch("2"), Some(0));
    assert_eq!(place.read("data/to").as_deref(), Some("two"));
    assert_eq!(fetch("3"), Some(1), "there is none");
    place.program("cp", "exit 1");
    assert_eq!(fetch("1"), Some(255), "it is there");
    place.lose("archive");
    assert_eq!(fetch("3"), Some(255), "the archive is lost");
}

#[test]
fn a_ledger_that_cannot_be_written_stops_no_work() {
    let place = Place::with_backup();
    fs::remove_file(place.home().join("ledger")).expect("it was there");
    place.write("ledger/is a directory", "");
    for name in ["make", "restore", "remove"] {
        place.succeeds(name);
    }
}
