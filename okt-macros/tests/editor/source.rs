//! A source text with a graph: where it names states, and what is wrong with it.

use std::ops::Range;

use okt_core::check::Rule;
use okt_syntax::source::{Cfg, Source};
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// The name of a state in a text.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) state: String,
    /// Its position, in bytes.
    pub(crate) at: Range<usize>,
    pub(crate) place: Place,
}

/// The place of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// The variant itself.
    Variant,
    /// An attribute of the enum or of a variant (e.g. `child`).
    Attribute(String),
    /// Other code.
    Code,
}

impl Name {
    pub(crate) fn is_variant(&self) -> bool {
        self.place == Place::Variant
    }

    pub(crate) fn is_in_attribute(&self) -> bool {
        matches!(self.place, Place::Attribute(_))
    }
}

/// Returns every name of a state in a text with one enum, in source order.
///
/// A type of conditions is no state, although it may have the name of one.
pub(crate) fn names(text: &str) -> Vec<Name> {
    let tokens: TokenStream = text.parse().expect("the text is Rust");
    let variants: Vec<Ident> = idents(body(tokens.clone()).stream())
        .into_iter()
        .filter_map(|(ident, attribute)| attribute.is_none().then_some(ident))
        .collect();
    let declared = |ident: &Ident| {
        let mut same = variants.iter().filter(|variant| *variant == ident);
        same.next().map(|variant| variant.span().byte_range())
    };
    let named = idents(tokens).into_iter().filter_map(|(ident, attribute)| {
        let variant = declared(&ident)?;
        let at = ident.span().byte_range();
        let place = match attribute {
            Some(word) if word == "condition" => return None,
            Some(word) => Place::Attribute(word),
            None if at == variant => Place::Variant,
            None => Place::Code,
        };
        let state = ident.to_string();
        Some(Name { state, at, place })
    });
    named.collect()
}

/// Returns every name of a state in an attribute.
pub(crate) fn mentions(text: &str) -> Vec<Name> {
    let named = names(text).into_iter();
    named.filter(Name::is_in_attribute).collect()
}

/// Returns the rules that a text breaks, with the positions that are wrong.
pub(crate) fn mistakes(text: &str) -> Vec<(Rule, Range<usize>)> {
    let source = Source::parse(text, &Cfg::new([])).expect("it is Rust");
    let mistakes = source.mistakes().iter();
    let rules = mistakes.filter_map(|mistake| Some((mistake.rule?, mistake.at.clone())));
    rules.collect()
}

/// Returns the rules that a text breaks.
pub(crate) fn rules(text: &str) -> Vec<Rule> {
    let mistakes = mistakes(text).into_iter();
    mistakes.map(|(rule, _)| rule).collect()
}

/// Returns whether the macro reports an error at a name in an attribute.
pub(crate) fn breaks_rule(text: &str, name: &Name) -> bool {
    let mut mistakes = mistakes(text).into_iter();
    name.is_in_attribute() && mistakes.any(|(_, at)| at == name.at)
}

/// Returns the text after some edits, in source order.
pub(crate) fn edited(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut text = text.to_owned();
    for (at, new) in edits.iter().rev() {
        text.replace_range(at.clone(), new);
    }
    text
}

/// Returns the body of the first enum.
fn body(tokens: TokenStream) -> Group {
    let from_enum = tokens.into_iter().skip_while(|token| !is_enum(token));
    let mut groups = from_enum.filter_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    });
    groups.next().expect("there is an enum")
}

fn is_enum(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(word) if word == "enum")
}

/// Returns every identifier, with the word of the attribute that it is in.
fn idents(tokens: TokenStream) -> Vec<(Ident, Option<String>)> {
    let mut found = Vec::new();
    let mut after_hash = false;
    for token in tokens {
        let is_hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        match token {
            TokenTree::Ident(ident) => found.push((ident, None)),
            TokenTree::Group(group) => {
                let inner = idents(group.stream());
                let word = inner.first().filter(|_| after_hash);
                let word = word.map(|(word, _)| word.to_string());
                let inner = inner.into_iter();
                found.extend(inner.map(|(ident, own)| (ident, own.or(word.clone()))));
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        after_hash = is_hash;
    }
    found
}
