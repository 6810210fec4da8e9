//! This file is the tour: a Kubernetes API, an operator and real servers, through a whole lifecycle with failures.
//!
//! One program plays all parts, each in a process of its own:
//!
//! ```text
//!   tour ──▶ the API, in this process, served on loopback
//!     └──▶ tour run      the operator, connected by a kubeconfig
//!            └──▶ tour serve …   a document server per notebook, with an agent in it; they outlive the operator
//! ```

mod accidents;
mod data;
mod scene;
mod stops;

use std::process::ExitCode;

use clap::Parser;
use okt_examples::notes::{ServeArgs, serve};
use okt_examples::notes_operator::Keeper;
use okt_examples::{screen, shutdown_signal};

use crate::scene::Scene;

/// What to do after the tour.
const NEXT: &str = "\
What to do next:
  cargo run --bin tour -- --serve          use kubectl with three new notebooks
  cargo run --bin notes-operator -- crd    read the CRD, which holds the graph
  cargo run -p cargo-okt -- okt new PATH   create an operator of your own
  README.md                                read the smallest operator";

/// Demonstrates a lifecycle, and checks every step.
#[derive(Parser)]
#[command(
    after_help = "The operator of the tour is this program too: `tour run` and `tour crd` do what every operator built with OKT does."
)]
struct Tour {
    /// Keep running afterwards, with three new notebooks, for kubectl.
    #[arg(long)]
    serve: bool,
}

/// What the operator of the tour runs to be a server.
#[derive(Parser)]
enum Server {
    /// Serves a prepared directory.
    Serve(ServeArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("run" | "crd") => okt::main(Keeper::connect).await,
        Some("serve") => {
            okt_examples::log_to_stderr();
            let Server::Serve(args) = Server::parse();
            serve(args).await
        }
        _ => tour(Tour::parse()).await,
    }
}

async fn tour(tour: Tour) -> ExitCode {
    let mut scene = match Scene::set().await {
        Ok(scene) => scene,
        Err(error) => {
            eprintln!("cannot begin: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut outcome = tokio::select! {
        outcome = stops::all(&mut scene) => outcome,
        () = shutdown_signal() => Err("interrupted".into()),
    };
    if tour.serve && outcome.is_ok() {
        outcome = tokio::select! {
            outcome = stops::stay(&scene) => outcome,
            // This part ends by a signal only.
            () = shutdown_signal() => Ok(()),
        };
    }
    if let Err(error) = &outcome {
        screen::trouble(&format!("the tour ends here: {error}"));
        scene.show_operator_log();
    }
    scene.strike().await;
    let verdict = screen::verdict(outcome.is_ok());
    if verdict == ExitCode::SUCCESS && !tour.serve {
        screen::note(NEXT);
    }
    verdict
}
