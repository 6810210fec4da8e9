//! This file names the files of a data directory and makes their changes survive a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The database.
pub(super) const DATABASE: &str = "notes.db";
/// Held by the process that serves the directory.
pub(super) const LOCK: &str = "notes.lock";
/// Says how to reach that process.
pub(super) const ANNOUNCEMENT: &str = "notes.json";
/// What that process printed.
pub(super) const LOG: &str = "notes.log";
/// Finished backups, and unfinished ones that end in [`PARTIAL`].
pub(super) const BACKUPS: &str = "backups";
/// How an unfinished file ends.
pub(super) const PARTIAL: &str = "partial";

/// The longest name made of an id, so that it fits a directory entry of 255 bytes with what is put around it.
const LONGEST: usize = 150;

/// What an id must be, for a message.
pub(super) const NAMEABLE: &str =
    "use 1 to 150 characters, where all but letters, digits, dots and hyphens count three times";

/// A file name for an id (e.g. `7c1e-41_2f12` for `7c1e-41/12`), or `None` for one that is empty or too long.
///
/// Different ids have different names: what is no letter, digit, dot or hyphen becomes `_` and its two hex digits,
/// the underscore itself included.
pub(super) fn name_of(id: &str) -> Option<String> {
    use std::fmt::Write as _;

    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => name.push(char::from(byte)),
            _ => write!(name, "_{byte:02x}").expect("writing to a String cannot fail"),
        }
    }
    // The two names that mean a directory.
    let usable = !matches!(name.as_str(), "" | "." | "..") && name.len() <= LONGEST;
    usable.then_some(name)
}

/// Makes a file appear whole or not at all, also when the machine stops in the middle.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = path.with_added_extension(PARTIAL);
    let mut file = File::create(&partial)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    sync_parent(path)
}

/// Makes the renames and removals in a directory last.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Makes the appearance, or the removal, of this entry last.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_ids_have_different_names_without_a_path_in_them() {
        let names: Vec<_> = ["a/b", "a_b", "a_2fb", "A/b", "a.b", "../b"]
            .iter()
            .map(|id| name_of(id))
            .collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!name.as_deref().expect("a usable id").contains('/'));
            assert!(!names[..index].contains(name), "{name:?} appears twice");
        }
    }

    #[test]
    fn an_id_that_names_a_directory_or_fits_no_entry_is_refused() {
        for id in [
            "",
            ".",
            "..",
            &"x".repeat(LONGEST + 1),
            &"/".repeat(LONGEST / 2),
        ] {
            assert_eq!(name_of(id), None, "{id}");
        }
    }
}
