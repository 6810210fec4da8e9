//! Checks of this repository itself. `cargo run -p xtask` prints its figures; `-- okt-core` the floors of one crate;
//! `-- book` is a preprocessor of mdBook.
//!
//! `cargo test -p xtask` fails if the crates are not those of ARCHITECTURE.md, if files or folders import each other in
//! a circle or against the order on the first page of their crate, if a page names a file, a test or a feature that does
//! not exist, if the pages lack a variable that the code has, or if a figure has grown beyond its limit.

mod book;
mod crates;
mod docs;
mod import_graph;
mod imports;
mod measures;
mod order;
#[cfg(test)]
mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use crates::{Package, packages};
use docs::Docs;
use import_graph::ImportGraph;
use measures::{Lines, Measures};
use order::Order;

/// What must not grow.
mod limits {
    /// Lines of code in the `src` of the published crates.
    pub(crate) const PRODUCT: usize = 104_150;
    /// Lines of code of all tests and benches.
    pub(crate) const TESTS: usize = 90_650;
    /// Types whose name another type has, in percent.
    pub(crate) const REPEATED_NAMES: usize = 12;
    /// Functions of more than 60 lines.
    pub(crate) const LONG_FUNCTIONS: usize = 62;
    /// Lines of code of okt-runtime.
    pub(crate) const RUNTIME_LINES: usize = 20_000;
    /// Floors of okt-runtime.
    pub(crate) const RUNTIME_FLOORS: usize = 9;
}

/// The repository, as Cargo says when it runs this, not when it built it: the build may have been moved to another clone.
fn repository() -> &'static Path {
    static REPOSITORY: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("`cargo run -p xtask`");
        Path::new(&package).join("..")
    });
    &REPOSITORY
}

fn architecture() -> String {
    let page = repository().join("ARCHITECTURE.md");
    std::fs::read_to_string(page).expect("ARCHITECTURE.md")
}

fn src(package: &Package) -> PathBuf {
    repository().join(&package.folder).join("src")
}

fn published() -> impl Iterator<Item = Package> {
    packages(repository())
        .into_iter()
        .filter(|package| package.is_published)
}

/// Returns the lines of all published crates, and of all tests. Examples and this program are neither.
fn all_lines() -> Lines {
    let mut all = Lines::default();
    for package in packages(repository()) {
        let whole = measures::lines(&repository().join(&package.folder));
        let src = measures::lines(&src(&package));
        if package.is_published {
            all.product += src.product;
            all.tests += src.tests + (whole.product + whole.tests - src.product - src.tests);
        } else if package.name == "okt-examples" {
            all.tests += whole.product + whole.tests - src.product - src.tests;
        } else if package.name != "xtask" && !package.folder.starts_with("examples/") {
            all.tests += whole.product + whole.tests;
        }
    }
    all
}

fn all_measures() -> Measures {
    let mut measures = Measures::default();
    for package in published() {
        measures.add(&src(&package));
    }
    measures
}

fn main() -> ExitCode {
    let packages: Vec<Package> = published().collect();
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    match chosen.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Any renderer takes the text of this one.
        ["book", "supports", _] => return ExitCode::SUCCESS,
        ["book"] => {
            let done = book::preprocess(repository());
            return done.map_or_else(
                |error| {
                    eprintln!("the book: {error}");
                    ExitCode::FAILURE
                },
                |()| ExitCode::SUCCESS,
            );
        }
        _ => {}
    }
    for name in &chosen {
        let Some(package) = packages.iter().find(|it| it.name == *name) else {
            let names: Vec<&str> = packages.iter().map(|it| it.name.as_str()).collect();
            eprintln!(
                "there is no published crate {name}; choose among {}",
                names.join(", ")
            );
            return ExitCode::FAILURE;
        };
        print_floors(package);
    }
    if !chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    print_figures(&packages);
    let problems = [
        crates_not_as_described(),
        circles(),
        imports_against_the_order(),
        grown(),
        crates::own_addresses(repository()),
        Docs::read(repository()).problems(),
    ]
    .concat();
    for problem in &problems {
        println!("{problem}");
    }
    ExitCode::from(u8::from(!problems.is_empty()))
}

fn print_floors(package: &Package) {
    println!("{}", package.name);
    let floors = ImportGraph::of(&src(package)).floors();
    for (height, names) in floors.iter().enumerate().rev() {
        println!("  {height:>2}  {}", names.join(" "));
    }
}

fn print_figures(packages: &[Package]) {
    println!("crate          lines  files  floors  functions  of more than 60 lines  uses");
    for package in packages {
        let graph = ImportGraph::of(&src(package));
        let mut measures = Measures::default();
        measures.add(&src(package));
        let (functions, long) = measures.functions();
        let uses: Vec<&str> = package.uses.iter().map(String::as_str).collect();
        println!(
            "{:<14} {:>5}  {:>5}  {:>6}  {functions:>9}  {long:>21}  {}",
            package.name,
            measures::lines(&src(package)).product,
            graph.files(),
            graph.floors().len(),
            uses.join(" "),
        );
    }
    let lines = all_lines();
    println!(
        "\nlines of code: {}, of tests: {}",
        lines.product, lines.tests
    );
    let measures = all_measures();
    let (types, repeated) = measures.repeated_names();
    println!("types: {types}, of them with the name of another: {repeated} %");
    let repeated = measures.names().into_iter().take(40);
    let names: Vec<String> = repeated
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    println!("  {}", names.join(", "));
    println!("the longest functions:");
    for (lines, place) in measures.longest(12) {
        println!("  {lines:>4}  {place}");
    }
}

/// Returns in what the crates differ from the table of ARCHITECTURE.md.
fn crates_not_as_described() -> Vec<String> {
    let described = crates::described(&architecture());
    let found: BTreeMap<_, _> = published().map(|it| (it.name, it.uses)).collect();
    let mut problems = Vec::new();
    for (name, uses) in &found {
        match described.get(name) {
            None => problems.push(format!("ARCHITECTURE.md has no row for {name}")),
            Some(row) if row != uses => problems.push(format!(
                "{name} uses {uses:?}, and by ARCHITECTURE.md {row:?}"
            )),
            Some(_) => {}
        }
    }
    let unknown = described.keys().filter(|name| !found.contains_key(*name));
    problems.extend(unknown.map(|name| format!("there is no crate {name}")));
    problems
}

/// Returns the files and the folders that import each other in a circle.
fn circles() -> Vec<String> {
    let mut problems = Vec::new();
    for package in published() {
        let graph = ImportGraph::of(&src(&package));
        for circle in graph.circles().into_iter().chain(graph.folder_circles()) {
            problems.push(format!("{}: a circle: {}", package.name, circle.join(", ")));
        }
    }
    problems
}

/// Returns the files that the first pages of their crates do not have, and the imports against the order there.
fn imports_against_the_order() -> Vec<String> {
    let mut problems = Vec::new();
    for package in published() {
        let src = src(&package);
        let graph = ImportGraph::of(&src);
        if graph.files() < 3 {
            continue;
        }
        let first_page = std::fs::read_to_string(src.join("lib.rs"))
            .or_else(|_| std::fs::read_to_string(src.join("main.rs")));
        let order = Order::of(&first_page.expect("a first page"));
        let missing = order.missing(&graph).into_iter();
        let upward = order.upward(&graph).into_iter();
        let of_package = missing
            .map(|file| format!("its first page lacks {file}"))
            .chain(upward.map(|import| format!("against the order, {import}")));
        problems.extend(of_package.map(|it| format!("{}: {it}", package.name)));
    }
    problems
}

/// Returns the figures that are beyond their limits.
fn grown() -> Vec<String> {
    let lines = all_lines();
    let measures = all_measures();
    let runtime = published().find(|it| it.name == "okt-runtime");
    let runtime = src(&runtime.expect("the runtime"));
    let floors = ImportGraph::of(&runtime).floors().len();
    let figures = [
        ("lines of code", lines.product, limits::PRODUCT),
        ("lines of tests", lines.tests, limits::TESTS),
        (
            "percent of type names that another type has",
            measures.repeated_names().1,
            limits::REPEATED_NAMES,
        ),
        (
            "functions of more than 60 lines",
            measures.functions().1,
            limits::LONG_FUNCTIONS,
        ),
        (
            "lines of okt-runtime",
            measures::lines(&runtime).product,
            limits::RUNTIME_LINES,
        ),
        ("floors of okt-runtime", floors, limits::RUNTIME_FLOORS),
    ];
    let grown = figures.iter().filter(|(_, now, limit)| now > limit);
    grown
        .map(|(what, now, limit)| format!("{what}: {now}, at most {limit}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_are_those_of_architecture_md() {
        assert_eq!(crates_not_as_described(), [""; 0]);
    }

    #[test]
    fn no_files_or_folders_import_each_other_in_a_circle() {
        assert_eq!(circles(), [""; 0]);
    }

    #[test]
    fn no_file_imports_against_the_order_of_its_crate() {
        assert_eq!(imports_against_the_order(), [""; 0]);
    }

    #[test]
    fn the_docs_name_only_what_exists() {
        assert_eq!(Docs::read(repository()).problems(), [""; 0]);
    }

    #[test]
    fn the_pages_and_the_code_have_the_same_variables() {
        assert_eq!(variables::differences(repository()), [""; 0]);
    }

    #[test]
    fn the_address_of_the_project_stands_in_one_place() {
        assert_eq!(crates::own_addresses(repository()), [""; 0]);
    }

    #[test]
    fn no_figure_grows() {
        assert_eq!(grown(), [""; 0]);
    }
}
