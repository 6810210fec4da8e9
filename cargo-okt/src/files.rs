//! Reads source files, and writes several files completely or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// The longest source file, in bytes: some files have no end.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Reads a text.
///
/// # Errors
///
/// Also if it is longer than 64 MiB.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    if File::open(path)?
        .take(LIMIT + 1)
        .read_to_string(&mut text)? as u64
        > LIMIT
    {
        return Err(io::Error::other(format!("longer than {LIMIT} bytes")));
    }
    Ok(text)
}

/// Writes files; on an error, everything is as before.
///
/// A file keeps its permissions, and a symbolic link leads where it did.
pub(crate) fn write_all<'f>(
    files: impl IntoIterator<Item = &'f (PathBuf, String)>,
) -> Result<(), String> {
    let mut undo = Undo(Vec::new());
    let mut written = Vec::new();
    // What can fail for the lack of space or rights fails here, before any file is another one.
    for (path, text) in files {
        let new = write(path, text, &mut undo);
        written.push(new.map_err(|error| format!("cannot write {}: {error}", path.display()))?);
    }
    for (file, path) in written {
        let old = fs::read(&path).ok();
        let put = file.persist(&path);
        put.map_err(|error| format!("cannot write {}: {}", path.display(), error.error))?;
        undo.0.push((path, old));
    }
    undo.0.clear();
    Ok(())
}

/// Writes a text beside its place. Returns that file, which is removed on drop, and its place.
fn write(path: &Path, text: &str, undo: &mut Undo) -> io::Result<(NamedTempFile, PathBuf)> {
    let there = path.canonicalize().ok();
    let old = there.as_ref().map(fs::metadata).transpose()?;
    let old = old.map(|it| it.permissions());
    if old.as_ref().is_some_and(Permissions::readonly) {
        return Err(io::Error::other("it is read-only"));
    }
    let path = there.unwrap_or_else(|| path.to_owned());
    let parent = path.parent().filter(|it| *it != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    undo.directories_of(parent);
    fs::create_dir_all(parent)?;
    let mut file = Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old)?;
    }
    file.write_all(text.as_bytes())?;
    Ok((file, path))
}

/// Files with their former content, which they get again on drop; a file without content is removed, or a directory.
struct Undo(Vec<(PathBuf, Option<Vec<u8>>)>);

impl Undo {
    /// Remembers the directories that are not there yet.
    fn directories_of(&mut self, directory: &Path) {
        let missing = directory.ancestors().take_while(|it| !it.exists());
        let mut missing: Vec<_> = missing.map(|it| (it.to_owned(), None)).collect();
        missing.reverse();
        self.0.extend(missing);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for (path, old) in self.0.drain(..).rev() {
            // An error here must not hide why the change failed.
            let _ = match old {
                Some(old) => fs::write(&path, old),
                None if path.is_dir() => fs::remove_dir(&path),
                None => fs::remove_file(&path),
            };
        }
    }
}
