//! The graphs in source files, without a compiler: what is wrong with each, and the graph itself.
//!
//! A compiler expands macros first, so a graph that a `macro_rules!` writes is not found here. Attributes under `#[cfg]`
//! are resolved with a [`Cfg`], as a compiler does before the macro sees them.

mod cfg;
mod find;
mod render;

use std::ops::Range;

use okt_core::Graph;
use okt_core::check::Rule;
use proc_macro2::Span;
use syn::visit::Visit;

pub use cfg::Cfg;
pub use find::FileModule;

use crate::graph::with_graph;
use crate::report::Report;
use find::{Declaration, Finder};

/// A parsed source file.
#[derive(Debug)]
pub struct Source {
    file: syn::File,
}

/// One mistake, with its place in the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The rule that is broken; none for source that is not Rust.
    pub rule: Option<Rule>,
    /// What is wrong, as the compiler says it.
    pub message: String,
    /// How to mend it; empty if nothing is known.
    pub help: String,
    /// The position of the token, in bytes.
    pub at: Range<usize>,
    unknown: Option<Unknown>,
}

/// A name that is no variant.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unknown {
    name: String,
    /// The variant that was probably meant.
    meant: Option<String>,
    /// The name of the enum.
    graph: String,
    /// The position of the head of the enum (e.g. `pub enum Life`), in bytes.
    head: Range<usize>,
}

impl Source {
    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// The text is not Rust. Another attempt with the same text does not help.
    pub fn parse(text: &str) -> Result<Self, Box<Mistake>> {
        // syn skips a byte order mark and a `#!` line, and would count positions from what follows.
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => format!("   {rest}"),
            None => text.to_owned(),
        };
        let text = match text.trim_start().strip_prefix("#!") {
            Some(rest) if !rest.trim_start().starts_with('[') => text.replacen("#!", "//", 1),
            _ => text,
        };
        match syn::parse_file(&text) {
            Ok(file) => Ok(Self { file }),
            Err(error) => Err(Box::new(Mistake {
                rule: None,
                message: error.to_string(),
                help: String::new(),
                at: range(error.span()),
                unknown: None,
            })),
        }
    }

    /// Returns the modules of this file that are in other files.
    pub fn modules(&self, cfg: &Cfg) -> Vec<FileModule> {
        self.find(cfg).modules
    }

    /// Returns the number of graphs in this file, wrong ones included.
    pub fn count(&self, cfg: &Cfg) -> usize {
        self.find(cfg).graphs.len()
    }

    /// Returns every mistake of the graphs in this file, in source order.
    pub fn check(&self, cfg: &Cfg) -> Vec<Mistake> {
        let graphs = self.find(cfg).graphs;
        let mut mistakes: Vec<Mistake> = graphs.iter().flat_map(Declaration::check).collect();
        mistakes.sort_by_key(|mistake| mistake.at.start);
        mistakes
    }

    /// Calls a function with each graph of this file that has no mistakes, in source order, and returns the results.
    ///
    /// The graphs have no [routes](Graph::routes).
    pub fn graphs<T>(&self, cfg: &Cfg, mut look: impl FnMut(&Graph<'_>) -> T) -> Vec<T> {
        let graphs = self.find(cfg).graphs;
        let sound = graphs.iter().filter(|graph| graph.check().is_empty());
        sound
            .filter_map(|graph| {
                let mut report = Report::new();
                let model = graph.model(&mut report);
                report.leave();
                Some(with_graph(&model?, &mut look))
            })
            .collect()
    }

    fn find<'c>(&self, cfg: &'c Cfg) -> Finder<'c> {
        let mut finder = Finder::new(cfg);
        finder.visit_file(&self.file);
        finder
    }
}

impl Mistake {
    /// Returns the text of the error without its place, as the compiler prints it.
    pub fn text(&self) -> String {
        match self.rule {
            // rustc itself reports the first rule.
            Some(rule) if rule != Rule::UnknownTarget => rule.text(&self.message, &self.help),
            Some(_) | None => self.message.clone(),
        }
    }
}

/// Returns the position of a token.
fn range(span: Span) -> Range<usize> {
    span.byte_range()
}
