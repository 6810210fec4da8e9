//! The files of a journal: the lock, the journal, and the new file that replaces it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::super::error::JournalError;
use crate::private;

/// A hook that runs before each step of a write, so that a test can make the step fail.
pub(in super::super) type Gate = Box<dyn FnMut(JournalStep) -> std::io::Result<()> + Send>;

/// The files of a journal.
pub(super) struct Files {
    directory: PathBuf,
    path: PathBuf,
    /// `None` before the first rewrite.
    journal: Option<File>,
    gate: Gate,
    /// Held, never read. The system releases the lock when the process ends, however it ends.
    _lock: File,
}

/// A step of a write. Each step may fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JournalStep {
    /// Create the new file.
    Create,
    /// Write lines. If a test makes this fail, half of the bytes are written.
    Write,
    /// Sync the written data to disk.
    Sync,
    /// Cut off the data of a failed write.
    Truncate,
    /// Rename the new file over the old one.
    Rename,
    /// Sync the file's name to disk.
    SyncDirectory,
}

impl Files {
    /// Locks the journal and reads it.
    pub(super) fn open(directory: &Path, mut gate: Gate) -> Result<(Self, Vec<u8>), JournalError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Open { path, source }
        };
        // The input of an action may hold secrets, so no other user may read the directory.
        private::directory(directory, 0o700, |parent| {
            gate(JournalStep::SyncDirectory)?;
            private::sync(parent)
        })
        .map_err(failed(directory))?;
        let lock_path = directory.join("lock");
        let Some(lock) = private::lock(&lock_path).map_err(failed(&lock_path))? else {
            return Err(JournalError::Locked(directory.to_owned()));
        };
        let path = directory.join("journal");
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed(&path)(source)),
        };
        let files = Self {
            directory: directory.to_owned(),
            path,
            journal: None,
            gate,
            _lock: lock,
        };
        Ok((files, content))
    }

    /// Returns the path of the journal.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line to the file, which has this length.
    pub(super) fn append(&mut self, length: u64, line: &[u8]) -> io::Result<()> {
        let Some(journal) = &mut self.journal else {
            return Err(io::Error::other("the journal was not rewritten"));
        };
        let gate = &mut self.gate;
        let written = write(journal, line, gate).and_then(|()| sync(journal, gate));
        if written.is_err() {
            // Best effort, so that an agent that starts now does not find the refused line.
            let _ = gate(JournalStep::Truncate)
                .and_then(|()| journal.set_len(length))
                .and_then(|()| journal.seek(SeekFrom::Start(length)))
                .and_then(|_| sync(journal, gate));
        }
        written
    }

    /// Replaces the file by one with this content.
    pub(super) fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        let Self {
            directory,
            path,
            journal,
            gate,
            _lock,
        } = self;
        *journal = None;
        let new = directory.join("journal.new");
        gate(JournalStep::Create)?;
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        write(&mut file, content, gate)?;
        sync(&file, gate)?;
        gate(JournalStep::Rename)?;
        fs::rename(&new, path)?;
        gate(JournalStep::SyncDirectory)?;
        private::sync(directory)?;
        *journal = Some(file);
        Ok(())
    }
}

fn write(file: &mut File, bytes: &[u8], gate: &mut Gate) -> io::Result<()> {
    if let Err(failed) = gate(JournalStep::Write) {
        let _ = file.write_all(&bytes[..bytes.len() / 2]);
        return Err(failed);
    }
    file.write_all(bytes)
}

fn sync(file: &File, gate: &mut Gate) -> io::Result<()> {
    gate(JournalStep::Sync)?;
    file.sync_data()
}
