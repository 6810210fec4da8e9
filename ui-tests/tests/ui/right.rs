//! A program with the right examples of the pages about the rules.

use crate::pages::{examples, pages};

/// Returns the program, with one module for each example.
pub(crate) fn program() -> String {
    let mut program = "//! Right examples.\n#![allow(missing_docs, unexpected_cfgs)]\n".to_string();
    for (rule, page) in pages() {
        let (_, right) = page.split_once("\n## Right\n").expect("a right example");
        for (number, example) in examples(right).iter().enumerate() {
            program += &format!(
                "\nmod {rule}_{number} {{\n    use okt_macros::lifecycle_graph;\n\n{example}}}\n"
            );
        }
    }
    program + "\nfn main() {}\n"
}
