//! The journal: the agent's memory on disk. The agent writes each change before it acts on it.
//!
//! It is a file of lines. Each line is a checksum (CRC-32 in eight hexadecimal digits), a blank, and a
//! [`MemoryChange`] as JSON.
//! One write and one `fsync` add a line. From time to time the agent writes a new file with its present memory and
//! renames it over the old one.
//!
//! - A **torn last line** is one whose `fsync` never returned. Nothing followed from it, so the agent drops it.
//! - **Any other damaged line** is one that something may have followed from. The agent does not use the journal,
//!   because a guess could begin work twice.
//! - After a **failed write** it is unknown how much of it is on disk. Before the next line the agent rewrites the
//!   whole file.

mod files;

use std::path::{Path, PathBuf};

use self::files::Files;
pub(super) use self::files::Gate;
#[cfg(test)]
pub(super) use self::files::JournalStep;
use super::error::JournalError;
use super::memory::{AgentMemory, MemoryChange};

/// The size in bytes from which on the file is rewritten, once it has also doubled since the last rewrite.
const COMPACT_FROM: u64 = 1024 * 1024;

/// The journal of an agent. No other agent can open it while this value exists.
pub(super) struct Journal {
    files: Files,
    /// The length of the file, in bytes.
    length: u64,
    /// The length of the file after the last rewrite, in bytes.
    compact: u64,
    /// Whether the file may differ from the memory.
    suspect: bool,
}

/// The journal holds a line that no agent of this version has written. A retry does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{line}: {why}; see what was done, then move the file away", .file.display())]
pub(super) struct Damage {
    file: PathBuf,
    line: usize,
    why: String,
}

/// An opened journal.
pub(super) enum Opened {
    /// The journal with its memory. The first change rewrites the file.
    Usable(Journal, AgentMemory),
    /// The journal is damaged and must not be used. The value still holds the lock.
    Damaged(Journal, Damage),
}

impl Journal {
    /// Opens the journal in this directory, and creates a missing directory.
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

    /// Returns whether the next line needs a rewrite of the whole file.
    pub(super) fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// Returns the length of the file, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Appends a change to the memory. After this returns, a crash does not undo it.
    ///
    /// # Errors
    ///
    /// The change may not be on disk, so nothing may follow from it.
    pub(super) fn add(
        &mut self,
        memory: &AgentMemory,
        change: &MemoryChange,
    ) -> std::io::Result<()> {
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

    /// Rewrites the whole file.
    ///
    /// # Errors
    ///
    /// Either the old file or the new one is in place.
    pub(super) fn rewrite(&mut self, memory: &AgentMemory) -> std::io::Result<()> {
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

fn line(change: &MemoryChange) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_string(change)?;
    let sum = crc32fast::hash(json.as_bytes());
    Ok(format!("{sum:08x} {json}\n").into_bytes())
}

/// Rebuilds the memory from the lines of a journal.
pub(super) fn read(file: &Path, content: &[u8]) -> Result<AgentMemory, Damage> {
    let mut memory = AgentMemory::default();
    let mut rest = content;
    let mut number = 0;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (text, after) = (&rest[..end], &rest[end + 1..]);
        number += 1;
        match change(text) {
            Ok(change) => memory.apply(change),
            // A file system may extend a file before it writes the data, which then reads as zeros.
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

fn change(text: &[u8]) -> Result<MemoryChange, String> {
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
