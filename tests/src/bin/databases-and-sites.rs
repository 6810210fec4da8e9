//! Two operators in one program, for tests of it as a process.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_runtime::Program;
use okt_tests::{Databases, Sites};

#[tokio::main]
async fn main() -> ExitCode {
    Program::new()
        .with(|_| async { Ok::<_, Infallible>(Databases::default()) })
        .with(|_| async { Ok::<_, Infallible>(Sites::default()) })
        .main()
        .await
}
