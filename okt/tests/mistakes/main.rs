//! Mistakes in an operator: how many errors each one is, and the first error of the compiler.
//!
//! Each mistake changes one place of `operator.rs`. All of them are compiled by one `cargo check`, and `said.md` has the
//! result: run with `UPDATE_EXPECT=1` to write it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

/// No mistake may be more errors than this.
const MOST: usize = 3;

mod list;

use list::MISTAKES;

const OPERATOR: &str = include_str!("operator.rs");

/// A mistake: its description, what stands in the operator, and what stands there instead.
struct Mistake {
    what: &'static str,
    /// How many errors it may be, and why it may be more than usual.
    more: Option<(usize, &'static str)>,
    from: String,
    to: String,
}

fn mistakes() -> Vec<Mistake> {
    let blocks = MISTAKES.trim().split("\n\n");
    let mistakes = blocks.map(|block| {
        let marked = |sign: char| -> Vec<&'static str> {
            let lines = block.lines().filter_map(|line| line.strip_prefix(sign));
            lines.collect()
        };
        let (mut from, to) = (marked('-').join("\n"), marked('+').join("\n"));
        let more = marked('!').first().and_then(|more| more.split_once(' '));
        if to.is_empty() {
            from.push('\n');
        }
        Mistake {
            what: block.lines().next().unwrap_or_default(),
            more: more.map(|(most, why)| (most.parse().expect("a number"), why)),
            from,
            to,
        }
    });
    mistakes.collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes a package with one binary for each mistake, and one without.
fn write_package(at: &Path) {
    let binaries = at.join("src/bin");
    let _ = fs::remove_dir_all(at.join("src"));
    fs::create_dir_all(&binaries).expect("a directory");
    let okt = repository().join("okt").canonicalize().expect("a path");
    let manifest = format!(
        "[package]\nname = \"mistakes\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\nokt = {{ path = \"{}\" }}\ntokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n",
        okt.display(),
    );
    fs::write(at.join("Cargo.toml"), manifest).expect("written");
    // The versions of the workspace, so that nothing is looked up or downloaded.
    fs::copy(repository().join("Cargo.lock"), at.join("Cargo.lock")).expect("a copy");
    fs::write(binaries.join("none.rs"), OPERATOR).expect("written");
    for (number, Mistake { what, from, to, .. }) in mistakes().iter().enumerate() {
        assert_eq!(OPERATOR.matches(from).count(), 1, "{what}: {from}");
        let code = OPERATOR.replace(from, to);
        fs::write(binaries.join(format!("{}.rs", binary(number))), code).expect("written");
    }
}

fn binary(number: usize) -> String {
    format!("mistake_{:02}", number + 1)
}

/// Returns the errors of each binary, rendered as the compiler shows them.
fn errors(at: &Path) -> BTreeMap<String, Vec<String>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut check = Command::new(cargo);
    // What Cargo tells this test of its package: build scripts would run again, and what depends on them.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" {
            check.env_remove(name);
        }
    }
    let checked = check
        .args([
            "check",
            "--offline",
            "--bins",
            "--keep-going",
            "--message-format=json",
        ])
        .current_dir(at)
        // It has most dependencies already, checked for lints.
        .env("CARGO_TARGET_DIR", repository().join("target"))
        .env("RUSTFLAGS", "")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    let lines = String::from_utf8(checked.stdout).expect("UTF-8");
    let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut finished = false;
    for line in lines.lines() {
        let message: Value = serde_json::from_str(line).expect("JSON");
        finished |= message["reason"] == "build-finished";
        let error = &message["message"];
        // The last message of a binary counts the others, and names no place.
        let has_place = error["spans"]
            .as_array()
            .is_some_and(|spans| !spans.is_empty());
        if message["reason"] == "compiler-message" && error["level"] == "error" && has_place {
            let name = message["target"]["name"]
                .as_str()
                .expect("a name")
                .to_owned();
            let rendered = error["rendered"].as_str().expect("a text").to_owned();
            errors.entry(name).or_default().push(rendered);
        }
    }
    assert!(finished, "cargo check did not end");
    errors
}

#[test]
#[ignore = "builds kube once more; run with --include-ignored"]
fn each_mistake_is_at_most_three_errors_and_the_first_says_what_to_do() {
    let at = repository().join("target/mistakes");
    write_package(&at);
    let errors = errors(&at);
    assert_eq!(errors.get("none"), None, "the operator without a mistake");
    let mut page = String::from(
        "# Mistakes\n\nThe first thing that the compiler says about each mistake in an operator; written by `UPDATE_EXPECT=1 cargo test -p okt --test mistakes -- --include-ignored`.\n",
    );
    let mut too_many = Vec::new();
    for (number, mistake) in mistakes().iter().enumerate() {
        let Mistake {
            what,
            more,
            from,
            to,
        } = mistake;
        let reported = errors.get(&binary(number)).cloned().unwrap_or_default();
        println!("{:2} errors: {what}", reported.len());
        let most = more.map_or(MOST, |(most, _)| most);
        if reported.len() > most {
            too_many.push(format!("{what}: {}", reported.len()));
        }
        page += &format!("\n## {}. {what}\n\n```diff\n", number + 1);
        for (sign, lines) in [('-', from), ('+', to)] {
            for line in lines.lines().filter(|line| !line.trim().is_empty()) {
                page += &format!("{sign}{line}\n");
            }
        }
        // How often the compiler reports the same differs from machine to machine.
        page += &match more {
            Some((_, why)) => format!("```\n\nErrors: more than {MOST}: {why}\n"),
            None => format!("```\n\nErrors: {}\n", reported.len()),
        };
        if reported.is_empty() {
            continue;
        }
        page += "\n```text\n";
        page += moved_left(&without_foreign_places(&reported[0])).trim_end();
        page += "\n```\n";
    }
    expect_test::expect_file!["said.md"].assert_eq(&page);
    assert_eq!(too_many, [""; 0]);
}

/// Leaves out the lines of files of the registry, of OKT and of the compiler, which differ between versions.
fn without_foreign_places(message: &str) -> String {
    let mut kept = String::new();
    let mut is_foreign = false;
    for line in message.lines() {
        let place = line.find("--> /").or_else(|| line.find("::: /"));
        let is_code = line
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || "|.".contains(c));
        is_foreign = place.is_some() || (is_foreign && is_code);
        match place {
            Some(place) => kept += &format!("{}..\n", &line[..place + 4]),
            None if is_foreign => {}
            None => kept += &format!("{line}\n"),
        }
    }
    kept
}

/// Moves the code of a message to the left, as far as the numbers of its lines allow.
///
/// The compiler also leaves room for the numbers of foreign lines: those of the standard library, if its source is
/// installed.
fn moved_left(message: &str) -> String {
    let room = message.lines().find_map(|line| line.find("-->"));
    let numbers = message.lines().filter_map(|line| {
        let (number, _) = line.trim_start().split_once(' ')?;
        number.parse::<u32>().is_ok().then_some(number.len())
    });
    let needed = numbers.max().unwrap_or_default();
    let too_much = " ".repeat(room.unwrap_or_default().saturating_sub(needed));
    let mut moved = String::new();
    for line in message.lines() {
        let is_code = line
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || "|-:=".contains(c));
        let code = line.strip_prefix(&too_much).filter(|_| is_code);
        moved += code.unwrap_or(line);
        moved.push('\n');
    }
    moved
}
