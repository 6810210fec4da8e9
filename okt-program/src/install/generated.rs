//! YAML, and files that a program writes, and writes again for its next version.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

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

/// What says in each file who wrote it.
pub(crate) struct Writer {
    mark: String,
}

impl Writer {
    /// A writer by the command of a program, such as `databases manifests --helm`.
    pub(crate) fn of(command: &str) -> Self {
        Self {
            mark: format!("Written by `{command}`; changes are lost when it is written again."),
        }
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Returns a file in a language whose comments begin with `#`.
    pub(crate) fn commented(&self, path: &str, text: &str) -> GeneratedFile {
        let text = if text.is_empty() {
            String::new()
        } else {
            format!("# {}\n{text}", self.mark)
        };
        GeneratedFile::marked(path, text)
    }

    /// Writes files to a directory, and returns their paths.
    ///
    /// # Errors
    ///
    /// Which file cannot be written, or is not one of this writer's; then none was written. Another directory helps.
    pub(crate) fn write(&self, to: &Path, files: &[GeneratedFile]) -> Result<Vec<String>, String> {
        let files: Vec<_> = files.iter().filter(|it| !it.text.is_empty()).collect();
        for file in files.iter().filter(|file| !file.is_theirs) {
            let path = to.join(&file.path);
            if !self.may_replace(&path)? {
                return Err(format!(
                    "{} is a file of yours, which is not overwritten: move it away, or name another directory",
                    path.display()
                ));
            }
        }
        let mut written = Vec::new();
        for file in &files {
            let path = to.join(&file.path);
            let cannot = |error| format!("cannot write {}: {error}", path.display());
            if file.is_theirs && path.exists() {
                continue;
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(cannot)?;
            }
            fs::write(&path, &file.text).map_err(cannot)?;
            written.push(path.display().to_string());
        }
        self.remove_others(to, &files)?;
        Ok(written)
    }

    /// Removes what this writer wrote another time beside these files.
    fn remove_others(&self, to: &Path, files: &[&GeneratedFile]) -> Result<(), String> {
        let paths: BTreeSet<_> = files.iter().map(|file| to.join(&file.path)).collect();
        let folders: BTreeSet<_> = paths.iter().filter_map(|path| path.parent()).collect();
        for folder in folders {
            let cannot = |error| format!("cannot read {}: {error}", folder.display());
            for entry in fs::read_dir(folder).map_err(cannot)? {
                let path = entry.map_err(cannot)?.path();
                if path.is_file() && !paths.contains(&path) && self.may_replace(&path)? {
                    fs::remove_file(&path)
                        .map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    /// Whether a file is missing, or is one of this writer's.
    fn may_replace(&self, path: &Path) -> Result<bool, String> {
        match fs::read(path) {
            Ok(content) => Ok(String::from_utf8_lossy(&content).contains(&self.mark)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }
}
