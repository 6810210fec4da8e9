//! The import graph of a crate's files: each file is a room, on a floor above the files it imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

use crate::imports::{Imports, ModulePath};

/// The import graph of the files of one crate.
pub(crate) struct House {
    /// The module path of each file, with its number of lines of code.
    rooms: BTreeMap<ModulePath, usize>,
    /// The imports, from the importing file to the imported one.
    arrows: BTreeSet<(ModulePath, ModulePath)>,
}

impl House {
    /// Reads the files in a folder and its subfolders.
    pub(crate) fn of(src: &Path) -> Self {
        let mut texts = BTreeMap::new();
        read(src, &Vec::new(), &mut texts);
        let rooms = (texts.iter())
            .map(|(module, text)| (module.clone(), lines_of_code(text)))
            .collect();
        let mut house = Self {
            rooms,
            arrows: BTreeSet::new(),
        };
        let imports: BTreeMap<&ModulePath, Imports> = (texts.iter())
            .map(|(module, text)| (module, Imports::of(text, module)))
            .collect();
        for (module, own) in &imports {
            for path in &own.used {
                let to = house.room(&imports, path);
                // The root only declares modules and re-exports names.
                if to != **module && !to.is_empty() && !module.is_empty() {
                    house.arrows.insert(((*module).clone(), to));
                }
            }
        }
        house
    }

    /// Returns the file that defines a path, following re-exports.
    fn room(&self, imports: &BTreeMap<&ModulePath, Imports>, path: &ModulePath) -> ModulePath {
        let mut room = path.clone();
        while !self.rooms.contains_key(&room) && !room.is_empty() {
            room.pop();
        }
        let handed_on = path
            .get(room.len())
            .and_then(|name| imports[&room].names.get(name));
        match handed_on {
            Some(to) if to != path => self.room(imports, to),
            Some(_) | None => room,
        }
    }

    /// Returns the number of files.
    pub(crate) fn rooms(&self) -> usize {
        self.rooms.len()
    }

    /// Returns the module paths of all files except the root.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModulePath> {
        self.rooms.keys().filter(|module| !module.is_empty())
    }

    /// Returns the imports, from the importing file to the imported one.
    pub(crate) fn arrows(&self) -> impl Iterator<Item = &(ModulePath, ModulePath)> {
        self.arrows.iter()
    }

    /// Returns the cycles, each as the imports among its files.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let circles = self.components().into_iter().filter(|it| it.len() > 1);
        circles
            .map(|circle| {
                (self.arrows.iter())
                    .filter(|(from, to)| circle.contains(from) && circle.contains(to))
                    .map(|(from, to)| format!("{} → {}", name(from), name(to)))
                    .collect()
            })
            .collect()
    }

    /// Returns the strongly connected components, each after the components that it imports.
    fn components(&self) -> Vec<Vec<ModulePath>> {
        let modules: Vec<&ModulePath> = self.modules().collect();
        let mut graph = DiGraph::<&ModulePath, ()>::new();
        let rooms: BTreeMap<_, _> = (modules.iter())
            .map(|module| (*module, graph.add_node(*module)))
            .collect();
        for (from, to) in &self.arrows {
            graph.add_edge(rooms[from], rooms[to], ());
        }
        let components = tarjan_scc(&graph).into_iter();
        components
            .map(|it| it.into_iter().map(|room| graph[room].clone()).collect())
            .collect()
    }

    /// Returns the files by floor: each file is above all files that it imports.
    fn floors(&self) -> Vec<Vec<ModulePath>> {
        let mut floor: BTreeMap<ModulePath, usize> = BTreeMap::new();
        let mut floors: Vec<Vec<ModulePath>> = Vec::new();
        for component in self.components() {
            let below = self
                .arrows
                .iter()
                .filter(|(from, to)| component.contains(from) && !component.contains(to));
            let height = below.map(|(_, to)| floor[to] + 1).max().unwrap_or(0);
            if floors.len() <= height {
                floors.resize(height + 1, Vec::new());
            }
            for module in component {
                floor.insert(module.clone(), height);
                floors[height].push(module);
            }
        }
        floors
    }
}

/// Returns the number of lines before the tests that are neither empty nor comments.
fn lines_of_code(text: &str) -> usize {
    let product = text
        .split("\n#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default();
    let lines = product.lines().map(str::trim_start);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

/// Returns a module path as text.
pub(crate) fn name(module: &[String]) -> String {
    module.join("/")
}

fn read(folder: &Path, module: &ModulePath, texts: &mut BTreeMap<ModulePath, String>) {
    let entries = fs::read_dir(folder).expect("a folder");
    for entry in entries {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut own = module.clone();
        // Files of tests do not count.
        if stem == "tests" || stem == "fuzz" {
            continue;
        }
        if !(matches!(&*stem, "lib" | "main" | "mod") && path.is_file()) {
            own.push(stem.into_owned());
        }
        if path.is_dir() {
            read(&path, &own, texts);
        } else if path.extension().is_some_and(|it| it == "rs") {
            texts.insert(own, fs::read_to_string(&path).expect("a text"));
        }
    }
}

impl fmt::Display for House {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let floors = self.floors();
        let circles = self.circles();
        let lines: usize = self.rooms.values().sum();
        writeln!(
            f,
            "{} rooms with {lines} lines of code on {} floors, {} imports, {} circles",
            self.rooms(),
            floors.len(),
            self.arrows.len(),
            circles.len()
        )?;
        for (height, modules) in floors.iter().enumerate().rev() {
            let names: Vec<String> = modules.iter().map(|it| name(it)).collect();
            writeln!(f, "  {height:>2}  {}", names.join(" "))?;
        }
        for circle in circles {
            writeln!(f, "  circle: {}", circle.join(", "))?;
        }
        Ok(())
    }
}
