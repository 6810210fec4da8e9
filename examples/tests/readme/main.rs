//! The README and the docs match the code: the picture, the enum, the handler, the compiler's messages, the tests.

#[expect(unreachable_pub, reason = "as the docs show it")]
mod databases;
#[expect(unreachable_pub, reason = "as the docs show it")]
mod lifecycle;
#[expect(dead_code, unreachable_pub, reason = "as the docs show it")]
mod site;
#[expect(clippy::unused_async, reason = "clients of services that do not exist")]
mod surroundings;
mod transcript;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use okt::Lifecycle;
use serde_json::Value;

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

/// Checks that a page shows the items of a file, in one block, and its tests in another.
fn is_shown(page: &str, file: &str) {
    let text = read(file);
    let page_text = read(page);
    // The programs of the pages have their surroundings elsewhere.
    let code = text.split_once("use super::surroundings::*;\n\n");
    let code = code.map_or_else(|| text.split_once('\n').expect("a comment").1, |it| it.1);
    let mut blocks = page_text.split("```rust\n").skip(1);
    let mut blocks = blocks
        .by_ref()
        .filter_map(|part| Some(part.split_once("```")?.0));
    for part in code.split("\n#[tokio::test]\n") {
        assert!(
            blocks.any(|block| block.trim_start_matches("#[tokio::test]\n").trim() == part.trim()),
            "{page} does not show {file}:\n{part}"
        );
    }
}

#[test]
fn the_code_of_the_docs_compiles() {
    is_shown("docs/lifecycles.md", "examples/tests/readme/lifecycle.rs");
    is_shown("docs/observing.md", "examples/tests/readme/databases.rs");
    is_shown("docs/from-kube-rs.md", "examples/tests/readme/site.rs");
}

/// Returns the paths of all fields of a value.
fn fields(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Object(all) => (all.iter())
            .flat_map(|(name, value)| {
                let path = format!("{path}.{name}");
                let below = fields(value, &path);
                std::iter::once(path).chain(below)
            })
            .collect(),
        Value::Array(all) => all.iter().flat_map(|it| fields(it, path)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_status_in_the_docs_has_the_fields_of_a_status() {
    let page = read("docs/lifecycles.md");
    let shown = page.rsplit("```yaml\n").next().expect("a block");
    let shown = shown.split("```").next().expect("its end");
    let shown: Value = serde_saphyr::from_str(shown).expect("YAML");
    let status: okt::Status<lifecycle::DatabaseState> =
        serde_json::from_value(shown["status"].clone()).expect("a status");
    let stored = serde_json::to_value(&status).expect("JSON");
    let stored: BTreeSet<String> = fields(&stored, "").into_iter().collect();
    let shown: BTreeSet<String> = fields(&shown["status"], "").into_iter().collect();
    let unknown: Vec<_> = shown.difference(&stored).collect();
    assert_eq!(unknown, [""; 0]);
    assert!(shown.contains(".lifecycle.history.cause"), "{shown:?}");
}

#[test]
fn the_readme_shows_the_message_of_the_compiler() {
    let printed = read("ui-tests/cases/fail/together/three_mistakes.stderr");
    let shown = blocks("text");
    assert_eq!(
        shown.first().map(|block| block.trim_end()),
        Some(printed.trim_end())
    );
}

/// Returns the texts of all files of code in a directory.
fn code_files(directory: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(code_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push(std::fs::read_to_string(&path).expect("text"));
        }
    }
    all
}

/// Returns the words in backquotes in the first cells of the tables below headings that begin with `heading`.
fn first_cells(page: &str, heading: &str) -> BTreeSet<String> {
    let sections = page.split("\n## ");
    let rows = sections
        .filter(|section| section.starts_with(heading))
        .flat_map(|section| section.lines().filter(|line| line.starts_with("| `")));
    rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned()))
        .collect()
}

/// Returns the texts in quotes that follow `before` in code, without comments.
fn texts_after(code: &str, before: &str) -> BTreeSet<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code: Vec<&str> = code.lines().filter(is_code).collect();
    let code = code.join("\n");
    let parts = code.split(before).skip(1);
    parts
        .filter_map(|part| part.trim_start().strip_prefix('"'))
        .filter_map(|part| Some(part.split('"').next()?.to_owned()))
        .collect()
}

/// The crates that an operator is made of, beside the core.
const RUNTIME: [&str; 7] = [
    "okt-runtime/src",
    "okt-program/src",
    "okt-reach/src",
    "okt-sharding/src",
    "okt-telemetry/src",
    "okt-view/src",
    "okt-wire/src",
];

/// Returns the code of the runtime, each file up to its tests.
fn runtime() -> String {
    let files: Vec<String> = (RUNTIME.iter())
        .flat_map(|crate_| code_files(&root().join(crate_)))
        .collect();
    let product = |text: &String| text.split("#[cfg(test)]\nmod").next().map(str::to_owned);
    files.iter().filter_map(product).collect()
}

#[test]
fn the_docs_list_every_reason_and_no_other() {
    let page = read("docs/conditions.md");
    let runtime = runtime();
    let mut reasons: BTreeSet<String> = okt::reasons::ALL
        .iter()
        .chain(okt::reasons::resources::ALL)
        .map(|reason| (*reason).to_owned())
        .collect();
    reasons.extend(texts_after(&runtime, "Failure::retry("));
    reasons.extend(texts_after(&runtime, "Failure::permanent("));
    assert!(reasons.contains("AgentUnreachable"), "{reasons:?}");
    assert_eq!(first_cells(&page, "Reasons of"), reasons);
}

#[test]
fn the_docs_list_every_annotation_and_label_and_no_other() {
    let page = read("docs/conditions.md");
    let names = texts_after(&runtime(), ": &str =").into_iter();
    let names: BTreeSet<_> = names.filter(|name| name.starts_with("okt.dev/")).collect();
    assert!(names.contains("okt.dev/paused"), "{names:?}");
    assert_eq!(first_cells(&page, "Annotations"), names);
}

#[test]
fn the_docs_list_every_attribute_of_a_graph_and_no_other() {
    let page = read("okt-macros/src/lib.rs").replace("//! ", "");
    // `child` of `#[child(To)]`.
    let word = |it: &String| {
        let plain = it.trim_start_matches("#[").split(['(', ']']).next();
        plain.unwrap_or_default().to_owned()
    };
    let page = page.replace("\n# ", "\n## ");
    let listed: BTreeSet<String> = first_cells(&page, "Attributes").iter().map(word).collect();
    let code = read("okt-syntax/src/attr/mod.rs");
    let lists = code.split("pub(crate) const WORDS").skip(1);
    let lists = lists.filter_map(|rest| rest.split_once("= [")?.1.split_once("];"));
    let words = lists.flat_map(|(list, _)| list.split('"').skip(1).step_by(2));
    let words: BTreeSet<String> = words.map(str::to_owned).collect();
    assert!(words.contains("child"), "{words:?}");
    assert_eq!(listed, words);
}

#[test]
fn the_docs_list_every_reason_of_an_event_and_no_other() {
    let page = read("docs/monitoring.md");
    let events = page
        .split("\n## ")
        .find(|it| it.starts_with("Kubernetes Events"));
    let rows = events.expect("a section").lines();
    let cells = rows.filter_map(|row| Some(row.strip_suffix(" |")?.rsplit_once("| ")?.1));
    // `Entered` of `Entered<State>`.
    let names = cells.filter_map(|cell| cell.strip_prefix('`')?.split(['`', '<']).next());
    let listed: BTreeSet<String> = names.map(str::to_owned).collect();
    let code = read("okt-telemetry/src/kube_events.rs");
    let mut reasons = texts_after(&code, "Event::warning(");
    reasons.extend(texts_after(&code, "Event::normal("));
    let of_state = texts_after(&code, "format!(").into_iter();
    let of_state = of_state.filter_map(|it| it.strip_suffix("{to}").map(str::to_owned));
    reasons.extend(of_state.filter(|it| it.chars().all(char::is_alphabetic)));
    assert!(reasons.contains("Abandoned"), "{reasons:?}");
    assert_eq!(listed, reasons);
}
