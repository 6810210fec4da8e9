//! This file is an operator of a fleet: a few of its shops take a new release at a time, across all replicas.
//!
//! `fleet crd | kubectl apply --server-side -f -`, then `fleet run --leader-election --shards auto` as often as you like.

use std::convert::Infallible;
use std::process::ExitCode;

use okt::Program;
use okt_examples::fleet::Fleet;

#[tokio::main]
async fn main() -> ExitCode {
    Program::with_options::<Fleet>()
        .with_connected(|_, fleet| async { Ok::<_, Infallible>(fleet) })
        .main()
        .await
}
