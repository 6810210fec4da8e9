//! YAML, and files that a program writes, and writes again for its next version.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Writes a value as YAML.
///
/// # Errors
///
/// None is known for what a program prints.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| format!("cannot write YAML: {error}"))
}

/// A file that is written.
#[derive(Debug)]
pub(crate) struct GeneratedFile {
    /// Its path below the directory.
    path: String,
    /// Its content; a file without content is not written.
    text: String,
    /// Whether it is a beginning for people to go on with: it is written only if there is none.
    is_theirs: bool,
}

impl GeneratedFile {
    /// A file that has the mark of its writer.
    pub(crate) fn marked(path: &str, text: String) -> Self {
        Self {
            path: path.to_owned(),
            text,
            is_theirs: false,
        }
    }

    /// A file that belongs to people once it is written.
    pub(crate) fn beginning(path: &str, text: String) -> Self {
        Self {
            is_theirs: true,
            ..Self::marked(path, text)
        }
    }
}

/// What says in each file who wrote it, and where: a copy at another place belongs to people.
pub(crate) struct Writer {
    command: String,
}

impl Writer {
    /// A writer by the command of a program, such as `databases manifests --helm`.
    pub(crate) fn of(command: &str) -> Self {
        let command = command.to_owned();
        Self { command }
    }

    /// Returns what stands in a file of this path.
    pub(crate) fn mark(&self, path: &str) -> String {
        let command = &self.command;
        format!("{path}: written by `{command}`; changes are lost when it is written again.")
    }

    /// Returns a file in a language whose comments begin with `#`.
    pub(crate) fn commented(&self, path: &str, text: &str) -> GeneratedFile {
        let text = if text.is_empty() {
            String::new()
        } else {
            format!("# {}\n{text}", self.mark(path))
        };
        GeneratedFile::marked(path, text)
    }

    /// Writes files to a directory, and removes what this writer wrote another time and would write no longer: files
    /// without content, and those in the folder `all_of` that are not among these files. Returns what was done, in lines.
    ///
    /// # Errors
    ///
    /// Which file cannot be written, or is not one of this writer's; then none was written. Another directory helps.
    pub(crate) fn write(
        &self,
        to: &Path,
        files: &[GeneratedFile],
        all_of: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let (kept, files): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|file| file.is_theirs && to.join(&file.path).exists());
        let mut gone = Vec::new();
        for file in files.iter().filter(|file| !file.is_theirs) {
            let path = to.join(&file.path);
            let is_ours = self.has_written(&path, &file.path);
            if file.text.is_empty() {
                gone.extend(is_ours.then_some(path));
            } else if path.exists() && !is_ours && !is_empty(&path) {
                return Err(format!(
                    "{} is a file of yours, which is not overwritten: move it away, or name another directory",
                    path.display()
                ));
            }
        }
        gone.extend(
            all_of
                .into_iter()
                .flat_map(|folder| self.others(to, folder, &files)),
        );
        let mut unfinished = Unfinished(Vec::new());
        for file in files.into_iter().filter(|file| !file.text.is_empty()) {
            unfinished.write(to.join(&file.path), &file.text)?;
        }
        let mut done = unfinished.put()?;
        for path in gone {
            fs::remove_file(&path)
                .map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
            done.push(format!("removed {}", path.display()));
        }
        let kept = kept.iter().map(|file| to.join(&file.path));
        done.extend(kept.map(|path| format!("kept {}, which is yours", path.display())));
        Ok(done)
    }

    /// Returns what this writer wrote another time to a folder beside these files.
    fn others(&self, to: &Path, folder: &str, files: &[&GeneratedFile]) -> Vec<PathBuf> {
        let entries = fs::read_dir(to.join(folder))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let paths = names.map(|name| format!("{folder}/{name}"));
        let others = paths.filter(|path| files.iter().all(|file| file.path != *path));
        let of_it = others.filter(|path| self.has_written(&to.join(path), path));
        of_it.map(|path| to.join(path)).collect()
    }

    /// Returns whether this writer has written a file.
    fn has_written(&self, at: &Path, path: &str) -> bool {
        let text = fs::read(at).ok().filter(|_| at.is_file());
        text.is_some_and(|it| String::from_utf8_lossy(&it).contains(&self.mark(path)))
    }
}

/// Returns whether a file has no content, so that it belongs to nobody.
fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() == 0)
}

/// Files that are written beside their places: where one cannot be, all stay as they are.
struct Unfinished(Vec<PathBuf>);

impl Unfinished {
    /// Returns the place of a file until all are written.
    fn beside(path: &Path) -> PathBuf {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        beside.into()
    }

    fn write(&mut self, path: PathBuf, text: &str) -> Result<(), String> {
        let cannot = |error| format!("cannot write {}: {error}", path.display());
        if path.is_dir() {
            return Err(cannot(ErrorKind::IsADirectory.into()));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(cannot)?;
        }
        let beside = Self::beside(&path);
        let written = fs::write(&beside, text).map_err(cannot);
        self.0.push(path);
        written
    }

    /// Puts all files where they belong, and returns what was done, in lines.
    fn put(mut self) -> Result<Vec<String>, String> {
        let mut done = Vec::new();
        for path in &self.0 {
            let cannot = |error| format!("cannot write {}: {error}", path.display());
            fs::rename(Self::beside(path), path).map_err(cannot)?;
            done.push(format!("wrote {}", path.display()));
        }
        self.0.clear();
        Ok(done)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for path in &self.0 {
            // What failed is reported.
            let _ = fs::remove_file(Self::beside(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_writer_writes_no_longer_goes_and_what_others_wrote_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |path: &str| place.path().join(path);
        let writer = Writer::of("databases manifests --helm");
        let file = |path: &str, text: &str| writer.commented(path, text);
        let first = [
            file("values.yaml", "a: 1\n"),
            file("manifests/one.yaml", "b: 1\n"),
            file("manifests/two.yaml", "c: 1\n"),
            GeneratedFile::beginning("base.yaml", "d: 1\n".to_owned()),
        ];
        writer
            .write(place.path(), &first, Some("manifests"))
            .expect("it is written");
        for copy in ["values-production.yaml", "manifests/mine.yaml"] {
            fs::copy(at("values.yaml"), at(copy)).expect("a copy");
        }
        let second = [
            file("values.yaml", "a: 2\n"),
            file("manifests/one.yaml", ""),
            GeneratedFile::beginning("base.yaml", "d: 2\n".to_owned()),
        ];
        let done = writer
            .write(place.path(), &second, Some("manifests"))
            .expect("it is written");
        let root = place.path().display();
        let lines = [
            "wrote R/values.yaml",
            "removed R/manifests/one.yaml",
            "removed R/manifests/two.yaml",
            "kept R/base.yaml, which is yours",
        ];
        assert_eq!(done, lines.map(|line| line.replace('R', &root.to_string())));
        for copy in ["values-production.yaml", "manifests/mine.yaml"] {
            assert!(at(copy).exists(), "{copy}");
        }
    }

    #[test]
    fn nothing_is_another_file_where_one_cannot_be_written() {
        let place = tempfile::tempdir().expect("a directory");
        let writer = Writer::of("databases manifests --kustomize");
        let files = |text: &str| {
            ["base/a.yaml", "overlays/b.yaml"].map(|path| writer.commented(path, text))
        };
        fs::write(place.path().join("overlays"), "mine").expect("a file");
        let why = writer
            .write(place.path(), &files("a: 1\n"), None)
            .expect_err("it is a file");
        assert!(why.starts_with("cannot write "), "{why}");
        let left: Vec<_> = fs::read_dir(place.path().join("base"))
            .expect("a folder")
            .collect();
        assert!(left.is_empty(), "{left:?}");

        let other = tempfile::tempdir().expect("a directory");
        fs::create_dir(other.path().join("base")).expect("a folder");
        // As a program leaves it that ends before the file has content.
        fs::write(other.path().join("base/a.yaml"), "").expect("a file");
        writer
            .write(other.path(), &files("a: 1\n"), None)
            .expect("it belongs to nobody");
        fs::write(other.path().join("base/a.yaml"), "mine").expect("a file");
        let why = writer
            .write(other.path(), &files("a: 2\n"), None)
            .expect_err("it is mine");
        assert!(why.contains("is a file of yours"), "{why}");
    }
}
