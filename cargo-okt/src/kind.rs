//! A kind in a project: its files, with its names instead of those of the template.

use okt_core::names::snake;

use crate::name::{ApiGroup, KindName, is_identifier};
use crate::template::{self, File, Form};

/// The names of a kind, and how its operator is written.
pub(crate) struct ProjectKind {
    pub(crate) name: KindName,
    pub(crate) group: ApiGroup,
    pub(crate) form: Form,
}

/// The names of a template, and those that replace them.
pub(crate) type Names = Vec<(&'static str, String)>;

impl ProjectKind {
    /// Returns the module of the kind in its program: its name, unless Rust or the program means something else by it.
    pub(crate) fn module(&self) -> String {
        let module = snake(self.name.as_str());
        let is_taken = [
            "bin", "lib", "main", "std", "core", "alloc", "test", "okt", "tokio",
        ];
        if is_taken.contains(&module.as_str()) || !is_identifier(&module) {
            return format!("{module}_kind");
        }
        module
    }

    /// Returns what replaces the names of the template.
    pub(crate) fn names(&self) -> Names {
        let kind = self.name.as_str();
        let generated = template::GENERATED.iter();
        let mut names: Names = generated
            .map(|(module, graph)| (*module, snake(&format!("{kind}{graph}"))))
            .collect();
        names.extend([
            (template::MODULE, self.module()),
            (template::GROUP, self.group.to_string()),
            (template::LOWER_KIND, kind.to_lowercase()),
            (template::KIND, kind.to_owned()),
        ]);
        names
    }

    /// Returns the files of the kind: their paths in a project, and their texts.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let names = self.names();
        let files = self.form.files().iter();
        files
            .map(|(path, text)| (named(path, &names), written((*path, *text), &names)))
            .collect()
    }
}

/// Returns a file of a template with other names; code is formatted.
pub(crate) fn written((path, text): File, names: &Names) -> String {
    let text = named(text, names);
    if template::is_code(path) {
        // Names of other lengths change where lines break.
        crate::edit::formatted(&text).unwrap_or(text)
    } else {
        text
    }
}

/// Replaces the names of a template; if two names begin at one place, the first of the list.
fn named(text: &str, names: &Names) -> String {
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
