//! This file knows which process serves a directory, and ends it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::Error;
use super::files;

/// How long to wait for checks of the lock; a check takes less time.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lock for serving or moving a directory; the kernel releases it however the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Who holds the lock of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// No process holds it.
    Nobody,
    /// A process holds it, with its pid if it has written one.
    Process(Option<u32>),
}

/// The result of taking a lock.
#[derive(Debug)]
pub(super) enum Taken {
    /// This process holds the lock until it drops this value.
    Lock(Lock),
    /// Another process holds it.
    Held(Option<u32>),
}

impl Lock {
    /// Takes the lock of a directory and records the pid.
    pub(super) fn take(data: &Path) -> io::Result<Taken> {
        let path = data.join(files::LOCK);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // Wait for processes that check the lock, but not for one that serves: a process that waited for it
                // would take the directory without the knowledge of the caller that ended the server.
                Err(TryLockError::WouldBlock)
                    if Instant::now() < end && is_only_looked_at(&file)? =>
                {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Ok(Taken::Held(recorded_pid(&path))),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        file.set_len(0)?;
        file.write_all(std::process::id().to_string().as_bytes())?;
        Ok(Taken::Lock(Self { _file: file }))
    }
}

/// Returns which process holds the lock of a directory, without taking it.
pub(super) fn holder(data: &Path) -> io::Result<Holder> {
    let path = data.join(files::LOCK);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::Nobody),
        Err(error) => return Err(error),
    };
    // Shared, so that two checks do not see each other.
    match file.try_lock_shared() {
        Ok(()) => Ok(Holder::Nobody),
        Err(TryLockError::WouldBlock) => Ok(Holder::Process(recorded_pid(&path))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns whether a lock that cannot be taken is held by checks alone.
fn is_only_looked_at(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Sends a signal to a process if its command line names this directory; succeeds if the process is already gone.
pub(super) fn tell(pid: u32, data: &Path, signal: Signal) -> Result<(), Error> {
    let not_ours = || Error::NotOurs {
        data: data.into(),
        pid,
    };
    let target = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(not_ours)?;
    let failed = |error: rustix::io::Errno| Error::file("signal the server of", data)(error.into());
    // Opened before the check: if another process gets the pid in between, the signal reaches the checked process or
    // none.
    let handle = match pidfd_open(target, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    match command_names(pid, data) {
        Ok(true) => {}
        Ok(false) => return Err(not_ours()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Error::file("read the command line of the server of", data)(
                error,
            ));
        }
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn command_names(pid: u32, data: &Path) -> io::Result<bool> {
    let line = fs::read(format!("/proc/{pid}/cmdline"))?;
    Ok(line
        .split(|byte| *byte == 0)
        .any(|argument| argument == data.as_os_str().as_bytes()))
}

fn recorded_pid(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_it_is_dropped() {
        let data = tempfile::tempdir().expect("a directory");
        assert_eq!(holder(data.path()).expect("a holder"), Holder::Nobody);

        let taken = Lock::take(data.path()).expect("a lock");
        let us = Some(std::process::id());
        assert_eq!(holder(data.path()).expect("a holder"), Holder::Process(us));
        assert!(
            matches!(Lock::take(data.path()).expect("an answer"), Taken::Held(pid) if pid == us)
        );

        drop(taken);
        assert_eq!(holder(data.path()).expect("a holder"), Holder::Nobody);
    }

    #[test]
    fn a_lock_under_a_check_is_taken() {
        let data = tempfile::tempdir().expect("a directory");
        let file = File::create(data.path().join(files::LOCK)).expect("a file");
        file.try_lock_shared().expect("a shared lock");
        let look = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(file);
        });

        assert!(matches!(
            Lock::take(data.path()).expect("an answer"),
            Taken::Lock(_)
        ));
        look.join().expect("no panic");
    }

    #[test]
    fn a_process_that_does_not_name_the_directory_is_not_signalled() {
        let data = tempfile::tempdir().expect("a directory");
        let error = tell(std::process::id(), data.path(), Signal::KILL)
            .expect_err("this test is no server");
        assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    }
}
