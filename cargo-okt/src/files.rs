//! Writes several files completely or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes files in this order; on an error, everything is as before.
pub(crate) fn write_all<'f>(
    files: impl IntoIterator<Item = &'f (PathBuf, String)>,
) -> Result<(), String> {
    let mut undo = Undo(Vec::new());
    for (path, text) in files {
        let old = fs::read(path).ok();
        let parent = path.parent().unwrap_or(Path::new("."));
        if old.is_none() {
            undo.directories_of(parent);
        }
        undo.0.push((path.clone(), old));
        fs::create_dir_all(parent)
            .and_then(|()| replace(path, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    undo.0.clear();
    Ok(())
}

/// Writes a file so that it always has its old text or the new one, wherever this program ends.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".okt-new");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path).inspect_err(|_| {
        // What failed is reported.
        let _ = fs::remove_file(&unfinished);
    })
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
