//! The operator: `run`, `crd`, `rbac`, `manifests` and more; `--help` lists its subcommands.

use std::process::ExitCode;

use okt::Program;

#[tokio::main]
async fn main() -> ExitCode {
    Program::new().main().await
}
