//! The time of `cargo okt check` on a crate with 50 graphs, as a whole process.
//!
//! ```sh
//! cargo bench -p cargo-okt --bench check
//! ```

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

/// Writes a crate of 50 files, each with a graph of 20 states: a ring with a way out of every state.
fn package(folder: &Path) {
    let manifest = "[package]\nname = \"fifty\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("a file");
    let src = folder.join("src");
    std::fs::create_dir_all(&src).expect("a folder");
    let mut root = String::new();
    for graph in 0..50 {
        writeln!(root, "mod graph_{graph};").expect("a String takes any text");
        let mut text = format!(
            "#[lifecycle_graph]\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Graph{graph} {{\n"
        );
        for state in 0..20 {
            let mark = match state {
                0 => "    #[entry]\n",
                9 | 19 => "    #[rest]\n",
                _ => "",
            };
            let next = (state + 1) % 20;
            write!(
                text,
                "    /// One state of many.\n{mark}    #[trigger(Gone, on_error(attempts = 3))]\n    #[child(Gone)]\n    #[child(S{next})]\n    S{state},\n\n"
            )
            .expect("a String takes any text");
        }
        text.push_str("    /// The end.\n    #[leaf(idle)]\n    Gone,\n}\n");
        std::fs::write(src.join(format!("graph_{graph}.rs")), text).expect("a file");
    }
    std::fs::write(src.join("lib.rs"), root).expect("a file");
}

fn check(folder: &Path, args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-okt"))
        .args(["okt", "check"])
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::null())
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(printed, "50 graphs in 51 files: no mistakes\n");
}

fn fifty_graphs(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    package(folder.path());
    let mut group = criterion.benchmark_group("cargo okt check, 50 graphs of 21 states");
    group.sample_size(20);
    group.bench_function("a root file", |bencher| {
        bencher.iter(|| check(folder.path(), &["src/lib.rs"]));
    });
    group.bench_function(
        "the package of this directory (asks cargo for it)",
        |bencher| {
            bencher.iter(|| check(folder.path(), &[]));
        },
    );
    group.finish();
}

criterion_group!(benches, fifty_graphs);
criterion_main!(benches);
