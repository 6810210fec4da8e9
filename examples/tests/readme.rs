//! The README and the docs match the code: the picture, the enum, the handler, the compiler's messages, the tests.

use std::path::{Path, PathBuf};

use okt::Lifecycle;

use okt_examples::notes_operator::NotesState;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// Returns the blocks of the README in this language.
fn blocks(language: &str) -> Vec<String> {
    let readme = read("README.md");
    let opening = format!("```{language}\n");
    let parts = readme.split(&opening).skip(1);
    parts
        .filter_map(|part| Some(part.split_once("```")?.0.to_owned()))
        .collect()
}

#[test]
fn the_picture_is_drawn_from_the_code() {
    assert_eq!(blocks("mermaid"), [NotesState::GRAPH.mermaid()]);
}

#[test]
fn the_code_is_that_of_the_examples() {
    let shown = blocks("rust");
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0], read("examples/src/bin/hello.rs"));
    assert!(
        read("examples/src/notes_operator.rs").contains(&shown[1]),
        "not in examples/src/notes_operator.rs:\n{}",
        shown[1]
    );
}

#[test]
fn the_readme_shows_the_message_of_the_compiler() {
    let said = read("ui-tests/cases/fail/together/three_mistakes.stderr");
    let shown = blocks("text");
    assert_eq!(
        shown.first().map(|block| block.trim_end()),
        Some(said.trim_end())
    );
}

/// Returns all the code of a directory.
fn code(directory: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.push_str(&code(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push_str(&std::fs::read_to_string(&path).expect("text"));
        }
    }
    all
}

#[test]
fn the_tests_that_the_migration_guide_names_exist() {
    let places = [
        "okt-core",
        "okt-runtime/src",
        "tests/tests",
        "examples/tests",
    ];
    let code: String = places.iter().map(|it| code(&root().join(it))).collect();
    let migration = read("docs/migration.md");
    let rows = migration.lines().filter(|line| line.starts_with("| A"));
    let mut named = 0;
    for row in rows {
        let last = row
            .trim_end_matches('|')
            .rsplit('|')
            .next()
            .expect("a cell");
        for test in last.split('`').skip(1).step_by(2) {
            named += 1;
            assert!(code.contains(&format!("fn {test}()")), "no test {test}");
        }
    }
    assert!(named > 22, "only {named} tests are named");
}
