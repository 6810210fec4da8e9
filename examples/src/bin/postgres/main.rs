//! This file is the PostgreSQL demo: a real server, its agent and its operator, through a whole lifecycle with
//! failures.
//!
//! One program plays all parts, each in a process of its own:
//!
//! ```text
//!   postgres ──▶ the API, in this process, served on loopback; or a cluster, by its kubeconfig
//!     ├──▶ postgres run          the operator
//!     └──▶ postgres agent …  the agent, which starts PostgreSQL; both outlive the operator
//! ```

mod demo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Api, Client};
use okt::crd;
use okt_examples::desk::{Desk, Trouble};
use okt_examples::postgres::life::Postgres;
use okt_examples::postgres::operator::connect;
use okt_examples::postgres::stage::Stage;
use okt_examples::{screen, shutdown_signal};
use okt_sidecar::{Config, Machine, run};
use okt_testing::ApiServer;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(10);

/// The namespace of the server.
const NAMESPACE: &str = "default";

/// Runs a real PostgreSQL through its lifecycle, and checks that no commit is lost.
#[derive(Parser)]
#[command(
    after_help = "The operator and the agent of the show are this program too: `postgres run` and `postgres crd` do what every operator built with OKT does, `postgres agent` what okt-sidecar does."
)]
struct Show {
    /// The cluster whose objects are changed [default: an API server inside this process].
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// An agent, as a process of its own.
#[derive(Parser)]
enum Agent {
    /// What okt-sidecar does with this file.
    Agent { file: PathBuf },
    /// What an agent starts its commands with.
    Launch,
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        // The agent brings its own runtime.
        Some("agent" | "launch") => match Agent::parse() {
            Agent::Agent { file } => agent(&file),
            Agent::Launch => okt_sidecar::launch(),
        },
        _ => plays(),
    }
}

fn agent(file: &Path) -> ExitCode {
    okt_examples::log_to_stderr();
    let config = Config::read(file, Machine::Here).map_err(|error| error.to_string());
    let ran = config.and_then(|config| run(config).map_err(|error| error.to_string()));
    ran.map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

#[tokio::main]
async fn plays() -> ExitCode {
    if let Some("run" | "crd" | "rbac") = std::env::args().nth(1).as_deref() {
        return okt::main(connect).await;
    }
    let outcome = show(Show::parse()).await;
    if let Err(error) = &outcome {
        screen::trouble(&format!("the show ends here: {error}"));
    }
    screen::verdict(outcome.is_ok())
}

async fn show(show: Show) -> Result<(), Trouble> {
    let Some(kubeconfig) = show.kubeconfig else {
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let served = ApiServer::new().serve().await?;
        served.write_kubeconfig(&kubeconfig)?;
        let outcome = on(&kubeconfig).await;
        served.shutdown().await;
        return outcome;
    };
    on(&kubeconfig).await
}

/// Runs the whole demo on a cluster.
async fn on(kubeconfig: &Path) -> Result<(), Trouble> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config =
        kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = crd::<Postgres>()?;
    let name = definition.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::apply("okt-show").force();
    crds.patch(&name, &params, &Patch::Apply(&definition))
        .await?;
    let established = await_condition(crds, &name, is_crd_established());
    tokio::time::timeout(PATIENCE, established).await??;
    let desk = Desk {
        api: Api::namespaced(client, NAMESPACE),
        patience: PATIENCE,
    };
    let teller = tokio::spawn(desk.clone().print_transitions());
    let mut stage = Stage::set(std::env::current_exe()?, kubeconfig)?;
    let outcome = tokio::select! {
        outcome = demo::all(&mut stage, &desk, NAMESPACE) => outcome,
        () = shutdown_signal() => Err("interrupted".into()),
    };
    teller.abort();
    if outcome.is_err() || screen::failures() > 0 {
        screen::note(&stage.said(20));
        for postgres in desk.api.list(&ListParams::default()).await? {
            screen::note(&serde_json::to_string_pretty(&postgres.status)?);
        }
    }
    outcome
}
