//! What the README shows is what there is: the picture, the enum, the handler, the compiler's words.

use std::path::{Path, PathBuf};

use okt_core::draw::mermaid;
use okt_examples::notes_operator::NotesState;
use okt_runtime::Lifecycle;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

/// The blocks of the README in this language.
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
    assert_eq!(blocks("mermaid"), [mermaid(NotesState::GRAPH)]);
}

#[test]
fn the_code_is_that_of_the_example() {
    let source = read("examples/src/notes_operator.rs");
    let shown = blocks("rust");
    assert_eq!(shown.len(), 2);
    for block in shown {
        let lines = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.trim().to_owned()).collect()
        };
        let (source, block) = (lines(&source), lines(&block));
        let found = source.windows(block.len()).any(|window| window == block);
        assert!(
            found,
            "not in examples/src/notes_operator.rs:\n{}",
            block.join("\n")
        );
    }
}

#[test]
fn the_compiler_says_what_the_readme_says_it_does() {
    let said = read("ui-tests/cases/fail/together/three_mistakes.stderr");
    let shown = blocks("text");
    assert_eq!(
        shown.first().map(|block| block.trim_end()),
        Some(said.trim_end())
    );
}
