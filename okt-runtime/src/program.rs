//! A whole operator program: `run` and `crd` on the command line.

use std::error::Error;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kube::{Client, Config};
use okt_core::Lifecycle;

use crate::application::{Application, StateOf};
use crate::crd::crd;
use crate::failure::chain;
use crate::operator::{Operator, OperatorError};

/// Keeps the lives of applications.
#[derive(Parser)]
#[command(arg_required_else_help = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator until SIGTERM or Ctrl-C.
    Run {
        /// Look at this namespace only; may be given several times.
        #[arg(long, value_name = "NAME")]
        namespace: Vec<String>,
    },
    /// Print the custom resource definition, to be applied before `run`.
    Crd,
}

/// The `main` of an operator: reads the command line, connects, and runs.
///
/// Where the cluster is comes from `KUBECONFIG`, the default kubeconfig, or the pod it runs in.
/// Logs go to standard error, as `RUST_LOG` says (by default `info`).
///
/// ```no_run
/// # use okt_runtime::Application;
/// # use std::process::ExitCode;
/// # async fn connect<A: Application>(client: kube::Client) -> Result<A, std::io::Error> { todo!() }
/// # async fn example<A: Application>() -> ExitCode {
/// okt_runtime::main(connect::<A>).await // run | crd
/// # }
/// ```
pub async fn main<A, C, F, E>(connect: C) -> ExitCode
where
    A: Application,
    C: FnOnce(Client) -> F,
    F: Future<Output = Result<A, E>>,
    E: Error,
{
    match Line::parse().command {
        Command::Run { namespace } => run(connect, namespace).await,
        Command::Crd => match definition::<A>() {
            Ok(yaml) => print(&yaml),
            Err(why) => fail(&why),
        },
    }
}

async fn run<A, C, F, E>(connect: C, namespaces: Vec<String>) -> ExitCode
where
    A: Application,
    C: FnOnce(Client) -> F,
    F: Future<Output = Result<A, E>>,
    E: Error,
{
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // A program that has set up logging of its own keeps it.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
    let config = match Config::infer().await {
        Ok(config) => config,
        Err(error) => return fail(&format!("cannot find a cluster: {}", chain(&error))),
    };
    let address = config.cluster_url.to_string();
    let client = match Client::try_from(config) {
        Ok(client) => client,
        Err(error) => return fail(&format!("cannot connect to {address}: {}", chain(&error))),
    };
    let application = match connect(client.clone()).await {
        Ok(application) => application,
        Err(error) => return fail(&format!("cannot begin: {}", chain(&error))),
    };
    tracing::info!(graph = StateOf::<A>::GRAPH.name, "operator starts");
    let operator = Operator::new(client, application).namespaces(namespaces);
    match operator.run(told_to_stop()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(OperatorError::NoContact(error)) => fail(&format!(
            "cannot reach the Kubernetes API at {address}: {}",
            chain(&error)
        )),
        Err(
            error @ (OperatorError::Crd(_)
            | OperatorError::ClusterScoped(_)
            | OperatorError::Pass(_)),
        ) => fail(&format!("cannot {}", chain(&error))),
    }
}

/// Ends at SIGTERM or Ctrl-C.
async fn told_to_stop() {
    let interrupt = async {
        // Without the signal the operator is stopped the hard way, which it is made for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! {
                () = interrupt => {}
                _ = terminate.recv() => {}
            },
            Err(_) => interrupt.await,
        }
    }
    #[cfg(not(unix))]
    interrupt.await;
}

/// The CRD as YAML.
fn definition<A: Application>() -> Result<String, String> {
    let crd = crd::<A::Resource>().map_err(|error| error.to_string())?;
    serde_saphyr::to_string(&crd).map_err(|error| format!("cannot write YAML: {error}"))
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&format!("cannot print: {error}")),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}
