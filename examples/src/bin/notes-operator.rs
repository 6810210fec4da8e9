//! This file is the operator of `notes` as a program: `run` and `crd`, and `serve` for the servers it starts.

use std::process::ExitCode;

use clap::Parser;
use okt_examples::notes::{ServeArgs, serve};
use okt_examples::notes_operator::Keeper;

/// What the operator runs itself as, to be a server.
#[derive(Parser)]
enum Server {
    /// Serves a prepared directory.
    Serve(ServeArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        okt_examples::log_to_stderr();
        let Server::Serve(args) = Server::parse();
        return serve(args).await;
    }
    okt::main(Keeper::connect).await
}
