//! The other side, built and started: a Go program on the Achilles SDK in `tests/benches/achilles`.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use okt_tests::measured::{Host, Process};

use crate::child::Job;

/// The built program.
pub(crate) struct Achilles(PathBuf);

impl Achilles {
    /// Builds the program; `None` if Go is not installed.
    pub(crate) fn build() -> Result<Option<Self>, Box<dyn Error>> {
        if let Err(error) = Command::new("go").arg("version").output() {
            println!("no side by side: go: {error}");
            return Ok(None);
        }
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("achilles");
        let built = Command::new("go")
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/achilles"))
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .output()?;
        if built.status.success() {
            Ok(Some(Self(program)))
        } else {
            let printed = String::from_utf8_lossy(&built.stderr);
            Err(format!("tests/benches/achilles does not build: {printed}").into())
        }
    }

    /// Starts the program for the charts of a namespace.
    pub(crate) fn start(
        &self,
        job: Job,
        host: &Host,
        namespace: &str,
        expected: usize,
    ) -> io::Result<Process> {
        // Otherwise the program sends ConfigMaps as protobuf, which the test double does not support.
        let media = if host.json_only { "json" } else { "any" };
        Process::start(Command::new(&self.0).arg(&host.kubeconfig).args([
            namespace,
            &expected.to_string(),
            job.name(),
            media,
        ]))
    }
}
