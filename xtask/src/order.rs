//! The order of a crate's folders and files in ARCHITECTURE.md.

use crate::import_graph::{ImportGraph, name};
use crate::imports::ModulePath;

/// The rows of a table of ARCHITECTURE.md: a file may import from its own row and from the rows above it on the page.
pub(crate) struct Order(Vec<Vec<String>>);

impl Order {
    /// Reads the table under the heading of a crate.
    pub(crate) fn of(page: &str, package: &str) -> Self {
        let heading = format!("### {package}");
        let lines = page.lines().skip_while(|line| *line != heading).skip(1);
        let lines = lines.take_while(|line| !line.starts_with('#'));
        let rows = lines.filter_map(|line| {
            let first = line.strip_prefix("| `")?.split(" | ").next()?;
            let names = first.split(',').map(|name| name.trim().trim_matches('`'));
            Some(
                names
                    .map(|name| name.trim_end_matches('/').to_owned())
                    .collect(),
            )
        });
        Self(rows.collect())
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
