//! The graph of the tests: valid, and with mistakes.

use okt_core::check::Rule;
use okt_syntax::source::{Cfg, Source};

use crate::source::{Name, edited, mentions, rules};

/// A valid graph with every attribute, and code that uses its states.
pub(crate) const LIFE: &str = include_str!("../../../ui-tests/cases/pass/every_attribute.rs");

/// Returns the graph in a file that does not import the trait `Lifecycle`.
pub(crate) fn without_trait() -> String {
    replaced(LIFE, " Lifecycle,", "")
}

/// Returns the graph with mistakes, one at a time.
pub(crate) fn wrong(life: &str) -> Vec<String> {
    let misspelt = |name: &Name| {
        let (start, end) = name.state.split_at(3);
        edited(life, &[(name.at.clone(), format!("{start}e{end}"))])
    };
    let attributes = mentions(life);
    let [first, .., last] = &attributes[..] else {
        panic!("the attributes name no states");
    };
    let wrong = [
        (Rule::UnknownTarget, misspelt(first)),
        (Rule::UnknownTarget, misspelt(last)),
        (
            Rule::DeadEnd,
            replaced(life, "    #[child(Filling)]\n    #[child(Gone)]\n", ""),
        ),
        (Rule::Option, replaced(life, "attempts = 5", "attempts = 0")),
    ];
    let wrong = wrong.map(|(rule, text)| {
        let rules = rules(&text);
        assert!(rules.contains(&rule), "{rule:?}: {rules:?}");
        text
    });
    wrong.into()
}

/// Returns the last line of the doc comment of a state; rust-analyzer completes the links in the others.
pub(crate) fn doc(name: &Name) -> String {
    let source = Source::parse(LIFE, &Cfg::new([])).expect("it is Rust");
    let docs = source.graphs(|graph| {
        let mut states = graph.states.iter();
        let state = states.find(|state| state.name == name.state)?;
        state.doc.lines().last().map(str::to_owned)
    });
    let doc = docs.into_iter().next().flatten();
    doc.expect("each state has a doc comment")
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from:?}");
    text.replacen(from, to, 1)
}
