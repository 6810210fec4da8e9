//! This file names the files of a data directory and makes their changes survive a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The database.
pub(super) const DATABASE: &str = "notes.db";
/// The lock, held by the process that serves the directory.
pub(super) const LOCK: &str = "notes.lock";
/// The announcement with the address of that process.
pub(super) const ANNOUNCEMENT: &str = "notes.json";
/// The log of that process.
pub(super) const LOG: &str = "notes.log";
/// Finished backups, and unfinished ones that end in [`PARTIAL`].
pub(super) const BACKUPS: &str = "backups";
/// The socket of the agent in that process.
pub(super) const SOCKET: &str = "agent.sock";
/// The longest path of a data directory, in bytes: a socket path may have 107, of which the agent needs some.
pub(super) const PATH_BYTES: usize = 88;
/// The journal of that agent.
pub(super) const JOURNAL: &str = "agent";
/// The extension of an unfinished file.
pub(super) const PARTIAL: &str = "partial";

/// Writes a file completely or not at all, even if the machine stops in between.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = path.with_added_extension(PARTIAL);
    let mut file = File::create(&partial)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    sync_parent(path)
}

/// Syncs a directory, so that renames and removals in it survive a crash.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Syncs the parent directory, so that creating or removing this entry survives a crash.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        Some(_) | None => Ok(()),
    }
}

/// Removes a file that may be gone already.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    accept_missing(fs::remove_file(path))
}

/// Removes a directory, with all it holds, that may be gone already.
pub(super) fn remove_directory(path: &Path) -> io::Result<()> {
    accept_missing(fs::remove_dir_all(path))
}

fn accept_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
