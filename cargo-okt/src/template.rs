//! The template of new projects. `tests/new.rs` builds, lints and tests a project that is made from it.
//!
//! Its manifest is not called Cargo.toml: Cargo would leave a package inside this package out of what it publishes.

/// A file of the template: its path in a project, and its text.
type File = (&'static str, &'static str);

/// All files of a project.
pub(crate) const FILES: [File; 12] = [
    ("Cargo.toml", MANIFEST),
    (".dockerignore", include_str!("../template/.dockerignore")),
    (
        ".github/workflows/ci.yml",
        include_str!("../template/.github/workflows/ci.yml"),
    ),
    (".gitignore", include_str!("../template/.gitignore")),
    ("Dockerfile", include_str!("../template/Dockerfile")),
    ("README.md", include_str!("../template/README.md")),
    ("example.yaml", include_str!("../template/example.yaml")),
    ("lifecycle.lock", include_str!("../template/lifecycle.lock")),
    ("src/main.rs", include_str!("../template/src/main.rs")),
    (
        "src/operator.rs",
        include_str!("../template/src/operator.rs"),
    ),
    (
        "src/resource.rs",
        include_str!("../template/src/resource.rs"),
    ),
    ("src/tests.rs", include_str!("../template/src/tests.rs")),
];

const MANIFEST: &str = include_str!("../template/manifest.toml");

/// The name of the template's package, which the project's name replaces.
pub(crate) const NAME: &str = "widget-operator";
/// The template's kind.
pub(crate) const KIND: &str = "Widget";
/// The template's kind in lower case, for kubectl.
pub(crate) const LOWER_KIND: &str = "widget";
/// The module that the template's graph generates.
pub(crate) const MODULE: &str = "widget_state";
/// The template's API group.
pub(crate) const GROUP: &str = "example.com";
/// The crates of OKT in the template's manifest.
pub(crate) const CRATES: [&str; 2] = ["okt", "okt-testing"];

/// Returns whether a file is Rust code.
pub(crate) fn is_code(path: &str) -> bool {
    path.starts_with("src/")
}

/// Returns whether a project depends on a crate of this name.
pub(crate) fn depends_on(name: &str) -> bool {
    let is_it = |line: &str| line.split_once(" = ").is_some_and(|(key, _)| key == name);
    MANIFEST.lines().any(is_it)
}

/// Returns whether a type named after a kind conflicts with another name in the code.
pub(crate) fn has_a_name_of(kind: &str) -> bool {
    let code = FILES.iter().filter(|(path, _)| is_code(path));
    let lines = code
        .flat_map(|(_, text)| text.lines())
        .filter(|line| !line.trim_start().starts_with("//"));
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut words = lines.flat_map(|line| line.split(|letter| !is_of_word(letter)));
    words.any(|word| {
        let of_the_kind = word.strip_prefix(kind);
        !word.starts_with(KIND)
            && of_the_kind.is_some_and(|rest| ["", "Spec", "State", "StateHandler"].contains(&rest))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect_file;
    use okt_syntax::lock::{with_locked, write};
    use okt_syntax::source::{Cfg, Source};

    #[test]
    fn the_lock_file_of_the_template_has_its_graph() {
        let code = include_str!("../template/src/resource.rs");
        let source = Source::parse(code, &Cfg::new([])).expect("it is Rust");
        let lock = with_locked(&source, |graphs| write("", graphs));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("template/lifecycle.lock");
        expect_file![file].assert_eq(&lock);
    }
}
