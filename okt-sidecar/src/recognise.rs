//! An application that another program has started: found by its pid file, and verified by further properties.
//!
//! A user who can write the file decides which process it names. A file also outlives its process, whose id the kernel
//! may reuse.
//! So a process counts only if all of this is true:
//!
//! - It has the name and the user of the application.
//! - It works in the directory of the configuration, if there is one.
//! - It already ran when the agent first saw the present version of the pid file.
//!
//! Both times are counted since the boot of the machine, so setting the clock does not matter.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::notes::Notes;
use super::proc::{self, Stat};

/// How to find an application that the agent has not started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PidFile {
    /// The file that holds the process id in its first line.
    pub(crate) path: PathBuf,
    /// The name of the process.
    pub(crate) name: String,
    /// The working directory of the process.
    pub(crate) directory: Option<PathBuf>,
}

/// The present version of a pid file, and when the agent first saw it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FirstSeen {
    written: PidFileContent,
    /// The boot id of the kernel, and the namespace of the process id.
    world: String,
    /// The time, in ticks since the boot.
    at: u64,
}

/// Identifies a version of a file. Its time is not compared with other times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PidFileContent {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    pid: i32,
}

/// The name of the note for the next agent.
const NOTE: &str = "pid-file";

/// How much of a pid file is read, in bytes.
const LONGEST: u64 = 4096;

impl PidFile {
    /// Returns the process that the file names, if it is the application of this user.
    ///
    /// # Errors
    ///
    /// It is unknown whether it is the application: something cannot be read, or all but the user matches.
    pub(crate) fn find(
        &self,
        owner: u32,
        notes: &Notes,
        first_seen: &mut Option<FirstSeen>,
    ) -> Result<Option<Stat>, String> {
        let Some(written) = self.read().map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let pid = written.pid;
        let world = proc::world().map_err(|error| error.to_string())?;
        let known = first_seen.take().or_else(|| notes.read(NOTE));
        let same_file = known.filter(|seen| seen.written == written);
        let seen = same_file.unwrap_or_else(|| {
            let seen = FirstSeen {
                written,
                world: world.clone(),
                at: proc::now(),
            };
            if let Err(error) = notes.write(NOTE, &seen) {
                tracing::warn!(%error, "cannot note down when the pid file was first seen");
            }
            seen
        });
        let seen = first_seen.insert(seen);
        let Some(found) = proc::stat(pid).filter(Stat::lives) else {
            return Ok(None);
        };
        let wrote_it = seen.world == world && found.start <= seen.at;
        if !wrote_it || !named(&found.name, &self.name) {
            return Ok(None);
        }
        if let Some(directory) = &self.directory {
            // The path of the configuration may contain links.
            let resolved = directory.canonicalize();
            let directory = resolved.as_ref().unwrap_or(directory);
            match proc::directory(pid) {
                Ok(works_in) if works_in == *directory => {}
                Ok(_) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(format!("where process {pid} works: {error}")),
            }
        }
        Ok(is_of(&found, owner)?.then_some(found))
    }

    /// Reads the file. Returns `None` if it does not exist or names no process.
    fn read(&self) -> io::Result<Option<PidFileContent>> {
        // The owner of the file may have replaced it by a pipe, so do not block.
        let opened = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&self.path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text)?;
        Ok(pid_in(&text).map(|pid| PidFileContent {
            device: about.dev(),
            inode: about.ino(),
            modified: (about.mtime(), about.mtime_nsec()),
            pid,
        }))
    }
}

/// Returns the process id in the first line, unless it is that of process 1 or of the agent.
pub(super) fn pid_in(text: &[u8]) -> Option<i32> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let pid = std::str::from_utf8(line).ok()?.trim().parse().ok()?;
    (pid > 1 && pid != rustix::process::getpid().as_raw_nonzero().get()).then_some(pid)
}

/// Returns whether a process still exists, which must belong to this user.
///
/// # Errors
///
/// The process belongs to another user, or is the agent itself.
pub(crate) fn is_of(process: &Stat, owner: u32) -> Result<bool, String> {
    let pid = process.pid;
    if pid == rustix::process::getpid().as_raw_nonzero().get() {
        return Err("that is the agent itself".to_owned());
    }
    let Some(users) = proc::users(pid) else {
        return Ok(false);
    };
    // Check that the users were read of this process, and not of one that reuses its id.
    if process.now().is_none() {
        return Ok(false);
    }
    match users.iter().find(|user| **user != owner) {
        None => Ok(true),
        Some(user) => Err(format!(
            "process {pid} ({}) is of user {user}, not of user {owner}: say in `application.user` whose it is",
            process.name
        )),
    }
}

/// Compares names. The kernel keeps 15 bytes of a name.
fn named(found: &str, name: &str) -> bool {
    found == name || (found.len() == 15 && name.starts_with(found))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::time::{Duration, SystemTime};

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use rustix::process::geteuid;
    use tempfile::TempDir;

    use super::*;

    /// A process, its pid file, and the notes of an agent.
    struct Scene {
        process: Child,
        directory: TempDir,
        file: PidFile,
    }

    impl Scene {
        fn new(command: &mut Command) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let process = command.arg("60").spawn().unwrap();
            let file = PidFile {
                path: directory.path().join("pid"),
                name: "sleep".to_owned(),
                directory: None,
            };
            std::fs::write(&file.path, format!("{}\nmore\n", process.id())).unwrap();
            Self {
                process,
                directory,
                file,
            }
        }

        fn notes(&self) -> Notes {
            Notes::open(&self.directory.path().join("notes")).unwrap()
        }

        /// Finds the process as an agent that has just started does.
        fn find(&self) -> Result<bool, String> {
            let found = self.file.find(geteuid().as_raw(), &self.notes(), &mut None);
            found.map(|found| found.is_some())
        }

        fn set_modified(&self, to: SystemTime) {
            let file = File::options().write(true).open(&self.file.path).unwrap();
            file.set_modified(to).unwrap();
        }

        /// Changes when the file was first seen.
        fn seen(&self, change: impl FnOnce(&mut FirstSeen)) {
            let mut seen = self.notes().read(NOTE).unwrap();
            change(&mut seen);
            self.notes().write(NOTE, &seen).unwrap();
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }

    #[test]
    fn no_clock_decides_whether_the_application_is_there() {
        let scene = Scene::new(&mut Command::new("sleep"));
        assert_eq!(scene.find(), Ok(true));
        let hour = Duration::from_hours(1);
        // As after a clock that was set back, and one that was set ahead.
        for modified in [
            SystemTime::now() - hour,
            SystemTime::UNIX_EPOCH,
            SystemTime::now() + hour,
        ] {
            scene.set_modified(modified);
            assert_eq!(scene.find(), Ok(true), "{modified:?}");
        }
    }

    #[test]
    fn a_process_that_began_after_the_file_was_seen_is_another_one() {
        let scene = Scene::new(&mut Command::new("sleep"));
        assert_eq!(scene.find(), Ok(true));
        let start = proc::stat(scene.process.id().cast_signed()).unwrap().start;
        scene.seen(|seen| seen.at = start);
        assert_eq!(scene.find(), Ok(true));
        scene.seen(|seen| seen.at = start - 1);
        assert_eq!(scene.find(), Ok(false));
        // After the file is rewritten, the process may be the one that wrote it.
        scene.set_modified(SystemTime::now() + Duration::from_secs(1));
        assert_eq!(scene.find(), Ok(true));
        scene.seen(|seen| seen.world = "an earlier boot".to_owned());
        assert_eq!(scene.find(), Ok(false));
    }

    #[test]
    fn the_first_sight_of_the_file_is_kept_in_memory_if_no_note_can_be_written() {
        let scene = Scene::new(&mut Command::new("sleep"));
        let notes = scene.notes();
        std::fs::remove_dir_all(scene.directory.path().join("notes")).unwrap();
        let mut first_seen = None;
        let owner = geteuid().as_raw();
        let file = &scene.file;
        let found = file.find(owner, &notes, &mut first_seen);
        assert!(found.unwrap().is_some());
        first_seen.as_mut().unwrap().at = 0;
        let found = file.find(owner, &notes, &mut first_seen);
        assert!(found.unwrap().is_none());
    }

    #[test]
    fn process_1_the_agent_and_other_names_are_not_the_application() {
        let mut scene = Scene::new(&mut Command::new("sleep"));
        let first = proc::stat(1).map_or_else(|| "init".to_owned(), |first| first.name);
        let own = proc::stat(std::process::id().cast_signed()).unwrap().name;
        for (pid, name) in [
            ("1".to_owned(), first),
            (std::process::id().to_string(), own),
        ] {
            std::fs::write(&scene.file.path, pid).unwrap();
            scene.file.name = name;
            assert_eq!(scene.find(), Ok(false));
        }
        std::fs::write(&scene.file.path, scene.process.id().to_string()).unwrap();
        scene.file.name = "postgres".to_owned();
        assert_eq!(scene.find(), Ok(false));
    }

    #[test]
    fn a_process_of_another_user_is_not_the_application_and_is_reported() {
        if !geteuid().is_root() {
            eprintln!("not root: not tested with a process of another user");
            return;
        }
        let scene = Scene::new(Command::new("sleep").uid(65534).gid(65534));
        let why = scene.find().unwrap_err();
        assert!(
            why.contains("is of user 65534, not of user 0: say in `application.user`"),
            "{why}"
        );
        let found = scene.file.find(65534, &scene.notes(), &mut None);
        assert!(found.unwrap().is_some());
    }

    #[test]
    fn a_process_that_works_elsewhere_is_not_the_application() {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(Command::new("sleep").current_dir(elsewhere.path()));
        let link = scene.directory.path().join("link");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        for (directory, is_it) in [
            (elsewhere.path(), true),
            (&link, true),
            (scene.directory.path(), false),
        ] {
            scene.file.directory = Some(directory.to_owned());
            assert_eq!(scene.find(), Ok(is_it), "{directory:?}");
        }
    }

    #[test]
    fn invalid_pid_files_are_refused_without_blocking_or_reading_further() {
        let scene = Scene::new(&mut Command::new("sleep"));
        let put = |what: &[u8]| std::fs::write(&scene.file.path, what).unwrap();
        let long = [b'1'; 10_000];
        let huge = b"99999999999999";
        for what in [&b""[..], b"\xff\xfe", b"-5", b"0", huge, b"12 34", &long] {
            put(what);
            assert_eq!(scene.find(), Ok(false), "{:?}", &what[..what.len().min(9)]);
        }
        std::fs::remove_file(&scene.file.path).unwrap();
        assert_eq!(scene.find(), Ok(false));
        let path = &scene.file.path;
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(scene.find(), Err("it is no file".to_owned()));
        std::fs::remove_file(&scene.file.path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &scene.file.path).unwrap();
        assert_eq!(scene.find(), Err("it is no file".to_owned()));
    }
}
