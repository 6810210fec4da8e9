//! The page of each rule is true: its wrong examples give the messages that it shows, and its right ones give none.
//!
//! The wrong examples are also the compiler tests of the rule. `UPDATE_EXPECT=1` writes the messages into the pages.

#![cfg(feature = "source")]

#[path = "common/pages.rs"]
mod pages;

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use okt_core::check::Rule;
use okt_syntax::rules::page;
use okt_syntax::source::{Cfg, Mistake, Source};

/// A part of a page.
#[derive(PartialEq)]
enum Part<'p> {
    Prose(&'p str),
    /// The content of a code block, and its language.
    Code(&'p str, &'p str),
}

fn parts(page: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (index, text) in page.split("```").enumerate() {
        parts.push(if index % 2 == 0 {
            Part::Prose(text)
        } else {
            let (language, code) = text.split_once('\n').expect("a block begins with a line");
            Part::Code(language, code)
        });
    }
    parts
}

fn check(code: &str) -> Vec<Mistake> {
    let source = Source::parse(code, &Cfg::new([]));
    let source = source.unwrap_or_else(|error| panic!("{}: {code}", error.message));
    assert_ne!(source.count(), 0, "no graph: {code}");
    source.mistakes().to_vec()
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn code_of(rule: Rule) -> String {
    rule.to_string().to_lowercase()
}

#[test]
fn a_page_shows_the_messages_of_its_wrong_examples() {
    for rule in Rule::ALL {
        let page = page(rule);
        assert_ne!(check(&pages::wrong_program(page)), [], "{rule}");
        let mut written = String::new();
        let mut example = "";
        for part in parts(page) {
            match part {
                Part::Prose(text) => written.push_str(text),
                Part::Code("text", _) => {
                    let mistakes = check(example);
                    assert!(
                        !mistakes.is_empty(),
                        "{rule}: nothing is wrong with {example}"
                    );
                    assert!(
                        mistakes.iter().all(|it| it.rule == Some(rule)),
                        "{rule}: {mistakes:#?}"
                    );
                    let texts = mistakes
                        .iter()
                        .map(|it| it.render(example, "src/main.rs", false));
                    let text = texts.collect::<Vec<_>>().join("\n\n");
                    written.push_str(&format!("```text\n{text}\n```"));
                }
                Part::Code(language, code) => {
                    example = code;
                    written.push_str(&format!("```{language}\n{code}```"));
                }
            }
        }
        expect_file![root(&format!("rules/{}.md", code_of(rule)))].assert_eq(&written);
    }
}

#[test]
fn the_right_examples_of_a_page_have_no_mistakes() {
    for (rule, page) in pages::pages() {
        let (_, right) = page.split_once("\n## Right\n").expect("a heading");
        let examples = pages::examples(right);
        assert!(!examples.is_empty(), "{rule} shows no way to mend it");
        for example in examples {
            assert_eq!(check(&example), [], "{rule}: {example}");
        }
    }
}

#[test]
fn the_index_lists_every_page() {
    let mut index = String::from(
        "# The rules of a lifecycle graph\n\nEvery rule has a code, with which its message begins, and a page, which `cargo okt explain` prints too.\nOne build reports all mistakes of a graph, in source order, each on its own token.\nAn edge with wrong options still counts as an edge. Rules about reachability are skipped while a target is unknown.\n`okt_core::check` checks the same rules at run time, with the same messages.\n\n| rule | about |\n|---|---|\n",
    );
    for rule in Rule::ALL {
        let heading = page(rule).lines().next().unwrap_or_default();
        let title = heading
            .strip_prefix(&format!("# {rule}: "))
            .expect("a heading with the code");
        index.push_str(&format!("| [{rule}]({}.md) | {title} |\n", code_of(rule)));
    }
    expect_file![root("rules/README.md")].assert_eq(&index);
}
