//! The operator of mills, for tests of approvals.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_tests::Mills;

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Mills::default()) }).await
}
