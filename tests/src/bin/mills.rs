//! The operator of mills, for tests of approvals.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_tests::Mills;

#[tokio::main]
async fn main() -> ExitCode {
    let mills = Mills::default();
    *mills.release.lock() = std::env::var("MILL_RELEASE").ok();
    okt::main(|_| async { Ok::<_, Infallible>(mills) }).await
}
