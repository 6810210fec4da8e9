//! Who runs below the agent, noted down for the agent that comes after a kill.
//!
//! Nothing here waits for the disk: a note is of use only while its process runs, so only as long as the kernel does,
//! and the kernel keeps what was written, whoever is killed.
//! What an action has started is noted in the agent's journal instead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::private;

/// A directory of notes.
pub(crate) struct Notes {
    directory: PathBuf,
}

impl Notes {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        // Signals are sent to those who stand here.
        private::directory(directory, 0o700, private::sync)?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// Writes it whole or not at all.
    pub(crate) fn write(&self, name: &str, note: &impl Serialize) -> io::Result<()> {
        let (file, new) = (self.file(name), self.directory.join(format!("{name}.new")));
        fs::write(&new, serde_json::to_vec(note)?)?;
        fs::rename(new, file)
    }

    /// What stands there; a note that cannot be read is of a machine that has failed since, with all that ran.
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
