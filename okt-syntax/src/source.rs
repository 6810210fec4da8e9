//! The graphs in source files, without a compiler: what is wrong with each, and the graph itself.
//!
//! A compiler expands macros first, so a graph that a `macro_rules!` writes is not found here. Attributes under `#[cfg]`
//! are resolved with a [`Cfg`], as a compiler does before the macro sees them.

mod cfg;
mod find;
mod mistake;

use okt_core::Graph;
use syn::visit::Visit;

pub use cfg::Cfg;
pub use find::FileModule;
pub use mistake::Mistake;

use crate::graph::with_graph;
use crate::model::Model;
use crate::report::Report;
use find::{Declaration, Finder};

/// A parsed source file.
#[derive(Debug)]
pub struct Source {
    file: syn::File,
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
            Err(error) => Err(Box::new(Mistake::of_rust(
                error.to_string(),
                error.span().byte_range(),
            ))),
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
        let mut graphs = self.find(cfg).graphs;
        graphs.retain(|graph| graph.check().is_empty());
        let models = models(&graphs);
        models
            .iter()
            .map(|model| with_graph(model, &mut look))
            .collect()
    }

    /// Calls a function with all graphs of this file, also those with mistakes: a target that is no state is unknown.
    pub fn with_graphs<T>(&self, cfg: &Cfg, look: impl FnOnce(&[&Graph<'_>]) -> T) -> T {
        nest(&models(&self.find(cfg).graphs), &[], look)
    }

    fn find<'c>(&self, cfg: &'c Cfg) -> Finder<'c> {
        let mut finder = Finder::new(cfg);
        finder.visit_file(&self.file);
        finder
    }
}

/// Returns the models of the enums among some declarations.
fn models(declarations: &[Declaration]) -> Vec<Model> {
    let models = declarations.iter().filter_map(|declaration| {
        let mut report = Report::new();
        let model = declaration.model(&mut report);
        report.leave();
        model
    });
    models.collect()
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
