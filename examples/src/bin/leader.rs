//! This file is an operator with options of its own, whose replicas share the work: one leads, or each has its part.
//!
//! `leader crd | kubectl apply --server-side -f -`, then `leader run --leader-election --press http://…` as often as you
//! like; with `--shards auto` all of them work.

use std::convert::Infallible;
use std::process::ExitCode;

use clap::Args;
use okt::Program;
use okt_examples::leaflets::Printer;

/// The options of this operator, in addition to those of OKT.
#[derive(Args, Clone)]
struct Options {
    /// The URL of the press.
    #[arg(long, value_name = "URL")]
    press: String,
    /// The name of this replica, for the press [default: the host name, which is that of the pod].
    #[arg(long, value_name = "NAME", env = "HOSTNAME", default_value = "leader")]
    replica: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    Program::with_options::<Options>()
        .with_connected(|_, options| async {
            Ok::<_, Infallible>(Printer::new(options.press, options.replica))
        })
        .main()
        .await
}
