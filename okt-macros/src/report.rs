//! Collects the mistakes of one declaration and reports them together, in source order.

use okt_core::check::Rule;
use proc_macro2::{Span, TokenStream};

/// A token of the declaration that a message can point at.
///
/// Tokens are numbered as they are read, which is source order; rustc has no order of spans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    span: Span,
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
/// Call [`Report::finish`]: a report that is dropped without it panics, so that no mistake is lost.
#[derive(Debug)]
pub(crate) struct Report {
    mistakes: Vec<Mistake>,
    spots: usize,
    finished: bool,
}

#[derive(Debug)]
struct Mistake {
    spot: Spot,
    message: String,
}

impl Report {
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

    /// Reports a broken rule (e.g. `OKT005: dead end: ..`).
    pub(crate) fn error(&mut self, rule: Rule, spot: Spot, message: impl AsRef<str>) {
        self.say(spot, format!("{rule}: {}", message.as_ref()));
    }

    /// Reports a mistake that breaks no rule of a graph.
    pub(crate) fn say(&mut self, spot: Spot, message: impl Into<String>) {
        self.mistakes.push(Mistake {
            spot,
            message: message.into(),
        });
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Returns the mistakes as `compile_error!`s, in source order; empty if there are none.
    pub(crate) fn finish(mut self) -> TokenStream {
        self.finished = true;
        self.mistakes.sort_by_key(|mistake| mistake.spot.order);
        self.mistakes
            .iter()
            .map(|mistake| syn::Error::new(mistake.spot.span, &mistake.message).to_compile_error())
            .collect()
    }

    /// Drops the mistakes, because another reading of the same tokens reports them.
    pub(crate) fn leave(mut self) {
        self.finished = true;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        assert!(
            self.finished || std::thread::panicking(),
            "a report was dropped before it was finished"
        );
    }
}
