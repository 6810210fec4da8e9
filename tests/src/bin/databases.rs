//! The database operator, for tests of the command line.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_tests::Databases;

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Databases::default()) }).await
}
