//! Source files are reported word for word as rustc reports them.
//!
//! rustc's words are those that the compiler tests record.

#![cfg(feature = "source")]

#[path = "common/pages.rs"]
mod pages;

use std::path::{Path, PathBuf};

use okt_syntax::source::{Cfg, Source};
use pages::{pages, wrong_program};

/// Returns the wrong cases of the compiler tests, as rustc names them, with their text.
fn cases() -> Vec<(String, String)> {
    let pages = pages().into_iter();
    let mut cases: Vec<(String, String)> = pages
        .map(|(rule, page)| (format!("cases/fail/rules/{rule}.rs"), wrong_program(&page)))
        .collect();
    for folder in ["attributes", "together"] {
        for entry in in_ui_tests(&format!("cases/fail/{folder}"))
            .read_dir()
            .expect("the cases are there")
        {
            let path = entry.expect("the cases can be listed").path();
            if path.extension().is_some_and(|it| it == "rs") {
                let name = path.file_name().expect("a name").display();
                let text = std::fs::read_to_string(&path).expect("a case can be read");
                cases.push((format!("cases/fail/{folder}/{name}"), text));
            }
        }
    }
    cases
}

fn in_ui_tests(path: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../ui-tests").join(path)
}

#[test]
fn every_mistake_is_reported_in_the_words_of_the_compiler() {
    let cfg = Cfg::new([]);
    let mut others = Vec::new();
    for (name, text) in cases() {
        let stderr = in_ui_tests(&name).with_extension("stderr");
        let recorded = std::fs::read_to_string(stderr).expect("rustc's words");
        let source = Source::parse(&text, &cfg).expect("a case is Rust");
        let mistakes = source.mistakes();
        for mistake in mistakes {
            let rendered = mistake.render(&text, &name, false);
            if !recorded.contains(rendered.trim_end()) {
                others.push(rendered);
            }
        }
        let ours = |line: &&str| {
            line.starts_with("error: OKT") || line.starts_with("error[E0599]: no variant")
        };
        let count = recorded.lines().filter(ours).count();
        assert_eq!(mistakes.len(), count, "{name}: {mistakes:#?}");
    }
    let others = others.join("\n\n");
    assert!(others.is_empty(), "rustc does not report\n{others}");
}
