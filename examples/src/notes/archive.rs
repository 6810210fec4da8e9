//! This file moves the data of an instance into an archive, and finishes a move that was interrupted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::backup::open_backup;
use super::error::Error;
use super::files::{self, ANNOUNCEMENT, BACKUPS, DATABASE, JOURNAL, LOCK, LOG, SOCKET};
use super::process::{Lock, Taken};
use super::store::Store;

/// The paths of a move.
#[derive(Clone, Debug)]
pub(super) struct Move {
    /// The data directory.
    pub(super) data: PathBuf,
    /// The directory that will hold it; it does not exist, or holds a whole archive.
    pub(super) kept: PathBuf,
    /// The unfinished copy, next to `kept`.
    partial: PathBuf,
    /// The data directory while it is removed after the copy, next to `data`.
    aside: PathBuf,
}

/// The steps of a move in order, each reported when it is complete; a crash may follow any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The database is one file.
    Folded,
    /// A part of the copy exists.
    CopyBegun,
    /// All of the copy exists, under its temporary name.
    Copied,
    /// The archive is complete.
    Kept,
    /// The data directory has lost its name.
    SetAside,
    /// The data directory is gone.
    Removed,
}

/// How the data gets into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// By a rename, or by a copy if the archive is on another file system.
    Rename,
    /// By a copy.
    #[cfg(test)]
    Copy,
}

impl Move {
    pub(super) fn new(data: &Path, name: &str, id: &str, into: &Path) -> Self {
        let entry = format!("{name}-{id}");
        let directory = data
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Self {
            data: data.into(),
            kept: into.join(&entry),
            partial: into.join(format!(".{entry}.{}", files::PARTIAL)),
            aside: data.with_file_name(format!(".{directory}.{id}.removing")),
        }
    }

    /// Completes the move and returns how many documents are archived.
    ///
    /// # Guarantees
    ///
    /// At every moment the data is complete in one of the two places.
    /// A directory that was prepared again under the old name is a different one, and stays.
    pub(super) fn run(
        &self,
        means: Means,
        reached: impl Fn(Step) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        if !self.kept.join(DATABASE).exists() {
            let _lock = self.fold()?;
            reached(Step::Folded)?;
            self.keep(means, &reached)?;
            reached(Step::Kept)?;
        }
        if self.is_left() {
            let _lock = self.lock()?;
            rename(&self.data, &self.aside)?;
            reached(Step::SetAside)?;
        }
        files::remove_directory(&self.aside).map_err(Error::file("remove", &self.aside))?;
        reached(Step::Removed)?;
        // A rename moves these files too; an archive does not need them.
        for name in [LOCK, ANNOUNCEMENT, SOCKET] {
            let path = self.kept.join(name);
            files::remove_file(&path).map_err(Error::file("remove", &path))?;
        }
        let journal = self.kept.join(JOURNAL);
        files::remove_directory(&journal).map_err(Error::file("remove", &journal))?;
        open_backup(&self.kept.join(DATABASE))
    }

    /// Locks the directory against servers and makes its database one file.
    fn fold(&self) -> Result<Lock, Error> {
        if !self.data.join(DATABASE).exists() {
            return Err(Error::NotPrepared {
                data: self.data.clone(),
            });
        }
        let lock = self.lock()?;
        Store::open(&self.data.join(DATABASE))?.fold()?;
        Ok(lock)
    }

    fn lock(&self) -> Result<Lock, Error> {
        match Lock::take(&self.data).map_err(Error::file("lock", &self.data))? {
            Taken::Lock(lock) => Ok(lock),
            Taken::Held(pid) => Err(Error::InUse {
                data: self.data.clone(),
                pid,
            }),
        }
    }

    fn keep(
        &self,
        means: Means,
        reached: &impl Fn(Step) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(into) = self.kept.parent() {
            fs::create_dir_all(into).map_err(Error::file("make archive directory", into))?;
        }
        match means {
            Means::Rename => match rename(&self.data, &self.kept) {
                Err(Error::File { source, .. })
                    if source.kind() == io::ErrorKind::CrossesDevices => {}
                result => return result,
            },
            #[cfg(test)]
            Means::Copy => {}
        }
        // An earlier attempt may have left a part of a copy; start over.
        files::remove_directory(&self.partial).map_err(Error::file("remove", &self.partial))?;
        fs::create_dir(&self.partial).map_err(Error::file("make", &self.partial))?;
        copy(&self.data.join(DATABASE), &self.partial.join(DATABASE))?;
        reached(Step::CopyBegun)?;
        copy(&self.data.join(LOG), &self.partial.join(LOG))?;
        copy_backups(&self.data.join(BACKUPS), &self.partial.join(BACKUPS))?;
        files::sync_directory(&self.partial).map_err(Error::file("sync", &self.partial))?;
        reached(Step::Copied)?;
        rename(&self.partial, &self.kept)
    }

    /// Returns whether the archived data still exists at its old place, too.
    fn is_left(&self) -> bool {
        let identity = |directory: &Path| {
            Store::open_read_only(&directory.join(DATABASE))?.property("identity")
        };
        match (identity(&self.data), identity(&self.kept)) {
            (Ok(Some(data)), Ok(Some(kept))) => data == kept,
            // Data that cannot be identified is not removed.
            (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
        }
    }
}

/// Renames, and syncs both directories so that the rename survives a crash.
fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to)
        .and_then(|()| files::sync_parent(to))
        .and_then(|()| files::sync_parent(from))
        .map_err(Error::file("move data directory", from))
}

fn copy_backups(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir(to).map_err(Error::file("make", to))?;
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        // No server has ever run here.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::file("list", from)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::file("list", from))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    files::sync_directory(to).map_err(Error::file("sync", to))
}

/// Copies a file, if it exists, and syncs the copy to the disk.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    match fs::copy(from, to) {
        Ok(_) => File::open(to)
            .and_then(|file| file.sync_all())
            .map_err(Error::file("sync", to)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::file("copy", from)(error)),
    }
}

/// Returns the newest archive of the instance with this name, if there is one.
///
/// # Errors
///
/// When the archive cannot be read.
pub fn archived(archive: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    let mut found = Vec::new();
    for entry in archive.read_dir()? {
        let entry = entry?;
        let file = entry.file_name();
        if file.to_string_lossy().starts_with(&format!("{name}-")) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found.pop())
}

#[cfg(test)]
mod tests;
