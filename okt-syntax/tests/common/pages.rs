//! The examples on the pages about the rules, as programs.

use std::fs;
use std::path::Path;

/// Returns each rule (e.g. `okt001`) with its page.
pub(crate) fn pages() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../okt-syntax/rules");
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).expect("the pages are there") {
        let path = entry.expect("the pages can be listed").path();
        let name = path.file_stem().expect("a page has a name").display();
        let (rule, page) = (name.to_string(), fs::read_to_string(&path));
        pages.push((rule, page.expect("a page can be read")));
    }
    pages.retain(|(rule, _)| rule != "README");
    pages.sort();
    pages
}

/// Returns the examples of a part of a page; they name `okt_core`, so that no other crate is needed to compile them.
pub(crate) fn examples(part: &str) -> Vec<String> {
    let blocks = part.split("```rust\n").skip(1);
    let examples = blocks.map(|block| {
        let (example, _) = block.split_once("```").expect("a block ends");
        example
            .replace("#[lifecycle_graph]", "#[lifecycle_graph(crate(okt_core))]")
            .replace(
                "#[lifecycle_graph(pass",
                "#[lifecycle_graph(crate(okt_core), pass",
            )
    });
    examples.collect()
}

/// Returns the wrong examples of a page as a program, which the compiler refuses.
pub(crate) fn wrong_program(page: &str) -> String {
    let (wrong, _) = page.split_once("\n## Right\n").expect("a right example");
    let examples = examples(wrong);
    assert!(!examples.is_empty(), "no wrong example: {page}");
    format!(
        "//! The wrong examples of a page.\nuse okt_macros::lifecycle_graph;\n\n{}\nfn main() {{}}\n",
        examples.join("\n")
    )
}
