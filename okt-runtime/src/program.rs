//! A whole operator program, of one operator or several: `run`, `crd` and `rbac` on the command line.

use std::error::Error;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, try_join_all};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Config, CustomResourceExt};
use okt_core::Lifecycle;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::application::{Application, StateOf};
use crate::crd::crd;
use crate::failure::chain;
use crate::in_use::InUse;
use crate::operator::{Operator, OperatorError};
use crate::rbac::{ServiceAccount, rbac};
use crate::union::crd_union;

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
    Crd {
        /// For one release of an upgrade: also take what the operator of this CRD writes; `-` reads standard input.
        #[arg(long, value_name = "OLD.YAML")]
        union: Option<PathBuf>,
    },
    /// Print the roles: the least that `run` needs, and those of people who view or edit the objects.
    ///
    /// What the handlers themselves ask of the cluster is yours to add.
    Rbac {
        /// As given to `run`: roles in this namespace instead of the whole cluster; may be given several times.
        #[arg(long, value_name = "NAME")]
        namespace: Vec<String>,
        /// Print the bindings too, for this service account.
        #[arg(long, value_name = "NAMESPACE/NAME")]
        service_account: Option<ServiceAccount>,
    },
}

/// The `main` of an operator: reads the command line, connects, and runs.
///
/// Where the cluster is comes from `KUBECONFIG`, the default kubeconfig, or the pod it runs in.
/// Logs go to standard error, as `RUST_LOG` says (by default `info`).
/// For several operators in one process see [`Program`].
///
/// ```no_run
/// # use okt_runtime::Application;
/// # use std::process::ExitCode;
/// # async fn example<A: Application>(connect: fn(kube::Client) -> std::future::Ready<std::io::Result<A>>) -> ExitCode {
/// okt_runtime::main(connect).await // run | crd | rbac
/// # }
/// ```
pub async fn main<A, C, F, E>(connect: C) -> ExitCode
where
    A: Application,
    C: FnOnce(Client) -> F + 'static,
    F: Future<Output = Result<A, E>> + 'static,
    E: Error + 'static,
{
    Program::new().with(connect).main().await
}

/// A program of several operators, each for a kind of its own.
///
/// ```no_run
/// # use okt_runtime::{Application, Program};
/// # use std::process::ExitCode;
/// # type Connect<A> = fn(kube::Client) -> std::future::Ready<std::io::Result<A>>;
/// # async fn example<A: Application, B: Application>(databases: Connect<A>, sites: Connect<B>) -> ExitCode {
/// Program::new().with(databases).with(sites).main().await
/// # }
/// ```
#[derive(Default)]
pub struct Program {
    parts: Vec<Part>,
}

/// One operator of a program.
struct Part {
    crd_name: fn() -> &'static str,
    definition: fn(Option<&CustomResourceDefinition>) -> Result<String, String>,
    roles: fn(&[String], Option<&ServiceAccount>) -> Result<String, String>,
    run: Box<dyn FnOnce(Surroundings) -> LocalBoxFuture<'static, Result<(), String>>>,
}

/// What a program gives to each of its operators.
#[derive(Clone)]
struct Surroundings {
    client: Client,
    /// Where the API server is, for people.
    address: String,
    namespaces: Vec<String>,
    stopping: CancellationToken,
}

impl Program {
    /// A program without operators.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one operator more; `connect` makes its application when the program runs.
    #[must_use]
    pub fn with<A, C, F, E>(mut self, connect: C) -> Self
    where
        A: Application,
        C: FnOnce(Client) -> F + 'static,
        F: Future<Output = Result<A, E>> + 'static,
        E: Error + 'static,
    {
        self.parts.push(Part {
            crd_name: A::Resource::crd_name,
            definition: definition::<A>,
            roles: roles::<A>,
            run: Box::new(|surroundings| run(connect, surroundings).boxed_local()),
        });
        self
    }

    /// Reads the command line and does what it says, until SIGTERM or Ctrl-C.
    ///
    /// Then it begins nothing more, and waits for the work that runs ([`Operator::shutdown_limit`]); a second
    /// signal ends it at once.
    /// The first operator that cannot begin ends the program.
    pub async fn main(self) -> ExitCode {
        let done = match Line::parse().command {
            Command::Run { namespace } => self.run(namespace).await,
            Command::Crd { union } => {
                let yaml = self.definitions(union.as_deref());
                yaml.and_then(|yaml| print(&yaml))
            }
            Command::Rbac {
                namespace,
                service_account,
            } => self
                .documents(|part| (part.roles)(&namespace, service_account.as_ref()))
                .and_then(|yaml| print(&yaml)),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("error: {why}");
                ExitCode::FAILURE
            }
        }
    }

    /// The CRDs as one stream of YAML, each joined with the one in use.
    fn definitions(&self, union: Option<&Path>) -> Result<String, String> {
        let in_use = union.map(InUse::read).transpose()?;
        let names: Vec<_> = self.parts.iter().map(|part| (part.crd_name)()).collect();
        let olds = match &in_use {
            Some(in_use) => in_use.of(&names)?,
            None => vec![None; names.len()],
        };
        stream((self.parts.iter().zip(olds)).map(|(part, old)| (part.definition)(old)))
    }

    /// What each operator has to print, as one stream of YAML.
    fn documents(&self, of: impl Fn(&Part) -> Result<String, String>) -> Result<String, String> {
        stream(self.parts.iter().map(of))
    }

    async fn run(self, namespaces: Vec<String>) -> Result<(), String> {
        let filter = tracing_subscriber::EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
        // A program that has set up logging of its own keeps it.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .try_init();
        let config = (Config::infer().await)
            .map_err(|error| format!("cannot find a cluster: {}", chain(&error)))?;
        let address = config.cluster_url.to_string();
        let client = Client::try_from(config)
            .map_err(|error| format!("cannot connect to {address}: {}", chain(&error)))?;
        let stopping = CancellationToken::new();
        let surroundings = Surroundings {
            client,
            address,
            namespaces,
            stopping: stopping.clone(),
        };
        let running = self
            .parts
            .into_iter()
            .map(|part| (part.run)(surroundings.clone()));
        let mut running = pin!(try_join_all(running));
        tokio::select! {
            ended = &mut running => return ended.map(drop),
            () = told_to_stop() => {}
        }
        stopping.cancel();
        tokio::select! {
            ended = running => ended.map(drop),
            // What runs is resumed by the next operator, as after a crash.
            () = told_to_stop() => Err("stopped at once: it was told to a second time".to_owned()),
        }
    }
}

async fn run<A, C, F, E>(connect: C, surroundings: Surroundings) -> Result<(), String>
where
    A: Application,
    C: FnOnce(Client) -> F,
    F: Future<Output = Result<A, E>>,
    E: Error,
{
    let Surroundings {
        client,
        address,
        namespaces,
        stopping,
    } = surroundings;
    let application = tokio::select! {
        connected = connect(client.clone()) => {
            connected.map_err(|error| format!("cannot begin: {}", chain(&error)))?
        }
        () = stopping.cancelled() => return Ok(()),
    };
    tracing::info!(graph = StateOf::<A>::GRAPH.name, address, "operator starts");
    let operator = Operator::new(client, application).namespaces(namespaces);
    match operator.run(stopping.cancelled_owned()).await {
        Ok(()) => Ok(()),
        Err(OperatorError::NoContact(error)) => Err(format!(
            "cannot reach the Kubernetes API at {address}: {}",
            chain(&error)
        )),
        Err(
            error @ (OperatorError::Crd(_)
            | OperatorError::ClusterScoped(_)
            | OperatorError::Pass(_)),
        ) => Err(format!("cannot {}", chain(&error))),
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

/// The CRD as YAML, joined with the one in use.
fn definition<A: Application>(old: Option<&CustomResourceDefinition>) -> Result<String, String> {
    let crd = old.map_or_else(crd::<A::Resource>, crd_union::<A::Resource>);
    yaml(&crd.map_err(|error| error.to_string())?)
}

/// The roles as YAML documents.
fn roles<A: Application>(
    namespaces: &[String],
    account: Option<&ServiceAccount>,
) -> Result<String, String> {
    let roles =
        rbac::<A>(namespaces, account).map_err(|error| format!("cannot {}", chain(&error)))?;
    let objects = roles.objects().map_err(|error| error.to_string())?;
    stream(objects.iter().map(yaml))
}

/// Documents as one stream of YAML.
fn stream(documents: impl Iterator<Item = Result<String, String>>) -> Result<String, String> {
    Ok(documents.collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

fn yaml(value: &impl Serialize) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| format!("cannot write YAML: {error}"))
}

fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot print: {error}")),
    }
}
