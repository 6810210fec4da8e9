//! Source files are reported word for word as rustc reports them.
//!
//! rustc's words are those that the compiler tests record.

#![cfg(feature = "source")]

use std::path::{Path, PathBuf};

use okt_syntax::source::{Cfg, Source};

/// Returns the wrong cases of the compiler tests: every file that rustc refuses.
fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/cases/fail");
    let folders = ["attributes", "rules", "together"].map(|name| folder.join(name));
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| folder.read_dir().expect("the cases are there"))
        .map(|entry| entry.expect("the cases can be listed").path())
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .collect();
    files.sort();
    assert!(files.len() > 20, "only {} cases", files.len());
    files
}

/// Returns the path of a case, as rustc prints it.
fn printed(path: &Path) -> String {
    let path = path.to_string_lossy();
    path[path.find("cases/fail").expect("a case")..].to_owned()
}

#[test]
fn every_mistake_is_reported_in_the_words_of_the_compiler() {
    let cfg = Cfg::new([]);
    let mut others = Vec::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).expect("a case can be read");
        let said = std::fs::read_to_string(path.with_extension("stderr")).expect("rustc's words");
        let source = Source::parse(&text, &cfg).expect("a case is Rust");
        let mistakes = source.mistakes();
        for mistake in mistakes {
            let rendered = mistake.render(&text, &printed(&path), false);
            if !said.contains(rendered.trim_end()) {
                others.push(rendered);
            }
        }
        let ours = |line: &&str| {
            line.starts_with("error: OKT") || line.starts_with("error[E0599]: no variant")
        };
        let count = said.lines().filter(ours).count();
        assert_eq!(mistakes.len(), count, "{}: {mistakes:#?}", path.display());
    }
    let others = others.join("\n\n");
    assert!(others.is_empty(), "rustc does not say\n{others}");
}
