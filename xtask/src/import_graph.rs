//! Which files and folders of a crate import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

use crate::imports::{Imports, ModulePath};
use crate::measures::{each_file, is_test_file};

/// The imports among the files of one crate.
pub(crate) struct ImportGraph {
    modules: BTreeSet<ModulePath>,
    /// From the importing file to the imported one.
    imports: BTreeSet<(ModulePath, ModulePath)>,
}

impl ImportGraph {
    /// Reads the files in a folder and its subfolders.
    pub(crate) fn of(src: &Path) -> Self {
        let mut texts = BTreeMap::new();
        each_file(src, &mut |path, text| {
            let is_program_of_a_library =
                path == Path::new("main.rs") && src.join("lib.rs").exists();
            if !is_test_file(path) && !is_program_of_a_library {
                texts.insert(module_path(path), text.to_owned());
            }
        });
        let mut graph = Self {
            modules: texts.keys().cloned().collect(),
            imports: BTreeSet::new(),
        };
        let files: BTreeMap<&ModulePath, Imports> = texts
            .iter()
            .map(|(module, text)| (module, Imports::of(text, module)))
            .collect();
        for (module, file) in &files {
            for path in &file.used {
                let to = graph.definer(&files, path);
                // The root only declares modules and re-exports names.
                if to != **module && !to.is_empty() && !module.is_empty() {
                    graph.imports.insert(((*module).clone(), to));
                }
            }
        }
        graph
    }

    /// Returns the file that defines a path, following re-exports.
    fn definer(&self, files: &BTreeMap<&ModulePath, Imports>, path: &ModulePath) -> ModulePath {
        let mut file = path.clone();
        while !self.modules.contains(&file) && !file.is_empty() {
            file.pop();
        }
        let exported = path
            .get(file.len())
            .and_then(|name| files[&file].names.get(name));
        match exported {
            Some(to) if to != path => self.definer(files, to),
            Some(_) | None => file,
        }
    }

    /// Returns the number of files.
    pub(crate) fn files(&self) -> usize {
        self.modules.len()
    }

    /// Returns the module paths of all files except the root.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModulePath> {
        self.modules.iter().filter(|module| !module.is_empty())
    }

    /// Returns the imports, from the importing file to the imported one.
    pub(crate) fn imports(&self) -> impl Iterator<Item = &(ModulePath, ModulePath)> {
        self.imports.iter()
    }

    /// Returns the files that import each other, each circle as the imports in it.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        circles(&self.imports)
    }

    /// Returns the folders that import each other: a module counts with everything below it, among its siblings.
    pub(crate) fn folder_circles(&self) -> Vec<Vec<String>> {
        let mut siblings: BTreeMap<&[String], Imported> = BTreeMap::new();
        for (from, to) in &self.imports {
            let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            if from.len() > shared && to.len() > shared {
                let edge = (from[..=shared].to_vec(), to[..=shared].to_vec());
                siblings.entry(&from[..shared]).or_default().insert(edge);
            }
        }
        siblings.values().flat_map(circles).collect()
    }

    /// Returns the folders and files at the top by floor: each is above all that it imports.
    pub(crate) fn floors(&self) -> Vec<Vec<String>> {
        let top = |module: &ModulePath| module[..1].to_vec();
        let imports: Imported = self
            .imports
            .iter()
            .map(|(from, to)| (top(from), top(to)))
            .filter(|(from, to)| from != to)
            .collect();
        let mut height: BTreeMap<ModulePath, usize> = BTreeMap::new();
        let mut floors: Vec<Vec<String>> = Vec::new();
        let all = self.modules().map(top).collect();
        for component in components(&all, &imports) {
            let below = imports
                .iter()
                .filter(|(from, to)| component.contains(from) && !component.contains(to));
            let floor = below.map(|(_, to)| height[to] + 1).max().unwrap_or(0);
            if floors.len() <= floor {
                floors.resize(floor + 1, Vec::new());
            }
            for module in component {
                floors[floor].push(name(&module));
                height.insert(module, floor);
            }
        }
        floors
    }
}

type Imported = BTreeSet<(ModulePath, ModulePath)>;

fn circles(imports: &Imported) -> Vec<Vec<String>> {
    let modules = imports.iter().flat_map(|(from, to)| [from, to]);
    let components = components(&modules.cloned().collect(), imports).into_iter();
    components
        .filter(|circle| circle.len() > 1)
        .map(|circle| {
            imports
                .iter()
                .filter(|(from, to)| circle.contains(from) && circle.contains(to))
                .map(|(from, to)| format!("{} → {}", name(from), name(to)))
                .collect()
        })
        .collect()
}

/// Returns the strongly connected components, each after the components that it imports.
fn components(modules: &BTreeSet<ModulePath>, imports: &Imported) -> Vec<Vec<ModulePath>> {
    let mut graph = DiGraph::<&ModulePath, ()>::new();
    let nodes: BTreeMap<_, _> = modules
        .iter()
        .map(|module| (module, graph.add_node(module)))
        .collect();
    for (from, to) in imports {
        graph.add_edge(nodes[from], nodes[to], ());
    }
    let components = tarjan_scc(&graph).into_iter();
    components
        .map(|it| it.into_iter().map(|node| graph[node].clone()).collect())
        .collect()
}

/// Returns a module path as text.
pub(crate) fn name(module: &[String]) -> String {
    module.join("/")
}

/// Returns the module path of a file, from its path in `src`.
fn module_path(file: &Path) -> ModulePath {
    let mut module: ModulePath = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module
        .last()
        .is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str()))
    {
        module.pop();
    }
    module
}
