//! This file is an operator with leader election: several replicas run, and one leads.
//!
//! `leader crd | kubectl apply --server-side -f -`, then `leader run --press http://…` as often as you like.

use std::error::Error;

use clap::{Args, Parser};
use kube::{Client, Config};
use okt::Operator;
use okt_examples::leadership::{Leadership, Seat};
use okt_examples::leaflets::{Leaflet, Printer};
use tokio::signal::unix::{SignalKind, signal};

/// Prints leaflets; one of several replicas leads.
#[derive(Parser)]
enum Line {
    /// Run a replica until SIGTERM.
    Run(Run),
    /// Print the custom resource definition, to be applied before `run`.
    Crd,
}

#[derive(Args)]
struct Run {
    /// The URL of the press.
    #[arg(long, value_name = "URL")]
    press: String,
    /// The lease that the replicas compete for.
    #[arg(long, value_name = "NAME", default_value = "leaflets")]
    lease: String,
    /// The namespace of the lease.
    #[arg(long, value_name = "NAME", default_value = "default")]
    lease_namespace: String,
    /// The duration of the lease after a renewal.
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = clap::value_parser!(u64).range(3..=3600))]
    lease_seconds: u64,
    /// The name of this replica [default: the host name, which is the pod in a cluster].
    #[arg(long, value_name = "NAME")]
    replica: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Line::parse() {
        Line::Run(line) => run(line).await,
        Line::Crd => {
            let crd = okt::crd::<Leaflet>()?;
            println!("{}", serde_json::to_string_pretty(&crd)?);
            Ok(())
        }
    }
}

async fn run(line: Run) -> Result<(), Box<dyn Error>> {
    okt_examples::log_to_stderr();
    let client = Client::try_from(Config::infer().await?)?;
    let host = || std::env::var("HOSTNAME").unwrap_or_else(|_| "leader".to_owned());
    let replica = line.replica.unwrap_or_else(host);
    let mut terminate = signal(SignalKind::terminate())?;

    let leadership = Leadership::seek(
        client.clone(),
        Seat {
            lease: line.lease,
            namespace: line.lease_namespace,
            replica: replica.clone(),
            seconds: line.lease_seconds,
        },
    );
    let ended = Operator::new(client, Printer::new(line.press, replica))
        .leader_election(leadership.is_leader())
        .run(async {
            terminate.recv().await;
        })
        .await;
    // Give up the lease only now: no other replica may begin while work runs here.
    leadership.give_up().await;
    Ok(ended?)
}
