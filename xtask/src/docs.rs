//! What the pages of the repository name: other pages, files, code, commands of Cargo, features and crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::crates::{self, Package};
use crate::measures::each_file_of;

/// The pages of the repository, and what they may name.
pub(crate) struct Docs<'a> {
    repository: &'a Path,
    packages: Vec<Package>,
    /// The text of each page, by its path in the repository.
    pages: BTreeMap<PathBuf, String>,
    /// The text of each Rust file, by its path in the repository.
    code: BTreeMap<PathBuf, String>,
}

impl<'a> Docs<'a> {
    /// Reads all pages but the change log, which names what is gone, and the pages of the project that
    /// `cargo okt new` makes.
    pub(crate) fn read(repository: &'a Path) -> Self {
        let mut pages = BTreeMap::new();
        each_file_of(repository, "md", &mut |path, text| {
            if !path.ends_with("CHANGELOG.md") && !path.starts_with("cargo-okt/template") {
                pages.insert(path.to_owned(), text.to_owned());
            }
        });
        let mut code = BTreeMap::new();
        each_file_of(repository, "rs", &mut |path, text| {
            code.insert(path.to_owned(), text.to_owned());
        });
        Self {
            repository,
            packages: crates::packages(repository),
            pages,
            code,
        }
    }

    /// Returns what the pages name and the repository does not have.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (page, text) in &self.pages {
            let of_page = [
                self.missing_links(page, text),
                self.missing_paths(text),
                self.missing_names(page, text),
                self.wrong_commands(text),
                self.invented_addresses(text),
            ]
            .concat();
            problems.extend(of_page.iter().map(|it| format!("{}: {it}", page.display())));
        }
        problems.extend(self.missing_crates());
        problems.extend(self.features_not_as_described());
        problems
    }

    /// Returns the addresses of this project that are not the one that a person has set.
    fn invented_addresses(&self, text: &str) -> Vec<String> {
        let address = crates::address(self.repository);
        let words = text.split(|it: char| it.is_whitespace() || "()<>\"`".contains(it));
        let links = words.filter(|word| word.starts_with("https://"));
        let forges = links.filter(|link| ["git", "codeberg"].iter().any(|it| link.contains(it)));
        forges
            .filter(|link| {
                link.split('/')
                    .nth(4)
                    .is_some_and(|it| it.trim_end_matches(".git") == "okt")
            })
            .filter(|link| address.is_empty() || !link.starts_with(&address))
            .map(|link| format!("{link} is not the address in Cargo.toml"))
            .collect()
    }

    /// Returns the links to pages, headings and files that do not exist.
    fn missing_links(&self, page: &Path, text: &str) -> Vec<String> {
        let folder = page.parent().unwrap_or(Path::new(""));
        let mut problems = Vec::new();
        for link in links(&without_blocks(text)) {
            // Links of crates' pages may name items, for rustdoc.
            let is_item = link.contains("::") || link.contains('@');
            if link.contains("://") || is_item {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => page.to_owned(),
                _ => normalized(&folder.join(path)),
            };
            if target.starts_with("target") || !self.repository.join(&target).exists() {
                problems.push(format!("there is no {path}"));
                continue;
            }
            let Some(other) = self.pages.get(&target) else {
                continue;
            };
            if !heading.is_empty() && !anchors(other).contains(heading) {
                problems.push(format!("there is no heading {link}"));
            }
        }
        problems
    }

    /// Returns the paths in the repository that do not exist.
    fn missing_paths(&self, text: &str) -> Vec<String> {
        let spans = code_spans(&without_blocks(text));
        let is_path = |span: &&String| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
            let first = span.split('/').next().unwrap_or_default();
            // What is built is there on some machines only.
            let is_folder =
                !["", "target"].contains(&first) && self.repository.join(first).is_dir();
            span.contains('/') && span.chars().all(is_plain) && is_folder
        };
        let paths = spans.iter().filter(is_path);
        paths
            .filter(|path| !self.repository.join(path).exists())
            .map(|path| format!("there is no {path}"))
            .collect()
    }

    /// Returns the long names that no code has; most of them name tests.
    fn missing_names(&self, page: &Path, text: &str) -> Vec<String> {
        // It names the metrics of others.
        if page.ends_with("docs/monitoring.md") {
            return Vec::new();
        }
        let spans = code_spans(&without_blocks(text));
        let is_name = |span: &&String| {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            span.len() > 20 && span.contains('_') && span.chars().all(is_plain)
        };
        let names = spans.iter().filter(is_name);
        names
            .filter(|name| !self.code.values().any(|code| code.contains(name.as_str())))
            .map(|name| format!("no code has {name}"))
            .collect()
    }

    /// Returns what is wrong with the commands that test or measure crates of the workspace.
    fn wrong_commands(&self, text: &str) -> Vec<String> {
        let commands = text
            .lines()
            .flat_map(|line| line.match_indices("cargo ").map(|(at, _)| &line[at..]))
            .filter_map(|text| text.split('`').next())
            .filter_map(Command::parse);
        let mut problems = Vec::new();
        for command in commands {
            problems.extend(self.wrong_command(&command));
        }
        problems
    }

    fn wrong_command(&self, command: &Command<'_>) -> Vec<String> {
        let mut problems = Vec::new();
        let chosen: Vec<&Package> = self
            .packages
            .iter()
            .filter(|it| command.packages.contains(&it.name.as_str()))
            .collect();
        if chosen.len() < command.packages.len() {
            problems.push(format!("no package has a name of {:?}", command.packages));
        }
        for (folder, target) in &command.targets {
            let path = |package: &Package| self.repository.join(&package.folder).join(folder);
            let has = |package: &&Package| {
                let path = path(package);
                path.join(target).join("main.rs").exists()
                    || path.join(format!("{target}.rs")).exists()
            };
            if !chosen.iter().any(has) {
                problems.push(format!("{:?} have no {target}", command.packages));
            }
        }
        for filter in &command.filters {
            if !chosen.iter().any(|it| self.has_test(it, filter)) {
                problems.push(format!("{:?} have no test {filter}", command.packages));
            }
        }
        problems
    }

    /// Returns whether a function, or a module, of a package has this in its name.
    fn has_test(&self, package: &Package, filter: &str) -> bool {
        let name = filter.rsplit("::").next().unwrap_or(filter);
        let files = self.code.iter();
        let mut of_package = files.filter(|(path, _)| path.starts_with(&package.folder));
        of_package
            .any(|(path, code)| path.to_string_lossy().contains(name) || has_function(code, name))
    }

    /// Returns the published crates that the table of the README lacks.
    fn missing_crates(&self) -> Vec<String> {
        let readme = &self.pages[Path::new("README.md")];
        let table = readme.split("\n## Crates\n").nth(1).unwrap_or_default();
        let published = self.packages.iter().filter(|it| it.is_published);
        published
            .filter(|it| !table.contains(&format!("[`{}`]({})", it.name, it.folder)))
            .map(|it| format!("README.md: the table of crates lacks {}", it.name))
            .collect()
    }

    /// Returns where the tables of features differ from the manifests.
    fn features_not_as_described(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for package in self.packages.iter().filter(|it| it.is_published) {
            let page = Path::new(&package.folder).join("README.md");
            let Some(described) = described_features(&self.pages[&page]) else {
                continue;
            };
            let features = crates::features(&self.repository.join(&package.folder));
            if described != features {
                problems.push(format!(
                    "{}: the features are {features:?}, and here {described:?}",
                    page.display()
                ));
            }
        }
        problems
    }
}

/// Returns whether a function, or a test that code makes, has this in its name.
fn has_function(code: &str, name: &str) -> bool {
    let mut functions = code.split("fn ").skip(1);
    functions.any(|it| it.split('(').next().is_some_and(|it| it.contains(name)))
        || code.contains(&format!("\"{name}\""))
}

/// A command that runs tests or benches of crates of the workspace.
struct Command<'a> {
    packages: Vec<&'a str>,
    /// The folder and the name of each target.
    targets: Vec<(&'static str, &'a str)>,
    filters: Vec<&'a str>,
}

impl<'a> Command<'a> {
    /// Reads a command. Returns nothing for other commands, and for those without a crate.
    fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split_whitespace().take_while(|it| *it != "#");
        let is_bench = match (words.next()?, words.next()?) {
            ("cargo", "test") => false,
            ("cargo", "bench") => true,
            _ => return None,
        };
        let mut command = Self {
            packages: Vec::new(),
            targets: Vec::new(),
            filters: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word {
                "-p" => command.packages.push(words.next()?),
                "--test" => command.targets.push(("tests", words.next()?)),
                "--bench" => command.targets.push(("benches", words.next()?)),
                "--features" | "--test-threads" => drop(words.next()),
                // A placeholder.
                _ if word.chars().all(|c| c.is_uppercase() || c == '.') => return None,
                _ if word.starts_with('-') || is_bench => {}
                _ => command.filters.push(word),
            }
        }
        let is_here = command.packages.iter().all(|it| !it.contains('.'));
        (is_here && !command.packages.is_empty()).then_some(command)
    }
}

/// Returns the features in the table of a page, if it has one.
fn described_features(page: &str) -> Option<BTreeSet<String>> {
    let mut lines = page.lines();
    lines.find(|line| line.starts_with("| feature |"))?;
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| code_spans(row.split(" | ").next().unwrap_or_default()));
    Some(names.collect())
}

/// Returns the text of a page without its blocks of code.
fn without_blocks(text: &str) -> String {
    let parts = text.split("\n```").step_by(2);
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns the targets of all links in a text.
fn links(text: &str) -> Vec<String> {
    let parts = text.split("](").skip(1);
    parts
        .filter_map(|part| Some(part.split_once(')')?.0.to_owned()))
        .collect()
}

/// Returns the texts in backquotes.
fn code_spans(text: &str) -> Vec<String> {
    let lines = text.lines();
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.map(str::to_owned).collect()
}

/// Returns the names by which links name the headings of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = without_blocks(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// Returns the name by which links name a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || "_- ".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

/// Returns a path without `.` and `..`.
pub(crate) fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normalized.pop()),
            Component::CurDir => {}
            other => normalized.push(other),
        }
    }
    normalized
}
