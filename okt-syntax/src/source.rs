//! The graphs in source files, without a compiler: what is wrong with each, and the graph itself.
//!
//! A compiler expands macros first, so a graph that a `macro_rules!` writes is not found here. Attributes under `#[cfg]`
//! are resolved with a [`Cfg`], as a compiler does before the macro sees them.

mod cfg;
mod find;
mod limit;
mod mistake;

use okt_core::Graph;
use proc_macro2::{LexError, Span, TokenStream};
use syn::visit::Visit;

pub use cfg::Cfg;
pub use find::{FileModule, is_version};
pub use mistake::Mistake;

use crate::graph::with_graph;
use crate::model::Model;
use crate::options;
use find::Finder;

/// The size of a stack, in bytes, on which every text can be parsed that is not refused. It is not used but for such text.
pub const STACK: usize = 1 << 30;

/// The graphs of a source file, and the modules that it declares.
#[derive(Debug)]
pub struct Source {
    modules: Vec<FileModule>,
    count: usize,
    /// The enums among the graphs.
    models: Vec<Model>,
    versions: Vec<Option<String>>,
    mistakes: Vec<Mistake>,
}

impl Source {
    /// Parses the text of a file, and checks its graphs as they are compiled with this configuration.
    ///
    /// The parser recurses: text of the largest accepted depth needs a thread with a large stack, of [`STACK`] bytes.
    ///
    /// # Errors
    ///
    /// The text is not Rust. Another attempt with the same text does not help.
    pub fn parse(text: &str, cfg: &Cfg) -> Result<Self, Box<Mistake>> {
        let file = parse(text)?;
        let mut finder = Finder::new(cfg);
        finder.visit_file(&file);
        finder.mistakes.sort_by_key(|mistake| mistake.at.start);
        Ok(Self {
            modules: finder.modules,
            count: finder.count,
            models: finder.models,
            versions: finder.versions,
            mistakes: finder.mistakes,
        })
    }

    /// Returns the modules of this file that are in other files.
    pub fn modules(&self) -> &[FileModule] {
        &self.modules
    }

    /// Returns the number of graphs in this file, wrong ones included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns every mistake of the graphs in this file, in source order.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Calls a function with each graph of this file that has no mistakes, in source order, and returns the results.
    ///
    /// The graphs have no [routes](Graph::routes).
    pub fn graphs<T>(&self, mut look: impl FnMut(&Graph<'_>) -> T) -> Vec<T> {
        let models = self.models.iter().filter(|model| !model.is_wrong);
        models.map(|model| with_graph(model, &mut look)).collect()
    }

    /// Calls a function with all graphs of this file, also those with mistakes: a target that is no state is unknown.
    pub fn with_graphs<T>(&self, look: impl FnOnce(&[&Graph<'_>]) -> T) -> T {
        nest(&self.models, &[], look)
    }

    /// Returns the version of its kind to which each graph of [`with_graphs`](Self::with_graphs) belongs: the name of the
    /// innermost module around it that is a version (e.g. `v1alpha1`).
    pub fn versions(&self) -> &[Option<String>] {
        &self.versions
    }
}

/// Returns a word as an identifier of Rust, raw if it is a keyword (e.g. the handler of the state `Move`); none if Rust
/// allows no such name.
pub fn identifier(word: &str) -> Option<String> {
    options::identifier(word).map(|ident| ident.to_string())
}

/// Parses the text of a file: the places of its tokens are those in the text, in bytes.
///
/// The parser recurses: text of the largest accepted depth needs a thread with a large stack, of [`STACK`] bytes.
///
/// # Errors
///
/// The text is not Rust, or nested too deeply. Another attempt with the same text does not help.
pub fn parse(text: &str) -> Result<syn::File, Box<Mistake>> {
    // syn skips a byte order mark and a `#!` line, and would count positions from what follows.
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => format!("   {rest}"),
        None => text.to_owned(),
    };
    let text = match text.trim_start().strip_prefix("#!") {
        Some(rest) if !rest.trim_start().starts_with('[') => text.replacen("#!", "//", 1),
        _ => text,
    };
    let wrong = |what: String, at: Span| Mistake::of_rust(what, at.byte_range());
    let tokens: TokenStream = text
        .parse()
        .map_err(|error: LexError| wrong(error.to_string(), error.span()))?;
    if let Some(at) = limit::exceeded(&tokens) {
        let what = "this is nested too deeply, or too long, to be read".to_owned();
        return Err(wrong(what, at).into());
    }
    let file = syn::parse2(tokens);
    file.map_err(|error| wrong(error.to_string(), error.span()).into())
}

/// Calls a function with some graphs and those of the models: each borrows from the stack.
fn nest<T>(models: &[Model], graphs: &[&Graph<'_>], look: impl FnOnce(&[&Graph<'_>]) -> T) -> T {
    match models.split_first() {
        None => look(graphs),
        Some((first, rest)) => with_graph(first, |graph| {
            let mut more = graphs.to_vec();
            more.push(graph);
            nest(rest, &more, look)
        }),
    }
}
