//! Limits of what is parsed: the parser recurses, and a stack that overflows aborts the whole program.

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Span, TokenStream, TokenTree};

/// The most groups within each other: parentheses, brackets and braces.
const DEPTH: usize = 500;

/// The most tokens in a row without a comma or a semicolon: operators and types may nest without groups.
const RUN: usize = 100_000;

/// Returns where tokens exceed a limit; none if they do not.
pub(super) fn exceeded(tokens: &TokenStream) -> Option<Span> {
    // Without recursion, as it is to prevent one.
    let mut open: Vec<(IntoIter, usize)> = vec![(tokens.clone().into_iter(), 0)];
    while let Some((tokens, run)) = open.last_mut() {
        let Some(token) = tokens.next() else {
            open.pop();
            continue;
        };
        *run = match &token {
            TokenTree::Punct(sign) if matches!(sign.as_char(), ',' | ';') => 0,
            _ => *run + 1,
        };
        if *run > RUN || open.len() > DEPTH {
            return Some(token.span());
        }
        if let TokenTree::Group(group) = token {
            open.push((group.stream().into_iter(), 0));
        }
    }
    None
}
