//! Notes about the processes that the agent runs, for the agent that starts after a kill.
//!
//! Nothing is synced to disk: a note is useful only while its process runs, so only as long as the kernel runs, and the
//! kernel keeps written data when a process is killed.
//! The processes of an action are noted in the agent's journal instead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use okt_agent::private;

/// A directory of notes.
pub(crate) struct Notes {
    directory: PathBuf,
}

impl Notes {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        // Signals are sent to the processes in these notes, so no other user may write them.
        private::directory(directory, 0o700, private::sync)?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// Writes a note as a whole or not at all.
    pub(crate) fn write(&self, name: &str, note: &impl Serialize) -> io::Result<()> {
        let (file, new) = (self.file(name), self.directory.join(format!("{name}.new")));
        fs::write(&new, serde_json::to_vec(note)?)?;
        fs::rename(new, file)
    }

    /// Reads a note. One that cannot be read was written before a crash of the machine, which ended its process too.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = fs::read(self.file(name)).ok()?;
        let note = serde_json::from_slice(&text);
        note.inspect_err(|error| tracing::warn!(name, %error, "a note cannot be read"))
            .ok()
    }

    pub(crate) fn remove(&self, name: &str) {
        match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(name, %error, "cannot remove a note");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
