//! This file is an operator of tents, whose kind has three versions; it converts them into each other.
//!
//! `tents manifests --image IMAGE | kubectl apply --server-side -f -` installs it, with the Service that the API server
//! asks.

use std::convert::Infallible;
use std::process::ExitCode;

use okt_examples::tents::v1::Camp;

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Camp) }).await
}
