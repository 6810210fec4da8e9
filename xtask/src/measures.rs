//! What is counted in the code of a crate: lines, functions, names of types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, ImplItemFn, Item, ItemFn, TraitItemFn};

use crate::imports::is_for_tests;

/// The number of lines up to which a function is not long.
const LONG: usize = 60;

/// The lines of code of one folder: neither empty, nor comments.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lines {
    pub(crate) product: usize,
    pub(crate) tests: usize,
}

/// What is counted in the `src` of a crate, without its test modules.
#[derive(Default)]
pub(crate) struct Measures {
    /// How many types have a name.
    types: BTreeMap<String, usize>,
    /// The lines of each function, with its place.
    functions: Vec<(usize, String)>,
}

/// Counts the lines of the Rust files in a folder; those of test modules are tests.
pub(crate) fn lines(folder: &Path) -> Lines {
    let mut lines = Lines::default();
    each_file(folder, &mut |path, text| {
        let (product, tests) = split(path, text);
        lines.product += lines_of_code(product);
        lines.tests += lines_of_code(tests);
    });
    lines
}

/// Calls a function with the path in the folder and the text of each Rust file there and in subfolders.
pub(crate) fn each_file(folder: &Path, found: &mut impl FnMut(&Path, &str)) {
    each_file_of(folder, "rs", found);
}

/// The folders of what is built, and of what tests write.
const MADE: [&str; 3] = ["target", ".git", "cases/fail/rules"];

/// Calls a function with the path in the folder and the text of each file with this extension there and in subfolders,
/// but for what is made.
pub(crate) fn each_file_of(folder: &Path, kind: &str, found: &mut impl FnMut(&Path, &str)) {
    fn walk(root: &Path, folder: &Path, kind: &str, found: &mut impl FnMut(&Path, &str)) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if !MADE.iter().any(|made| path.ends_with(made)) {
                    walk(root, &path, kind, found);
                }
            } else if path.extension().is_some_and(|it| it == kind) {
                let text = fs::read_to_string(&path).expect("a text");
                found(path.strip_prefix(root).unwrap_or(&path), &text);
            }
        }
    }
    walk(folder, folder, kind, found);
}

/// Returns whether a file has tests only, by its path in its crate.
pub(crate) fn is_test_file(path: &Path) -> bool {
    path.with_extension("")
        .iter()
        .any(|part| part == "tests" || part == "fuzz")
}

/// Splits a file into the code that is compiled for its users, and tests.
fn split<'a>(path: &Path, text: &'a str) -> (&'a str, &'a str) {
    if is_test_file(path) {
        return ("", text);
    }
    text.split_once("\n#[cfg(test)]\nmod ")
        .unwrap_or((text, ""))
}

/// Returns the number of lines that are neither empty nor comments.
fn lines_of_code(text: &str) -> usize {
    let lines = text.lines().map(str::trim_start);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

impl Measures {
    /// Adds the files of a folder.
    pub(crate) fn add(&mut self, src: &Path) {
        each_file(src, &mut |path, text| {
            let (product, _) = split(path, text);
            let file = syn::parse_file(product).expect("it compiles");
            let place = path.display().to_string();
            let mut visitor = Visitor { place, found: self };
            visitor.visit_file(&file);
        });
    }

    /// Returns the number of types, and the share of them in percent whose name an earlier one has.
    pub(crate) fn repeated_names(&self) -> (usize, usize) {
        let types: usize = self.types.values().sum();
        let repeated = types - self.types.len();
        (types, (100 * repeated).div_ceil(types.max(1)))
    }

    /// Returns the names that most types have, with their number.
    pub(crate) fn names(&self) -> Vec<(&str, usize)> {
        let mut names: Vec<_> = self.types.iter().filter(|(_, count)| **count > 1).collect();
        names.sort_by_key(|(name, count)| (usize::MAX - **count, *name));
        names
            .into_iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect()
    }

    /// Returns the number of functions, and of those that are long.
    pub(crate) fn functions(&self) -> (usize, usize) {
        let long = self.functions.iter().filter(|(lines, _)| *lines > LONG);
        (self.functions.len(), long.count())
    }

    /// Returns the longest functions, the longest first.
    pub(crate) fn longest(&self, number: usize) -> Vec<(usize, String)> {
        let mut all = self.functions.clone();
        all.sort_by(|a, b| b.cmp(a));
        all.truncate(number);
        all
    }
}

struct Visitor<'a> {
    place: String,
    found: &'a mut Measures,
}

impl Visitor<'_> {
    fn add_type(&mut self, name: &syn::Ident, attributes: &[Attribute]) {
        if !is_for_tests(attributes) {
            *self.found.types.entry(name.to_string()).or_default() += 1;
        }
    }

    fn add_function(&mut self, name: &syn::Ident, whole: &impl Spanned) {
        let span = whole.span();
        let lines = span.end().line - span.start().line + 1;
        let place = format!("{} {name}", self.place);
        self.found.functions.push((lines, place));
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Struct(it) => self.add_type(&it.ident, &it.attrs),
            Item::Enum(it) => self.add_type(&it.ident, &it.attrs),
            Item::Trait(it) => self.add_type(&it.ident, &it.attrs),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add_function(&item.sig.ident, item);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add_function(&item.sig.ident, item);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.add_function(&item.sig.ident, item);
        syn::visit::visit_trait_item_fn(self, item);
    }
}
