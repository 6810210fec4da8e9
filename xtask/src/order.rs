//! The order of a crate's modules, in the table on its first page.

use crate::import_graph::{ImportGraph, name};
use crate::imports::ModulePath;

/// The rows of a table of modules: a file may import from its own row and from the rows above it.
pub(crate) struct Order(Vec<Vec<String>>);

impl Order {
    /// Reads the table in the comments of `lib.rs` or `main.rs`.
    pub(crate) fn of(first_page: &str) -> Self {
        let lines = first_page.lines();
        let comments =
            lines.filter_map(|line| line.strip_prefix("//! ").or(line.strip_prefix("// ")));
        let table = comments
            .skip_while(|line| !line.starts_with("| module |"))
            .skip(2);
        let rows = table.map_while(|line| line.strip_prefix("| ")?.split(" | ").next());
        let all = rows.map(|cell| {
            let names = cell
                .split(',')
                .map(|name| name.trim().trim_matches(['`', '[', ']']));
            names.map(ToOwned::to_owned).collect()
        });
        Self(all.collect())
    }

    /// Returns the row of a file: the row with the longest prefix of its path.
    fn row(&self, module: &ModulePath) -> Option<usize> {
        let module = name(module);
        let rows = self.0.iter().enumerate();
        let fits = rows.flat_map(|(row, names)| {
            let module = &module;
            let names = names.iter().filter(move |name| {
                let rest = module.strip_prefix(name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            names.map(move |name| (name.len(), row))
        });
        fits.max().map(|(_, row)| row)
    }

    /// Returns the files that are in no row.
    pub(crate) fn missing(&self, graph: &ImportGraph) -> Vec<String> {
        let modules = graph.modules().filter(|module| self.row(module).is_none());
        modules.map(|module| name(module)).collect()
    }

    /// Returns the imports from a later row.
    pub(crate) fn upward(&self, graph: &ImportGraph) -> Vec<String> {
        let imports = graph.imports();
        let upward = imports.filter(|(from, to)| self.row(from) < self.row(to));
        upward
            .map(|(from, to)| format!("{} imports {}", name(from), name(to)))
            .collect()
    }
}
