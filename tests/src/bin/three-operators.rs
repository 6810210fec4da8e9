//! This program runs three operators, for tests of the process: of a namespaced kind, of a cluster-scoped one, and of a
//! pass.

use std::convert::Infallible;
use std::process::ExitCode;

use okt::Program;
use okt_tests::{Charts, Databases, Sites};

#[tokio::main]
async fn main() -> ExitCode {
    Program::new()
        .with(|_| async { Ok::<_, Infallible>(Databases::default()) })
        .with(|_| async { Ok::<_, Infallible>(Sites::default()) })
        .with(|_| async { Ok::<_, Infallible>(Charts::default()) })
        .main()
        .await
}
