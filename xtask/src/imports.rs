//! The imports of one file from its own crate.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{Attribute, Item, ItemMod, Path, UseTree, Visibility};

/// A path from the root of a crate: `["resources", "kept", "decoded"]`.
pub(crate) type ModulePath = Vec<String>;

/// The paths of its own crate that a file names, except in code that is compiled for tests only.
pub(crate) struct Imports {
    module: ModulePath,
    /// The modules that the file declares.
    children: BTreeSet<String>,
    /// The number of inline modules around the present place.
    inline: usize,
    /// The paths that the file uses.
    pub(crate) used: BTreeSet<ModulePath>,
    /// The names that the file imports into its module, with the path of each.
    pub(crate) names: BTreeMap<String, ModulePath>,
}

impl Imports {
    pub(crate) fn of(text: &str, module: &ModulePath) -> Self {
        let file = syn::parse_file(text).expect("it compiles");
        let mut found = Self {
            module: module.clone(),
            children: file
                .items
                .iter()
                .filter_map(|item| match item {
                    Item::Mod(child) if child.content.is_none() => Some(child.ident.to_string()),
                    _ => None,
                })
                .collect(),
            inline: 0,
            used: BTreeSet::new(),
            names: BTreeMap::new(),
        };
        found.visit_file(&file);
        found
    }

    /// Returns the path from the root of the crate; none for another crate.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let mut from = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            // One name alone is that of a value.
            child if self.inline == 0 && path.len() > 1 && self.children.contains(child) => {
                return Some(self.module.iter().chain(path).cloned().collect());
            }
            "super" if self.inline > 0 => self.module.clone(),
            "super" => self.module[..self.module.len().saturating_sub(1)].to_vec(),
            _ => return None,
        };
        let mut rest = rest;
        while let Some((next, after)) = rest.split_first()
            && next == "super"
        {
            from.pop();
            rest = after;
        }
        from.extend(rest.iter().cloned());
        Some(from)
    }

    /// Reads a `use`; a re-export does not count as a use.
    fn take_tree(&mut self, before: &mut Vec<String>, tree: &UseTree, hands_on: bool) {
        let (name, alias) = match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_tree(before, &path.tree, hands_on);
                before.pop();
                return;
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take_tree(before, tree, hands_on);
                }
                return;
            }
            UseTree::Name(name) => (Some(&name.ident), &name.ident),
            UseTree::Rename(rename) => (Some(&rename.ident), &rename.rename),
            UseTree::Glob(_) => {
                if let (Some(path), false) = (self.absolute(before), hands_on) {
                    self.used.insert(path);
                }
                return;
            }
        };
        let mut path = before.clone();
        path.extend(name.filter(|name| *name != "self").map(ToString::to_string));
        let Some(path) = self.absolute(&path) else {
            return;
        };
        if self.inline == 0 {
            self.names.insert(alias.to_string(), path.clone());
        }
        if !hands_on {
            self.used.insert(path);
        }
    }
}

pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && (attribute.parse_args::<Path>()).is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if is_for_tests(&module.attrs) {
            return;
        }
        self.inline += 1;
        syn::visit::visit_item_mod(self, module);
        self.inline -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            let hands_on = !matches!(item.vis, Visibility::Inherited);
            self.take_tree(&mut Vec::new(), &item.tree, hands_on);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    /// Ignores visibilities: `pub(super)` is not a use of a module.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        let segments = path.segments.iter();
        let names: Vec<String> = segments.map(|it| it.ident.to_string()).collect();
        if let Some(path) = self.absolute(&names) {
            self.used.insert(path);
        }
        syn::visit::visit_path(self, path);
    }
}
