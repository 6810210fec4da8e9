//! The operator of lamps in its second release, for tests of `preview`.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_tests::lamps::second::Lamps;

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Lamps) }).await
}
