//! The journal: what an agent must not forget, on disk before anything follows from it.
//!
//! A file of lines, each a checksum (CRC-32 in eight hexadecimal digits), a blank, and a [`Change`] as JSON.
//! A line is added by one write and one `fsync`; from time to time the file is written anew with what is still
//! remembered, and takes the place of the old one by a rename.
//!
//! - A **torn last line** is one whose `fsync` never returned, so nothing followed from it: it is cut off.
//! - **Any other damaged line** is one that something may have followed from: the journal is not used, since
//!   guessing could begin work twice.
//! - After a **write that failed** nobody knows what of it is on disk: before the next line the whole file is
//!   written anew.

mod files;

use std::path::{Path, PathBuf};

use self::files::Files;
pub(super) use self::files::Gate;
#[cfg(test)]
pub(super) use self::files::Step;
use super::error::JournalError;
use super::memory::{Change, Memory};

/// From which size on the file is written anew, if that makes it shorter by half at least, in bytes.
const COMPACT_FROM: u64 = 1024 * 1024;

/// The journal of an agent; no other one can open it as long as this one is there.
pub(super) struct Journal {
    files: Files,
    /// How long the file is.
    length: u64,
    /// How long it was when it was last written anew.
    compact: u64,
    /// What is on disk may not be what is remembered.
    suspect: bool,
}

/// Something stands in a journal that no agent has written; a retry does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{line}: {why}; see what was done, then move the file away", .file.display())]
pub(super) struct Damage {
    file: PathBuf,
    line: usize,
    why: String,
}

/// What a journal was found to be.
pub(super) enum Opened {
    /// What it remembers; written anew before the first line is added.
    Usable(Journal, Memory),
    /// Not to be used; the lock is held none the less.
    Damaged(Journal, Damage),
}

impl Journal {
    /// Opens the journal in this directory, which is made where it is missing.
    ///
    /// # Errors
    ///
    /// [`JournalError`].
    pub(super) fn open(directory: &Path, gate: Gate) -> Result<Opened, JournalError> {
        let (files, content) = Files::open(directory, gate)?;
        let journal = |files, length| Self {
            files,
            length,
            compact: 0,
            suspect: true,
        };
        Ok(match read(files.path(), &content) {
            Ok(memory) => Opened::Usable(journal(files, content.len() as u64), memory),
            Err(damage) => Opened::Damaged(journal(files, content.len() as u64), damage),
        })
    }

    /// Whether the next line needs the whole file to be written anew.
    pub(super) fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// How long the file is, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Writes a change that follows what is remembered; when this returns a crash no longer undoes it.
    ///
    /// # Errors
    ///
    /// It is not known to be on disk, and nothing may follow from it.
    pub(super) fn add(&mut self, memory: &Memory, change: &Change) -> std::io::Result<()> {
        let bloated = self.length > COMPACT_FROM.max(2 * self.compact);
        if self.suspect || bloated {
            self.rewrite(memory)?;
        }
        let line = line(change)?;
        if let Err(failed) = self.files.append(self.length, &line) {
            self.suspect = true;
            return Err(failed);
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Writes the whole file anew.
    ///
    /// # Errors
    ///
    /// The old file is still in its place, or the new one is.
    pub(super) fn rewrite(&mut self, memory: &Memory) -> std::io::Result<()> {
        self.suspect = true;
        let mut content = Vec::new();
        for change in memory.changes() {
            content.extend(line(&change)?);
        }
        self.files.replace(&content)?;
        self.length = content.len() as u64;
        self.compact = self.length;
        self.suspect = false;
        Ok(())
    }
}

fn line(change: &Change) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_string(change)?;
    let sum = crc32fast::hash(json.as_bytes());
    Ok(format!("{sum:08x} {json}\n").into_bytes())
}

/// What the lines of a journal lead to.
pub(super) fn read(file: &Path, content: &[u8]) -> Result<Memory, Damage> {
    let mut memory = Memory::default();
    let mut rest = content;
    let mut number = 0;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (text, after) = (&rest[..end], &rest[end + 1..]);
        number += 1;
        match change(text) {
            Ok(change) => memory.apply(change),
            // A file system may make a file longer before what is written is in it, which then reads as zeros.
            Err(_) if after.is_empty() && text.contains(&0) => break,
            Err(why) => {
                return Err(Damage {
                    file: file.to_owned(),
                    line: number,
                    why,
                });
            }
        }
        rest = after;
    }
    Ok(memory)
}

fn change(text: &[u8]) -> Result<Change, String> {
    let damaged = || "the line is damaged (its checksum is another one)".to_owned();
    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
    let (sum, json) = text.split_once(' ').ok_or_else(damaged)?;
    if sum != format!("{:08x}", crc32fast::hash(json.as_bytes())) {
        return Err(damaged());
    }
    serde_json::from_str(json).map_err(|error| format!("another version wrote this line: {error}"))
}

#[cfg(test)]
mod tests;
