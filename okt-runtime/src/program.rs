//! A complete operator program, with one operator or several: the subcommands `run`, `crd`, `rbac` and `manifests`.

mod manifests;
pub(crate) mod rbac;

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

use crate::author::application::{Application, StateOf};
use crate::crd::definition::crd;
use crate::crd::in_use::InUse;
use crate::crd::union::crd_union;
use crate::operator::{Operator, OperatorError};
use crate::program::manifests::Installation;
use crate::program::rbac::{ServiceAccount, rbac};
use crate::resources::is_label;
use crate::texts::chain;
use crate::wire::object::has_lifecycle;

/// Runs the operator, or prints what installs it.
#[derive(Parser)]
#[command(arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator until SIGTERM or Ctrl-C.
    Run {
        /// Watch this namespace only; may be given several times. Cluster-scoped kinds are watched in the whole cluster.
        #[arg(long, value_name = "NAME", value_parser = namespace)]
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
    /// Add what your handlers themselves request from the cluster.
    Rbac {
        /// As given to `run`: roles in this namespace instead of the whole cluster; may be given several times.
        #[arg(long, value_name = "NAME", value_parser = namespace)]
        namespace: Vec<String>,
        /// Print the bindings too, for this service account.
        #[arg(long, value_name = "NAMESPACE/NAME")]
        service_account: Option<ServiceAccount>,
    },
    /// Print all objects that install the operator: `manifests --image IMAGE | kubectl apply --server-side -f -`.
    ///
    /// That is a namespace and a service account, the custom resource definition, the roles with their bindings, and
    /// a Deployment of one replica.
    /// Add what your handlers themselves request from the cluster.
    Manifests {
        /// The image that has this program as its entry point, and a user that is not root.
        #[arg(long, value_parser = image)]
        image: String,
        /// As given to `run`; may be given several times. These namespaces must exist.
        #[arg(long, value_name = "NAME", value_parser = namespace)]
        namespace: Vec<String>,
        /// Run as this service account, in its namespace, which must exist [default: both are created, and named
        /// after the program]
        #[arg(long, value_name = "NAMESPACE/NAME")]
        service_account: Option<ServiceAccount>,
    },
}

/// Runs a program with one operator: reads the command line and executes its subcommand.
///
/// The cluster comes from `KUBECONFIG`, the default kubeconfig, or the pod it runs in.
/// Logs go to standard error; `RUST_LOG` sets the level (by default `info`).
/// For several operators in one process see [`Program`].
///
/// ```no_run
/// # use okt::Application;
/// # use std::process::ExitCode;
/// # async fn example<A: Application>(connect: fn(kube::Client) -> std::future::Ready<std::io::Result<A>>) -> ExitCode {
/// okt::main(connect).await // run | crd | rbac | manifests
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

/// A program with several operators, each for its own kind.
///
/// `--namespace` on the command line limits the namespaced kinds. Cluster-scoped kinds are still watched in the whole
/// cluster, and get roles for the whole cluster.
/// If all kinds are cluster-scoped, the program refuses `--namespace`.
///
/// ```no_run
/// # use okt::{Application, Program};
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
    cluster_scoped: fn() -> bool,
    definition: fn(Option<&CustomResourceDefinition>) -> Result<String, String>,
    roles: fn(&[String], Option<&ServiceAccount>) -> Result<String, String>,
    run: Box<dyn FnOnce(Surroundings) -> LocalBoxFuture<'static, Result<(), String>>>,
}

/// The context in which a program runs each of its operators.
struct Surroundings {
    client: Client,
    /// The address of the API server, for messages.
    address: String,
    namespaces: Vec<String>,
    stopping: CancellationToken,
}

impl Program {
    /// Creates a program without operators.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operator; `connect` creates its application when the program runs.
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
            cluster_scoped: || A::Resource::crd().spec.scope == "Cluster",
            definition: definition::<A>,
            roles: roles::<A>,
            run: Box::new(|surroundings| run(connect, surroundings).boxed_local()),
        });
        self
    }

    /// Reads the command line and executes its subcommand; `run` ends at SIGTERM or Ctrl-C.
    ///
    /// On the first signal the program starts no more work and waits for the work that runs
    /// ([`Operator::shutdown_limit`]). A second signal ends it at once.
    /// The program ends as soon as one of its operators cannot start.
    pub async fn main(self) -> ExitCode {
        let done = match CommandLine::parse().command {
            Command::Run { namespace } => self.run(namespace).await,
            Command::Crd { union } => {
                let yaml = self.definitions(union.as_deref());
                yaml.and_then(|yaml| print(&yaml))
            }
            Command::Rbac {
                namespace,
                service_account,
            } => self
                .roles(&namespace, service_account.as_ref())
                .and_then(|yaml| print(&yaml)),
            Command::Manifests {
                image,
                namespace,
                service_account,
            } => self
                .manifests(&image, &namespace, service_account)
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

    /// Returns the CRDs as one YAML stream, each merged with the CRD in use.
    fn definitions(&self, union: Option<&Path>) -> Result<String, String> {
        let in_use = union.map(InUse::read).transpose()?;
        let names: Vec<_> = self.parts.iter().map(|part| (part.crd_name)()).collect();
        let olds = match &in_use {
            Some(in_use) => in_use.of(&names)?,
            None => vec![None; names.len()],
        };
        stream((self.parts.iter().zip(olds)).map(|(part, old)| (part.definition)(old)))
    }

    /// Returns the roles of all operators as one YAML stream.
    fn roles(
        &self,
        namespaces: &[String],
        account: Option<&ServiceAccount>,
    ) -> Result<String, String> {
        let limit = self.limit(namespaces);
        stream((self.parts.iter()).map(|part| (part.roles)(limit(part), account)))
    }

    /// Returns the manifests that install the program, in the order in which they are applied.
    fn manifests(
        &self,
        image: &str,
        namespaces: &[String],
        account: Option<ServiceAccount>,
    ) -> Result<String, String> {
        // An existing namespace may hold more than this operator: the manifests must neither label nor delete it.
        let lives_alone = account.is_none();
        let account = account.map_or_else(own_account, Ok)?;
        let installation = Installation {
            account: &account,
            image,
            namespaces,
        };
        let mut documents = Vec::new();
        if lives_alone {
            documents.push(yaml(&installation.namespace()));
        }
        documents.push(yaml(&installation.service_account()));
        documents.push(self.definitions(None));
        documents.push(self.roles(namespaces, Some(&account)));
        documents.push(yaml(&installation.deployment()));
        stream(documents.into_iter())
    }

    /// Returns the namespaces that each operator is limited to; a cluster-scoped kind next to namespaced ones has no
    /// limit.
    ///
    /// If all kinds are cluster-scoped, they keep the limit, and their operators refuse it, because it would have no
    /// effect.
    fn limit<'a>(&self, namespaces: &'a [String]) -> impl Fn(&Part) -> &'a [String] + use<'a> {
        let some_are_limited = self.parts.iter().any(|part| !(part.cluster_scoped)());
        move |part| {
            let whole = some_are_limited && (part.cluster_scoped)();
            if whole { &[] } else { namespaces }
        }
    }

    async fn run(self, namespaces: Vec<String>) -> Result<(), String> {
        let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
            tracing_subscriber::EnvFilter::new("info,kube_runtime::watcher=error")
        });
        // A program that has already set up logging keeps its own.
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
        let limit = self.limit(&namespaces);
        let running = self.parts.into_iter().map(|part| {
            let limits = limit(&part);
            if limits.len() < namespaces.len() {
                let crd = (part.crd_name)();
                tracing::info!(crd, "cluster-scoped: watched in the whole cluster");
            }
            (part.run)(Surroundings {
                client: client.clone(),
                address: address.clone(),
                namespaces: limits.to_vec(),
                stopping: stopping.clone(),
            })
        });
        let mut running = pin!(try_join_all(running));
        tokio::select! {
            ended = &mut running => return ended.map(drop),
            () = shutdown_signal() => {}
        }
        stopping.cancel();
        tokio::select! {
            ended = running => ended.map(drop),
            // The next operator resumes the work that runs, as after a crash.
            () = shutdown_signal() => Err("stopped at once: a second signal arrived".to_owned()),
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
    let graph = has_lifecycle::<A::Resource>().then_some(StateOf::<A>::GRAPH.name);
    let pass = A::pass().map(|pass| pass.graph().name);
    tracing::info!(graph, pass, address, "operator starts");
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
            | OperatorError::Pass(_)
            | OperatorError::Nothing
            | OperatorError::SameCondition(_)
            | OperatorError::ManyConditions(_)),
        ) => Err(format!("cannot {}", chain(&error))),
    }
}

/// Completes at SIGTERM or Ctrl-C.
async fn shutdown_signal() {
    let interrupt = async {
        // Without this handler Ctrl-C kills the process, which the operator handles like a crash.
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

/// Returns the default service account: named after the program, in a namespace of its own.
fn own_account() -> Result<ServiceAccount, String> {
    let program = std::env::args_os().next().map(PathBuf::from);
    let stem = program.as_deref().and_then(Path::file_stem);
    let name = stem.unwrap_or_default().to_string_lossy();
    let name = name.to_lowercase().replace('_', "-");
    format!("{name}-system/{name}").parse().map_err(|_| {
        "cannot name a service account after this program: pass --service-account NAMESPACE/NAME"
            .to_owned()
    })
}

/// Parses a namespace. Refuses a name that no namespace can have: the operator would watch nothing and never end.
fn namespace(text: &str) -> Result<String, &'static str> {
    let why = "a namespace is at most 63 of lower case letters, digits and `-`, none of the latter at an end";
    is_label(text).then(|| text.to_owned()).ok_or(why)
}

/// Parses an image. Whether it exists turns out later, on the server.
fn image(text: &str) -> Result<String, &'static str> {
    let is_one = !text.is_empty() && !text.contains(char::is_whitespace);
    is_one
        .then(|| text.to_owned())
        .ok_or("an image is a name without spaces, e.g. `ghcr.io/you/databases:1.0`")
}

/// Returns the CRD as YAML, merged with the one in use.
fn definition<A: Application>(old: Option<&CustomResourceDefinition>) -> Result<String, String> {
    let crd = old.map_or_else(crd::<A::Resource>, crd_union::<A::Resource>);
    yaml(&crd.map_err(|error| error.to_string())?)
}

/// Returns the roles as YAML documents.
fn roles<A: Application>(
    namespaces: &[String],
    account: Option<&ServiceAccount>,
) -> Result<String, String> {
    let roles =
        rbac::<A>(namespaces, account).map_err(|error| format!("cannot {}", chain(&error)))?;
    let objects = roles.objects().map_err(|error| error.to_string())?;
    stream(objects.iter().map(yaml))
}

/// Joins documents to one YAML stream.
fn stream(documents: impl Iterator<Item = Result<String, String>>) -> Result<String, String> {
    Ok(documents.collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

fn yaml(value: &impl Serialize) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| format!("cannot write YAML: {error}"))
}

fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        // The reader, for example `head`, has closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot print: {error}")),
    }
}
