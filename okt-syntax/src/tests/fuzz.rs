//! Expands declarations with a token removed, doubled, swapped or replaced: the macros never panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use okt_fuzz::{Dice, check};
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;

use super::{cases, items};
use crate::{expand_with, graph_of, shim, spec};

/// Tokens that have a meaning somewhere in a declaration.
const WORDS: [&str; 16] = [
    "entry",
    "rest",
    "leaf",
    "child",
    "trigger",
    "after",
    "on_error",
    "=",
    ",",
    "::",
    "\"30m\"",
    "7",
    "End",
    "crate",
    "r#loop",
    "(attempts = 0)",
];

#[test]
fn no_declaration_makes_the_macros_panic() {
    let items: Vec<TokenStream> = cases()
        .iter()
        .flat_map(|case| items(case))
        .map(|item| item.to_token_stream())
        .filter(|item| item.to_string().len() < 2000)
        .collect();
    check(5000, |dice| {
        let mut item = dice.pick(&items).clone();
        for _ in 0..=dice.below(3) {
            item = mutate(dice, item);
        }
        let expand = || {
            let args = item.clone().into_iter().skip(2).take(1).collect();
            let shim = shim::expand(&args, &item);
            expand_with(shim, graph_of);
            expand_with(item.clone(), graph_of);
            expand_with(item.clone(), spec::expand);
            #[cfg(feature = "source")]
            from_source(&item.to_string());
        };
        assert!(catch_unwind(AssertUnwindSafe(expand)).is_ok(), "{item}");
    });
}

/// Checks an item as a source file, and compares its graphs with a lock file of them.
#[cfg(feature = "source")]
fn from_source(item: &str) {
    use crate::lock::{compare, with_locked, write};
    use crate::source::{Cfg, Source};

    // The attribute is the first word of some mutants only.
    let text = format!("#[lifecycle_graph]\n{item}");
    match Source::parse(&text, &Cfg::new(["unix"])) {
        Ok(source) => {
            for mistake in source.mistakes() {
                mistake.render(&text, "src/main.rs", false);
            }
            with_locked(&source, |graphs| {
                let _ = compare(&write("", graphs), graphs);
            });
        }
        Err(mistake) => {
            mistake.render(&text, "src/main.rs", true);
        }
    }
}

/// Makes one change among the tokens or inside one of their groups.
fn mutate(dice: &mut Dice, tokens: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    if tokens.is_empty() {
        return tokens.into_iter().collect();
    }
    let at = dice.below(tokens.len());
    if let TokenTree::Group(group) = &tokens[at]
        && dice.below(8) > 0
    {
        let inner = mutate(dice, group.stream());
        tokens[at] = Group::new(group.delimiter(), inner).into();
        return tokens.into_iter().collect();
    }
    match dice.below(4) {
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, tokens[at].clone()),
        2 => {
            let other = dice.below(tokens.len());
            tokens.swap(at, other);
        }
        _ => {
            let word: TokenStream = dice.pick(&WORDS).parse().expect("a word is tokens");
            tokens.splice(at..=at, word);
        }
    }
    tokens.into_iter().collect()
}
