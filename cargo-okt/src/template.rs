//! The templates: the files of a project, and the files of a kind in it. `.ci/packages` builds, lints and tests a project
//! with a kind of each form.
//!
//! Their manifest is not called Cargo.toml: Cargo would leave a package inside this package out of what it publishes.

use std::path::Path;

use clap::Args;

/// A file of a template: its path in a project, and its text.
pub(crate) type File = (&'static str, &'static str);

/// The files of a project without a kind.
pub(crate) const PROJECT: [File; 7] = [
    (MANIFEST_PATH, MANIFEST),
    (
        ".dockerignore",
        include_str!("../template/project/.dockerignore"),
    ),
    (
        ".github/workflows/ci.yml",
        include_str!("../template/project/.github/workflows/ci.yml"),
    ),
    (".gitignore", include_str!("../template/project/.gitignore")),
    ("Dockerfile", include_str!("../template/project/Dockerfile")),
    (README, include_str!("../template/project/README.md")),
    (MAIN, include_str!("../template/project/src/main.rs")),
];

const MANIFEST: &str = include_str!("../template/project/manifest.toml");
pub(crate) const MANIFEST_PATH: &str = "Cargo.toml";
/// It ends with the next steps of the first kind.
pub(crate) const README: &str = "README.md";
/// The file that names the kinds of the program.
pub(crate) const MAIN: &str = "src/main.rs";

/// How the operator of a kind is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A handler for each state.
    Lifecycle,
    /// A pass, and no lifecycle.
    Pass,
    /// Four methods for one external resource.
    External,
    /// An agent beside the application does the work.
    Agent,
}

/// The options that choose a [`Form`].
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct FormOptions {
    /// The kind has no lifecycle: each reconciliation takes the same steps, a pass.
    #[arg(long)]
    pass: bool,
    /// Each object is one resource outside the cluster (a bucket, an account): four methods instead of handlers.
    #[arg(long)]
    external: bool,
    /// An agent in the Pod of the application does the work of each state: a file of commands and requests instead of
    /// handlers.
    #[arg(long)]
    agent: bool,
}

impl FormOptions {
    pub(crate) fn form(&self) -> Form {
        match self {
            Self { pass: true, .. } => Form::Pass,
            Self { external: true, .. } => Form::External,
            Self { agent: true, .. } => Form::Agent,
            Self { .. } => Form::Lifecycle,
        }
    }
}

/// Returns the text of a file of a form.
macro_rules! template_file {
    ($form:literal, $file:literal) => {
        include_str!(concat!("../template/", $form, "/", $file))
    };
}

/// Returns the files of a form: those that each form has, and those that only this one has.
macro_rules! files {
    ($form:literal, kind in $kind:literal $(, ($path:literal, $file:literal))*) => {
        &[
            ("examples/widget_mod.yaml", template_file!("kind", "example.yaml")),
            ("src/widget_mod.rs", template_file!($kind, "kind.rs")),
            ("src/widget_mod/operator.rs", template_file!($form, "operator.rs")),
            ("src/widget_mod/resource.rs", template_file!($form, "resource.rs")),
            ("src/widget_mod/tests.rs", template_file!($form, "tests.rs")),
            $(($path, template_file!($form, $file)),)*
        ]
    };
}

impl Form {
    const ALL: [Self; 4] = [Self::Lifecycle, Self::Pass, Self::External, Self::Agent];

    /// Returns the files of a kind.
    pub(crate) fn files(self) -> &'static [File] {
        match self {
            Self::Lifecycle => files!(
                "lifecycle",
                kind in "kind",
                ("src/widget_mod/lifecycle.lock", "lifecycle.lock")
            ),
            Self::Pass => files!("pass", kind in "kind"),
            Self::External => files!(
                "external",
                kind in "external",
                ("src/widget_mod/lifecycle.lock", "lifecycle.lock"),
                ("src/widget_mod/service.rs", "service.rs")
            ),
            Self::Agent => files!(
                "agent",
                kind in "agent",
                ("src/widget_mod/lifecycle.lock", "lifecycle.lock"),
                ("src/widget_mod/sidecar.yaml", "sidecar.yaml")
            ),
        }
    }

    /// Returns the end of the README of a project whose first kind has this form.
    pub(crate) fn next_steps(self) -> &'static str {
        match self {
            Self::Lifecycle => template_file!("lifecycle", "README.md"),
            Self::Pass => template_file!("pass", "README.md"),
            Self::External => template_file!("external", "README.md"),
            Self::Agent => template_file!("agent", "README.md"),
        }
    }

    /// Returns the section of the README that replaces `Run it`: outside of the cluster, an operator reaches no agents.
    pub(crate) fn instead_of_running(self) -> Option<&'static str> {
        (self == Self::Agent).then_some(template_file!("agent", "image.md"))
    }

    /// Returns the feature of OKT that the form needs, besides those of the template's manifest.
    pub(crate) fn feature(self) -> Option<&'static str> {
        (self == Self::Agent).then_some("sidecar")
    }
}

/// The name of the template's package, which the project's name replaces.
pub(crate) const NAME: &str = "widget-operator";
/// The template's kind.
pub(crate) const KIND: &str = "Widget";
/// The template's kind in lower case, for kubectl.
pub(crate) const LOWER_KIND: &str = "widget";
/// The module of the template's kind.
pub(crate) const MODULE: &str = "widget_mod";
/// The modules that the graphs of the templates generate, and the enum of each.
pub(crate) const GENERATED: [(&str, &str); 2] =
    [("widget_state", "State"), ("widget_pass", "Pass")];
/// The template's API group.
pub(crate) const GROUP: &str = "example.com";
/// The crates of OKT in the template's manifest.
pub(crate) const CRATES: [&str; 2] = ["okt", "okt-testing"];

/// Returns whether a file is Rust code.
pub(crate) fn is_code(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| it == "rs")
}

/// Returns whether a project depends on a crate of this name.
pub(crate) fn depends_on(name: &str) -> bool {
    let is_it = |line: &str| line.split_once(" = ").is_some_and(|(key, _)| key == name);
    MANIFEST.lines().any(is_it)
}

/// Returns whether a type named after a kind conflicts with another name in the code.
pub(crate) fn has_a_name_of(kind: &str) -> bool {
    let kinds = Form::ALL.into_iter().flat_map(Form::files);
    let code = PROJECT
        .iter()
        .chain(kinds)
        .filter(|(path, _)| is_code(path));
    let lines = code
        .flat_map(|(_, text)| text.lines())
        .filter(|line| !line.trim_start().starts_with("//"));
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut words = lines.flat_map(|line| line.split(|letter| !is_of_word(letter)));
    let added = ["", "Spec", "State", "StateHandler", "Pass", "PassHandler"];
    words.any(|word| {
        let of_the_kind = word.strip_prefix(kind);
        !word.starts_with(KIND) && of_the_kind.is_some_and(|rest| added.contains(&rest))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect_file;
    use okt_syntax::lock::{with_locked, write};
    use okt_syntax::source::{Cfg, Source};

    #[test]
    fn the_lock_files_of_the_templates_have_their_graphs() {
        for (form, code) in [
            ("lifecycle", template_file!("lifecycle", "resource.rs")),
            ("external", template_file!("external", "resource.rs")),
            ("agent", template_file!("agent", "resource.rs")),
        ] {
            let source = Source::parse(code, &Cfg::new([])).expect("it is Rust");
            let lock = with_locked(&source, |graphs| write("", graphs));
            let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("template");
            expect_file![template.join(form).join("lifecycle.lock")].assert_eq(&lock);
        }
    }
}
