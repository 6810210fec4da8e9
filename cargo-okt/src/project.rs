//! A new project: the template with other names, written completely or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use okt_core::names::snake;

use crate::name::{ApiGroup, KindName, Name};
use crate::source::OktSource;
use crate::template::{self, FILES};

/// The end of the manifest: it keeps the project out of any workspace around its directory.
const ALONE: &str = "\n# A workspace of its own, wherever this directory is.\n[workspace]\n";

/// The names of a project, and its source of OKT.
pub(crate) struct Project {
    pub(crate) name: Name,
    pub(crate) kind: KindName,
    pub(crate) group: ApiGroup,
    pub(crate) okt: OktSource,
}

impl Project {
    /// Writes the project into a new directory.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), String> {
        let templates = FILES.iter();
        let files: Vec<_> = templates
            .map(|(path, text)| (*path, self.file(path, text)))
            .collect();
        write(directory, &files)
    }

    /// Returns a file of the template with the names of this project.
    fn file(&self, path: &str, text: &str) -> String {
        if path == "Cargo.toml" {
            return self.manifest(text);
        }
        let text = self.named(text);
        if template::is_code(path) {
            // Names of other lengths change where lines break.
            formatted(&text).unwrap_or(text)
        } else {
            text
        }
    }

    fn manifest(&self, text: &str) -> String {
        let mut text = self.named(text);
        for name in template::CRATES {
            let there = format!("path = \"../../{name}\"");
            text = text.replace(&there, &self.okt.of_crate(name));
        }
        text + ALONE
    }

    /// Replaces the names of the template by those of this project; if two names begin at one place, the longer one.
    fn named(&self, text: &str) -> String {
        let kind = self.kind.as_str();
        let names = [
            (template::NAME, self.name.to_string()),
            (template::MODULE, snake(&format!("{kind}State"))),
            (template::GROUP, self.group.to_string()),
            (template::LOWER_KIND, kind.to_lowercase()),
            (template::KIND, kind.to_owned()),
        ];
        let (mut named, mut rest) = (String::new(), text);
        while let Some(letter) = rest.chars().next() {
            let found = names.iter().find(|(name, _)| rest.starts_with(name));
            // Do not search an inserted name: it may contain a name of the template.
            let taken = if let Some((name, own)) = found {
                named.push_str(own);
                name.len()
            } else {
                named.push(letter);
                letter.len_utf8()
            };
            rest = &rest[taken..];
        }
        named
    }
}

/// Writes a directory of files; removes it again unless all files were written.
fn write(directory: &Path, files: &[(&str, String)]) -> Result<(), String> {
    let shown = directory.display();
    match fs::create_dir(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(format!("{shown} is there already; nothing was changed"));
        }
        Err(error) => return Err(format!("cannot make the directory {shown}: {error}")),
    }
    let unfinished = Unfinished(directory.to_owned());
    for (path, text) in files {
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    unfinished.finish();
    Ok(())
}

/// A directory that this program created, and removes on drop unless it is finished.
struct Unfinished(PathBuf);

impl Unfinished {
    fn finish(mut self) {
        self.0 = PathBuf::new();
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // An error here must not hide why the directory is unfinished.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Formats the code with rustfmt; returns none if rustfmt is missing or fails.
fn formatted(code: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // rustfmt prints only after it has read everything.
    let read = rustfmt.stdin.take()?.write_all(code.as_bytes());
    let output = rustfmt.wait_with_output().ok()?;
    (read.is_ok() && output.status.success())
        .then(|| String::from_utf8(output.stdout).ok())
        .flatten()
        .filter(|code| !code.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_cannot_be_written_completely_is_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("orders");
        let files = [("a", String::new()), ("a/b", String::new())];
        let why = write(&directory, &files).expect_err("`a` is a file");
        assert!(why.starts_with("cannot write "), "{why}");
        assert!(!directory.exists());
        assert!(place.path().exists());
    }
}
