//! A new project, written completely or not at all.

use std::fs;
use std::io;
use std::path::Path;

use crate::edit::{formatted, with_kind};
use crate::files::write_all;
use crate::kind::{ProjectKind, written};
use crate::name::Name;
use crate::source::OktSource;
use crate::template::{self, MAIN, MANIFEST_PATH, PROJECT, README};

/// The end of the manifest: it keeps the project out of any workspace around its directory.
const ALONE: &str = "\n# A workspace of its own, wherever this directory is.\n[workspace]\n";

/// The name of a project, its first kind and its source of OKT.
pub(crate) struct Project {
    pub(crate) name: Name,
    pub(crate) kind: ProjectKind,
    pub(crate) okt: OktSource,
}

impl Project {
    /// Writes the project into a new directory.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), String> {
        write(directory, &self.files()?)
    }

    fn files(&self) -> Result<Vec<(String, String)>, String> {
        let mut names = vec![(template::NAME, self.name.to_string())];
        names.extend(self.kind.names());
        let mut files = self.kind.files();
        for (path, text) in PROJECT {
            let mut text = written((path, text), &names);
            match path {
                MANIFEST_PATH => text = self.with_okt(&text) + ALONE,
                README => {
                    if let Some(section) = self.kind.form.instead_of_running() {
                        text =
                            with_section(&text, "## Run it\n", &written((README, section), &names));
                    }
                    text.push('\n');
                    text.push_str(&written((README, self.kind.form.next_steps()), &names));
                }
                MAIN => {
                    text = with_kind(&text, &self.kind.module())?;
                    text = formatted(&text).unwrap_or(text);
                }
                _ => {}
            }
            files.push((path.to_owned(), text));
        }
        Ok(files)
    }

    /// Returns the manifest with this project's source of OKT.
    fn with_okt(&self, manifest: &str) -> String {
        let mut text = manifest.to_owned();
        for name in template::CRATES {
            let there = format!("path = \"../../{name}\"");
            text = text.replace(&there, &self.okt.of_crate(name));
        }
        match self.kind.form.feature() {
            Some(feature) => with_feature(&text, feature),
            None => text,
        }
    }
}

/// Returns a text with this section instead of the one that has this heading.
fn with_section(text: &str, heading: &str, section: &str) -> String {
    let Some((before, old)) = text.split_once(heading) else {
        return text.to_owned();
    };
    let after = old.find("\n## ").map_or("", |end| &old[end..]);
    format!("{before}{section}{after}")
}

/// Returns a manifest whose dependencies on OKT have this feature.
fn with_feature(manifest: &str, feature: &str) -> String {
    let with_it = |line: &str| {
        let mut names = template::CRATES.iter();
        if !names.any(|name| line.starts_with(&format!("{name} = "))) {
            return line.to_owned();
        }
        let old = line.trim_end_matches(" }");
        match old.strip_suffix(']') {
            Some(features) => format!("{features}, \"{feature}\"] }}"),
            None => format!("{old}, features = [\"{feature}\"] }}"),
        }
    };
    manifest.lines().map(|line| with_it(line) + "\n").collect()
}

/// Writes a directory of files; removes it again unless all files were written.
fn write(directory: &Path, files: &[(String, String)]) -> Result<(), String> {
    let shown = directory.display();
    match fs::create_dir(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(format!("{shown} is there already; nothing was changed"));
        }
        Err(error) => return Err(format!("cannot make the directory {shown}: {error}")),
    }
    let files = files.iter();
    let files: Vec<_> = files
        .map(|(path, text)| (directory.join(path), text.clone()))
        .collect();
    write_all(&files).inspect_err(|_| {
        // It is empty again. An error here must not hide why.
        let _ = fs::remove_dir(directory);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_cannot_be_written_completely_is_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("orders");
        let file = |path: &str| (path.to_owned(), String::new());
        let why = write(&directory, &[file("a"), file("a/b")]).expect_err("`a` is a file");
        assert!(why.starts_with("cannot write "), "{why}");
        assert!(!directory.exists());
        assert!(place.path().exists());
    }
}
