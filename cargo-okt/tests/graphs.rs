//! Tests of `cargo okt check`, `graph` and `explain`: they read the files of a crate as a compiler would.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const GRAPH: &str = "
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[trigger(End, on_error)]
    #[child(End)]
    Start,

    #[leaf]
    End,
}
";

/// A crate on disk.
struct Package(TempDir);

impl Package {
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        Self(folder)
    }

    fn okt(&self, args: &[&str]) -> Output {
        okt(self.0.path(), args)
    }

    /// Returns what `cargo okt` writes to the standard error.
    fn errors(&self, args: &[&str]) -> String {
        errors(&self.okt(args))
    }
}

fn okt(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-okt"))
        .arg("okt")
        .args(args)
        .current_dir(folder)
        .env_remove("CARGO")
        .output()
        .expect("it runs")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_graph_of_every_module_is_checked() {
    let dead = GRAPH.replace(
        "    #[leaf]\n    End,",
        "    End,\n\n    #[leaf]\n    Over,",
    );
    let package = Package::of(&[
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        ),
        (
            "src/main.rs",
            "mod one;\nmod inner { mod two; #[path = \"other/three.rs\"] mod three; }\nfn main() {}\n",
        ),
        ("src/one.rs", "mod deep;\n"),
        ("src/one/deep.rs", &dead),
        ("src/inner/two/mod.rs", GRAPH),
        ("src/inner/other/three.rs", "fn f() { mod local {} }"),
        ("examples/shown.rs", &format!("fn main() {{ {GRAPH} }}")),
    ]);
    let output = package.okt(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(errors(&output), "error: 3 graphs in 6 files: 2 mistakes\n");
    let text = printed(&output);
    assert!(text.contains("error: OKT005: dead end"), "{text}");
    assert!(text.contains("--> src/one/deep.rs:10:5"), "{text}");
    // The same package, by the name of its root.
    let errors = package.errors(&["check", "src/main.rs"]);
    assert_eq!(errors, "error: 2 graphs in 5 files: 2 mistakes\n");
    // A module alone.
    let output = package.okt(&["check", "src/one.rs", "--format", "json"]);
    let mistakes: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let dead_end = &mistakes[0];
    assert_eq!(dead_end["code"], "OKT005");
    assert_eq!(dead_end["file"], "src/one/deep.rs");
    let place = ["line", "column", "endColumn"].map(|name| dead_end[name].as_u64());
    assert_eq!(place, [Some(10), Some(5), Some(8)]);
    let help = dead_end["help"].as_str().expect("help");
    assert!(help.contains("#[leaf]"), "{help}");
}

#[test]
fn a_crate_without_mistakes_passes() {
    let package = Package::of(&[("life.rs", &format!("\u{feff}#!/usr/bin/env run\n{GRAPH}"))]);
    let output = package.okt(&["check", "life.rs"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(errors(&output), "1 graph in 1 file: no mistakes\n");
    assert_eq!(printed(&output), "");
}

#[test]
fn what_is_not_compiled_is_not_checked() {
    let text = "
#[cfg(feature = \"backup\")]
mod backup;
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[cfg_attr(feature = \"slow\", child(Slow))]
    #[child(End)]
    Start,
    #[cfg(feature = \"slow\")]
    Slow,
    #[leaf]
    End,
}
";
    let manifest = "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[features]\ndefault = [\"slow\"]\nslow = []\nbackup = []\n";
    let package = Package::of(&[
        ("Cargo.toml", manifest),
        ("src/lib.rs", text),
        ("src/backup.rs", GRAPH),
    ]);
    for (args, expected) in [
        ("check", "error: 1 graph in 1 file: 1 mistake\n"),
        (
            "check --no-default-features",
            "1 graph in 1 file: no mistakes\n",
        ),
        (
            "check --all-features",
            "error: 2 graphs in 2 files: 1 mistake\n",
        ),
        (
            "check src/lib.rs --no-default-features --features backup",
            "2 graphs in 2 files: no mistakes\n",
        ),
        (
            "check|--no-default-features|--features|backup slow",
            "error: 2 graphs in 2 files: 1 mistake\n",
        ),
        (
            "check --features slw",
            "error: the package a has no feature `slw`\n",
        ),
    ] {
        let between = if args.contains('|') { '|' } else { ' ' };
        let args: Vec<&str> = args.split(between).collect();
        assert_eq!(package.errors(&args), expected, "{args:?}");
    }
}

#[test]
fn what_cannot_be_read_is_reported_and_the_rest_is_checked() {
    let package = Package::of(&[
        (
            "main.rs",
            &format!(
                "mod broken;\nmod absent;\n{}",
                GRAPH.replace("#[leaf]", "#[laef]")
            ),
        ),
        ("broken.rs", "enum {"),
    ]);
    let output = package.okt(&["check", "main.rs"]);
    let text = printed(&output);
    for expected in [
        "error: file not found for module `absent`\n --> main.rs:2:5",
        "--> broken.rs:1:",
        "did you mean `#[leaf]`?",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    for (named, why) in [
        ("nothing.rs", "No such file or directory (os error 2)"),
        (".", "Is a directory (os error 21)"),
        ("/dev/zero", "longer than 67108864 bytes"),
    ] {
        for command in ["check", "graph"] {
            let errors = package.errors(&[command, named]);
            assert_eq!(errors, format!("error: cannot read {named}: {why}\n"));
        }
    }
    let errors = package.errors(&["check"]);
    assert!(errors.contains("Cargo.toml"), "{errors}");
}

#[test]
fn source_that_is_nested_deeply_is_checked_or_refused_and_never_ends_the_program() {
    let nested = [
        ("fn deep() { ", "(", "1", ")", "; }"),
        ("fn deep() { ", "{", "", "}", " }"),
        ("fn deep() { let _ = ", "[", "1", "]", "; }"),
        ("type Deep = ", "Vec<", "u8", ">", ";"),
        ("type Deep = ", "&", "u8", "", ";"),
        ("fn deep() { let _ = ", "!", "true", "", "; }"),
        ("fn deep() { let _ = 1", "", "", " + 1", "; }"),
        ("fn deep() { let _ = 1", "", "", " as u8", "; }"),
        ("fn deep() { if a {} ", "", "", "else if a {} ", " }"),
        ("", "mod a {", "enum Deep {}", "}", ""),
    ];
    let numbers = [20, 400, 100_000];
    for (number, (begin, open, inner, close, end)) in numbers
        .into_iter()
        .flat_map(|number| nested.map(|it| (number, it)))
    {
        let (open, close) = (open.repeat(number), close.repeat(number));
        let what = format!("{begin}{open}{inner}{close}{end}");
        let package = Package::of(&[("lives.rs", &format!("{what}\n{GRAPH}"))]);
        let output = package.okt(&["check", "lives.rs"]);
        let text = format!("{}{}", printed(&output), errors(&output));
        let begin: String = what.chars().take(40).collect();
        assert!(output.status.code().is_some(), "{begin} {number}: {text}");
        if number == 20 {
            assert!(text.contains("no mistakes"), "{begin}: {text}");
        } else if !output.status.success() {
            let refused = "this is nested too deeply, or too long, to be read";
            assert!(text.contains(refused), "{begin} {number}: {text}");
        }
    }
}

#[test]
fn a_graph_is_drawn_in_every_language() {
    let other = GRAPH.replace("Life", "Other");
    let package = Package::of(&[("lives.rs", &format!("{GRAPH}{other}"))]);
    let draw = |args: &[&str]| package.okt(&[&["graph", "lives.rs"], args].concat());
    let text = printed(&draw(&[]));
    assert_eq!(text.matches("stateDiagram-v2").count(), 2, "{text}");
    assert!(text.contains("    Start --> End : on error\n"), "{text}");
    let text = printed(&draw(&["--format", "dot", "--name", "Other"]));
    assert!(text.starts_with("digraph \"Other\""), "{text}");
    let text = printed(&draw(&["--format", "json", "--name", "Life"]));
    let graph: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(graph["name"], "Life");
    let text = printed(&draw(&["--format", "svg", "--name", "Life"]));
    for expected in ["<svg ", ">Start</", ">on error</", "stroke-dasharray"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let several = "error: a picture has one graph; choose with `--name`: Life, Other\n";
    assert_eq!(errors(&draw(&["--format", "svg"])), several);
    let unknown = "error: there is no such graph; there are Life, Other\n";
    assert_eq!(errors(&draw(&["--name", "Nope"])), unknown);
    let wrong = other.replace("#[leaf]", "#[laef]");
    let package = Package::of(&[("lives.rs", &format!("{GRAPH}{wrong}"))]);
    let half = package.okt(&["graph", "lives.rs"]);
    assert!(printed(&half).contains("stateDiagram-v2"));
    assert!(errors(&half).ends_with("error: not every graph is drawn\n"));
    assert!(!half.status.success());
}

#[test]
fn what_cannot_be_printed_is_an_error_unless_nobody_reads_on() {
    let package = Package::of(&[("life.rs", GRAPH)]);
    let full = std::fs::File::create("/dev/full").expect("a device");
    let draw = |out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-okt"));
        command
            .args(["okt", "graph", "life.rs"])
            .current_dir(package.0.path());
        command.stdout(out).output().expect("it ends")
    };
    let output = draw(full.into());
    let why = "error: cannot print: No space left on device (os error 28)\n";
    assert_eq!(errors(&output), why);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert!(draw(writer.into()).status.success());
}

#[test]
fn two_versions_are_compared() {
    let wider = GRAPH
        .replace("#[child(End)]", "#[child(Middle)]\n    #[child(End)]")
        .replace(
            "    #[leaf]",
            "    #[was(\"Center\")]\n    #[child(End)]\n    Middle,\n\n    #[leaf]",
        );
    let package = Package::of(&[
        ("old.rs", "mod life;\n"),
        ("life.rs", GRAPH),
        ("new.rs", &wider),
        ("wrong.rs", "#[lifecycle_graph] enum Life {}"),
        ("none.rs", "fn main() {}"),
    ]);
    let diff = |old, new| package.okt(&["diff", old, new]);
    let output = diff("old.rs", "new.rs");
    assert!(output.status.success(), "{}", errors(&output));
    let expected = "+ Life: state `Middle`\n+ Life: child `Start → Middle`\n";
    assert_eq!(printed(&output), expected);
    let output = diff("new.rs", "old.rs");
    assert_eq!(output.status.code(), Some(1));
    let text = printed(&output);
    let lost =
        "- Life: state `Middle`\n    an object that is stored in it has no place in the graph\n";
    assert!(text.starts_with(lost), "{text}");
    let losses = "error: stored objects lose something by 2 of 3 changes\n";
    assert_eq!(errors(&output), losses);
    for (old, new, expected) in [
        ("old.rs", "life.rs", "no differences\n"),
        (
            "old.rs",
            "wrong.rs",
            "error: wrong.rs has mistakes; see `cargo okt check`\n",
        ),
        ("none.rs", "old.rs", "error: there is no graph in none.rs\n"),
    ] {
        assert_eq!(package.errors(&["diff", old, new]), expected);
    }
}

#[test]
fn a_rule_is_explained_by_its_code() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for code in ["OKT005", "okt5", "5"] {
        let output = okt(here, &["explain", code]);
        assert!(printed(&output).starts_with("# OKT005: "), "{code}");
    }
    let unknown = "error: there is no rule OKT099; there are 28, OKT001 to OKT028\n";
    assert_eq!(errors(&okt(here, &["explain", "OKT099"])), unknown);
}
