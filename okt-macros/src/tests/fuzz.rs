//! Declarations with a token lost, doubled, swapped or replaced: whatever is written, nothing panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;

use super::{cases, items};
use crate::{expand_with, graph_of, shim, spec};

/// Words that mean something somewhere.
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
    for seed in 0..5000 {
        let mut dice = Dice(seed);
        let mut item = dice.pick(&items).clone();
        for _ in 0..=dice.below(3) {
            item = dice.mutate(item);
        }
        let expand = || {
            let args = item.clone().into_iter().skip(2).take(1).collect();
            let shim = shim::expand(&args, &item);
            expand_with(shim, graph_of);
            expand_with(item.clone(), graph_of);
            expand_with(item.clone(), spec::expand);
        };
        assert!(
            catch_unwind(AssertUnwindSafe(expand)).is_ok(),
            "seed {seed}: {item}"
        );
    }
}

/// A small generator (splitmix64): the same seed, the same declaration.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut roll = self.0;
        roll = (roll ^ (roll >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        roll = (roll ^ (roll >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let roll = usize::try_from((roll ^ (roll >> 31)) >> 33).expect("31 bits fit");
        roll % sides.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One change somewhere among the tokens or inside one of their groups.
    fn mutate(&mut self, tokens: TokenStream) -> TokenStream {
        let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
        if tokens.is_empty() {
            return tokens.into_iter().collect();
        }
        let at = self.below(tokens.len());
        if let TokenTree::Group(group) = &tokens[at]
            && self.below(8) > 0
        {
            let inner = self.mutate(group.stream());
            tokens[at] = Group::new(group.delimiter(), inner).into();
            return tokens.into_iter().collect();
        }
        match self.below(4) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at].clone()),
            2 => {
                let other = self.below(tokens.len());
                tokens.swap(at, other);
            }
            _ => {
                let word: TokenStream = self.pick(&WORDS).parse().expect("a word is tokens");
                tokens.splice(at..=at, word);
            }
        }
        tokens.into_iter().collect()
    }
}
