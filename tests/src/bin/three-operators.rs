//! Three operators in one program, for tests of it as a process: of a kind in namespaces, of one that lives in none, and of a pass.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_runtime::Program;
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
