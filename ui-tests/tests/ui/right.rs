//! A program with the right examples of the pages about the rules.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the program, with one module for each example.
pub(crate) fn program() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../okt-syntax/rules");
    let entries = fs::read_dir(folder).expect("the pages are there");
    let mut pages: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the pages can be listed").path())
        .filter(|page| !page.ends_with("README.md"))
        .collect();
    pages.sort();
    let mut program = "//! Right examples.\n#![allow(missing_docs, unexpected_cfgs)]\n".to_string();
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page can be read");
        let (_, right) = text.split_once("\n## Right\n").expect("a right example");
        let rule = page.file_stem().expect("a name").display();
        for (number, block) in right.split("```rust\n").skip(1).enumerate() {
            let (example, _) = block.split_once("```").expect("a block ends");
            let example = example
                .replace("#[lifecycle_graph]", "#[lifecycle_graph(crate(okt_core))]")
                .replace(
                    "#[lifecycle_graph(pass",
                    "#[lifecycle_graph(crate(okt_core), pass",
                );
            program += &format!(
                "\nmod {rule}_{number} {{\n    use okt_macros::lifecycle_graph;\n\n{example}}}\n"
            );
        }
    }
    program + "\nfn main() {}\n"
}
