//! This file is the first release of the operator of tents, from which `tents` is an upgrade.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_examples::tents::v1alpha1::Camp;

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Camp) }).await
}
