//! Builds the program in `okt-apiserver/kubernetes`, once for each version of its sources.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::{KubernetesError, report};

const GO_MOD: &str = include_str!("../../kubernetes/go.mod");

const SOURCES: [(&str, &str); 9] = [
    (
        "controllers.go",
        include_str!("../../kubernetes/controllers.go"),
    ),
    ("etcd.go", include_str!("../../kubernetes/etcd.go")),
    ("go.mod", GO_MOD),
    ("go.sum", include_str!("../../kubernetes/go.sum")),
    ("kubectl.go", include_str!("../../kubernetes/kubectl.go")),
    ("lifetime.go", include_str!("../../kubernetes/lifetime.go")),
    ("main.go", include_str!("../../kubernetes/main.go")),
    ("server.go", include_str!("../../kubernetes/server.go")),
    (
        "since_1_36.go",
        include_str!("../../kubernetes/since_1_36.go"),
    ),
];

/// The number of lines of Go's output that an error shows.
const LINES: usize = 40;

/// Without what a debugger needs, which `-w` would drop at the end: less work and half the disk space.
const RELEASE: &str = "-gcflags=all=-dwarf=false";

/// Compiles in two thirds of the time, and makes a slower program.
const UNOPTIMIZED: &str = "-gcflags=all=-N -l -dwarf=false";

/// Returns whether the program is built for one run on a machine that keeps no cache.
fn is_quick() -> bool {
    std::env::var_os("CI").is_some()
}

/// Returns the program and builds it if it is not in the cache. A build blocks for minutes.
pub(super) fn program(go: &Path, cache: &Path) -> Result<PathBuf, KubernetesError> {
    build(go, cache, &SOURCES)
}

fn build(go: &Path, cache: &Path, sources: &[(&str, &str)]) -> Result<PathBuf, KubernetesError> {
    let quick = if is_quick() { "-quick" } else { "" };
    let directory = cache.join(format!("kubernetes-{}{quick}", hash(sources)));
    let program = directory.join("kubernetes");
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&directory)?;
    // Only one process builds; the others wait here and then find the program. The lock is released
    // when its holder dies, so a killed build blocks no other process.
    let lock = File::create(directory.join("lock"))?;
    lock.lock()?;
    if program.is_file() {
        return Ok(program);
    }
    let source = directory.join("source");
    fs::create_dir_all(&source)?;
    for (name, text) in sources {
        fs::write(source.join(name), text)?;
    }
    report(
        "building a Kubernetes API server from okt-apiserver/kubernetes: once, about 5 minutes, \
         150 MB in the cache",
    );
    let unfinished = directory.join("unfinished");
    let output = command(go, &source, &unfinished).output()?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<_> = printed.lines().collect();
        let end = &lines[lines.len().saturating_sub(LINES)..];
        return Err(KubernetesError::Build(end.join("\n")));
    }
    // The rename is atomic, so no process sees an incomplete program.
    fs::rename(&unfinished, &program)?;
    Ok(program)
}

/// `go build`, with the versions that Kubernetes' own builds write into the program.
fn command(go: &Path, source: &Path, output: &Path) -> Command {
    let version = version();
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or(""), numbers.next().unwrap_or(""));
    let set = |name, value| format!(" -X k8s.io/component-base/version.{name}={value}");
    let flags = [
        "-s -w".to_owned(),
        set("gitVersion", version),
        set("gitMajor", major),
        set("gitMinor", minor),
    ]
    .concat();
    let mut command = Command::new(go);
    command
        .current_dir(source)
        .args(["build", "-trimpath", "-ldflags", &flags]);
    if is_quick() {
        command.arg(UNOPTIMIZED).env("GOGC", "400");
    } else {
        command.arg(RELEASE);
    }
    command
        .arg("-o")
        .args([output.as_os_str(), OsStr::new(".")])
        // Needs no C compiler.
        .env("CGO_ENABLED", "0")
        // Ignore a workspace above the cache and settings for cross-compilation.
        .env("GOWORK", "off")
        .env_remove("GOFLAGS")
        .env_remove("GOOS")
        .env_remove("GOARCH");
    command
}

/// Returns the version of Kubernetes in `go.mod` (e.g. `v1.36.1`).
fn version() -> &'static str {
    let required = |line: &'static str| line.trim().strip_prefix("k8s.io/kubernetes ");
    GO_MOD.lines().find_map(required).unwrap_or("v0.0.0")
}

fn hash(sources: &[(&str, &str)]) -> String {
    let mut hash = Sha256::new();
    for (name, text) in sources {
        hash.update(name.len().to_le_bytes());
        hash.update(name);
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    let hash = hash.finalize();
    // Long enough to distinguish versions, and short enough to read.
    let start = hash.first_chunk().copied().unwrap_or_default();
    format!("{:016x}", u64::from_be_bytes(start))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use tempfile::TempDir;

    use super::{build, hash, version};
    use crate::KubernetesError;

    /// Creates a fake `go` that runs this script; `$out` is the file to build.
    fn go(directory: &TempDir, script: &str) -> PathBuf {
        let go = directory.path().join("go");
        let script = format!(
            "#!/bin/sh\nfor out; do case $out in */unfinished) break;; esac; done\n{script}\n"
        );
        // Another process writes it: a file that this one has open for writing cannot run while another test forks.
        let written = Command::new("sh")
            .args(["-c", "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\""])
            .arg(&go)
            .arg(script)
            .status();
        assert!(written.unwrap().success());
        go
    }

    #[test]
    fn the_version_is_that_of_go_mod() {
        assert!(version().starts_with("v1."), "{}", version());
    }

    #[test]
    fn each_change_of_the_sources_changes_the_hash() {
        assert_ne!(hash(&[("a", "b")]), hash(&[("a", "c")]));
        assert_ne!(hash(&[("a", "bc")]), hash(&[("ab", "c")]));
    }

    #[test]
    fn the_program_is_built_once() {
        let directory = tempfile::tempdir().unwrap();
        let go = go(&directory, "echo built >>\"$out\"; cat main.go >>\"$out\"");
        let sources = [("main.go", "source")];
        let built = build(&go, directory.path(), &sources).unwrap();
        assert_eq!(fs::read_to_string(&built).unwrap(), "built\nsource");
        assert_eq!(build(&go, directory.path(), &sources).unwrap(), built);
        assert_eq!(fs::read_to_string(&built).unwrap(), "built\nsource");
    }

    #[test]
    fn a_failed_build_shows_the_output_of_go_and_keeps_no_program() {
        let directory = tempfile::tempdir().unwrap();
        let go = go(
            &directory,
            "echo half >\"$out\"; echo 'main.go:1: odd' >&2; exit 1",
        );
        let sources = [("main.go", "source")];
        for _ in 0..2 {
            let error = build(&go, directory.path(), &sources).unwrap_err();
            assert!(matches!(error, KubernetesError::Build(text) if text == "main.go:1: odd"));
        }
    }
}
