//! The crates of the workspace and what they use of each other, in their manifests and in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use toml::{Table, Value};

/// A crate of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder in the repository.
    pub(crate) folder: String,
    pub(crate) is_published: bool,
    /// The crates of the workspace that it uses, also those that only a feature needs; not those that only its tests
    /// use.
    pub(crate) uses: BTreeSet<String>,
}

/// Reads the manifests of all crates of the workspace.
pub(crate) fn packages(repository: &Path) -> Vec<Package> {
    let workspace = manifest(repository);
    let folders = strings(&workspace["workspace"]["members"]);
    let manifests: Vec<(String, Table)> = folders
        .into_iter()
        .map(|folder| (folder.clone(), manifest(&repository.join(folder))))
        .collect();
    let names: BTreeSet<String> = manifests.iter().map(|(_, it)| package_name(it)).collect();
    let packages = manifests.into_iter().map(|(folder, manifest)| {
        let targets = manifest.get("target").and_then(Value::as_table);
        let tables = targets
            .into_iter()
            .flat_map(Table::values)
            .filter_map(Value::as_table)
            .chain([&manifest])
            .flat_map(|table| ["dependencies", "build-dependencies"].map(|name| table.get(name)));
        let used = tables
            .flatten()
            .filter_map(Value::as_table)
            .flat_map(Table::keys);
        Package {
            name: package_name(&manifest),
            folder,
            is_published: manifest["package"].get("publish") != Some(&Value::Boolean(false)),
            uses: used.filter(|name| names.contains(*name)).cloned().collect(),
        }
    });
    packages.collect()
}

/// Returns the published crates whose address is not that of the workspace, where a person sets it.
pub(crate) fn own_addresses(repository: &Path) -> Vec<String> {
    let published = packages(repository).into_iter();
    let published = published.filter(|package| package.is_published);
    let mut problems = Vec::new();
    for package in published {
        let manifest = manifest(&repository.join(&package.folder));
        for key in ["repository", "homepage"] {
            let found = manifest["package"].get(key);
            if found.and_then(|it| it.get("workspace")) != Some(&Value::Boolean(true)) {
                problems.push(format!(
                    "{}: `{key}` is not that of the workspace",
                    package.name
                ));
            }
        }
    }
    problems
}

/// Returns the address of the project; empty if nobody has set it.
pub(crate) fn address(repository: &Path) -> String {
    let address = &manifest(repository)["workspace"]["package"]["repository"];
    address.as_str().expect("a text").to_owned()
}

/// Returns what ARCHITECTURE.md has of the published crates: what each of them uses.
pub(crate) fn described(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let lines = page.lines();
    let rows = lines
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let last = cells.last().into_iter().flat_map(|cell| cell.split(','));
        let uses = last.map(unquoted).filter(|name| !name.is_empty());
        (unquoted(cells[0]), uses.collect())
    })
    .collect()
}

/// Returns the features of a crate, but for the list of those that it has by default.
pub(crate) fn features(folder: &Path) -> BTreeSet<String> {
    let manifest = manifest(folder);
    let features = manifest.get("features").and_then(Value::as_table);
    let names = features.into_iter().flat_map(Table::keys);
    names.filter(|it| *it != "default").cloned().collect()
}

fn unquoted(cell: &str) -> String {
    cell.trim().trim_matches('`').to_owned()
}

fn manifest(folder: &Path) -> Table {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    text.parse().expect("TOML")
}

fn package_name(manifest: &Table) -> String {
    manifest["package"]["name"]
        .as_str()
        .expect("a name")
        .to_owned()
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|it| it.as_str().expect("a text").to_owned())
        .collect()
}
