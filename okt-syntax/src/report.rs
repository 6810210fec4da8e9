//! Collects the mistakes of one declaration and reports them together, in source order.

use okt_core::check::Rule;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};

/// A token of the declaration that a message can point at.
///
/// Tokens are numbered as they are read, which is source order; rustc has no order of spans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) span: Span,
    order: usize,
}

impl Spot {
    /// Returns the position of the token among those that were read: source order.
    pub(crate) fn order(self) -> usize {
        self.order
    }
}

impl PartialEq for Spot {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Spot {}

/// The mistakes so far.
///
/// Readers do not stop at the first mistake: they report it here and continue with what they understand.
/// Call [`ErrorReport::finish`]: a report that is dropped without it panics, so that no mistake is lost.
#[derive(Debug)]
pub(crate) struct ErrorReport {
    mistakes: Vec<ReportedMistake>,
    spots: usize,
    finished: bool,
}

/// One mistake.
#[derive(Debug)]
pub(crate) struct ReportedMistake {
    pub(crate) spot: Spot,
    /// The rule of a graph that is broken, if it is one.
    pub(crate) rule: Option<Rule>,
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) help: String,
}

impl ReportedMistake {
    /// Returns the text of the error, as the compiler prints it.
    pub(crate) fn text(&self) -> String {
        let Self { message, help, .. } = self;
        match self.rule {
            Some(rule) => rule.text(message, help),
            None => format!("{message}\nhelp: {help}"),
        }
    }

    /// Returns the error as code, with the span of the token that is wrong.
    ///
    /// rustc reports it from the first token of the code to the last, and rust-analyzer at the word `compile_error`. An
    /// editor finds each word with this span at the wrong token, so `core` does not have it.
    fn to_compile_error(&self) -> TokenStream {
        let text = self.text();
        let core = Ident::new("core", Span::call_site());
        quote_spanned!(self.spot.span=> ::#core::compile_error! { #text })
    }
}

impl ErrorReport {
    pub(crate) fn new() -> Self {
        Self {
            mistakes: Vec::new(),
            spots: 0,
            finished: false,
        }
    }

    /// Numbers the next token in source order.
    pub(crate) fn spot(&mut self, span: Span) -> Spot {
        self.spots += 1;
        Spot {
            span,
            order: self.spots,
        }
    }

    /// Numbers the first of some tokens: on stable Rust a message points at one token.
    pub(crate) fn spot_of(&mut self, tokens: &impl ToTokens) -> Spot {
        let first = tokens.to_token_stream().into_iter().next();
        self.spot(first.map_or_else(Span::call_site, |token| token.span()))
    }

    /// Reports a broken rule (e.g. `OKT005: dead end: ..`) or, without a rule, another mistake, and how to mend it.
    pub(crate) fn error(
        &mut self,
        rule: impl Into<Option<Rule>>,
        spot: Spot,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.mistakes.push(ReportedMistake {
            spot,
            rule: rule.into(),
            message: message.into(),
            help: help.into(),
        });
    }

    /// Reports a bad option of an attribute, and how to mend it.
    pub(crate) fn bad_option(
        &mut self,
        spot: Spot,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.error(Rule::Option, spot, message, help);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Returns the mistakes as `compile_error!`s, in source order; empty if there are none.
    pub(crate) fn finish(self) -> TokenStream {
        let mistakes = self.into_mistakes();
        mistakes
            .iter()
            .map(ReportedMistake::to_compile_error)
            .collect()
    }

    /// Returns the mistakes, in source order.
    pub(crate) fn into_mistakes(mut self) -> Vec<ReportedMistake> {
        self.finished = true;
        self.mistakes.sort_by_key(|mistake| mistake.spot.order);
        std::mem::take(&mut self.mistakes)
    }

    /// Drops the mistakes, because another reading of the same tokens reports them.
    pub(crate) fn leave(mut self) {
        self.finished = true;
    }
}

impl Drop for ErrorReport {
    fn drop(&mut self) {
        assert!(
            self.finished || std::thread::panicking(),
            "a report was dropped before it was finished"
        );
    }
}
