//! A complete operator program, with one operator or several: its subcommands, and how it runs and stops.

mod command_line;
mod config;
mod hand_over;
#[cfg(feature = "logs")]
mod logs;
mod manifests;
mod part;
mod preview;
mod run;

use std::error::Error;
use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::Client;
use okt_runtime::IntoOperator;
use okt_telemetry::operators::controller;
use okt_wire::api_timeout::limit_answers;
use okt_wire::limit::limit_requests;
use okt_wire::texts::chain;

use self::command_line::{CommandLine, Monitor, OperatorCommand, PrintFormat};
use self::part::{Connecting, LimitedPart, ProgramPart, Running};
use crate::install::account::ServiceAccount;
use crate::install::alerts::{self, Monitored};
use crate::install::generated::yaml;
use crate::install::kind::OperatedKind;
use crate::install::{argo_cd, dashboards, state_metrics};
use crate::migrate::{MigratedKind, go_back, migrate};

/// Runs a program with one operator: reads the command line and executes its subcommand.
///
/// The cluster comes from `KUBECONFIG`, the default kubeconfig, or the pod it runs in.
/// Logs go to standard error; `--log` or `RUST_LOG` sets the level (by default `info`).
/// For several operators in one process, or options and subcommands of your own, see [`Program`].
///
/// ```no_run
/// # use okt::Application;
/// # use std::process::ExitCode;
/// # async fn example<A: Application>(connect: fn(kube::Client) -> std::future::Ready<std::io::Result<A>>) -> ExitCode {
/// okt::main(connect).await // run | preview | migrate | crd | rbac | manifests | graph | dashboards | argo-cd
/// # }
/// ```
pub async fn main<O, C, F, E>(connect: C) -> ExitCode
where
    O: IntoOperator + 'static,
    C: FnOnce(Client) -> F + 'static,
    F: Future<Output = Result<O, E>> + 'static,
    E: Error + 'static,
{
    Program::new().with(connect).main().await
}

/// A program with one operator or several, each for its own kind.
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
///
/// # Settings of an operator
///
/// Return an [`Operator`](okt_runtime::Operator) instead of an application to set what the command line has no option for:
///
/// ```no_run
/// # use std::convert::Infallible;
/// # use std::process::ExitCode;
/// # use okt::{Application, Backoff, Operator, Program};
/// # use std::time::Duration;
/// # async fn example<A: Application>(application: A) -> ExitCode {
/// Program::new()
///     .with(|client| async {
///         let backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(60));
///         Ok::<_, Infallible>(Operator::new(client, application).backoff(backoff))
///     })
///     .main()
///     .await
/// # }
/// ```
///
/// # Options and subcommands of your own
///
/// ```no_run
/// # use std::convert::Infallible;
/// # use std::process::ExitCode;
/// # use okt::{Application, Program};
/// # async fn example<A: Application>(connect: fn(String) -> A) -> ExitCode {
/// /// Options of `run`, in addition to those of OKT; also read from the file of `--config`.
/// #[derive(Clone, clap::Args)]
/// struct Options {
///     /// The URL of the press.
///     #[arg(long, env = "PRESS")]
///     press: String,
/// }
///
/// /// Print a test page.
/// #[derive(clap::Parser)]
/// #[command(name = "test-page")]
/// struct TestPage {
///     #[arg(long)]
///     press: String,
/// }
///
/// Program::with_options::<Options>()
///     .with_connected(move |_client, options| async move { Ok::<_, Infallible>(connect(options.press)) })
///     .command(|page: TestPage| async move {
///         println!("to {}", page.press);
///         Ok::<_, Infallible>(())
///     })
///     .main()
///     .await
/// # }
/// ```
pub struct Program<Options = NoOptions> {
    operators: Operators,
    options: PhantomData<fn() -> Options>,
}

/// What a program consists of, whatever the type of its options.
struct Operators {
    parts: Vec<Box<dyn ProgramPart>>,
    commands: Vec<Own>,
    /// Adds the author's options to a subcommand.
    with_options: fn(clap::Command) -> clap::Command,
}

/// No options in addition to those of OKT.
#[derive(Clone, Debug, Default, Args)]
pub struct NoOptions {}

/// Adds options to a subcommand; their docs would replace its own.
fn with<Options: Args>(command: clap::Command) -> clap::Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let long = command.get_long_about().cloned().unwrap_or_default();
    Options::augment_args(command).about(about).long_about(long)
}

/// A subcommand of the author's.
struct Own {
    command: clap::Command,
    run: Box<dyn FnOnce(&clap::ArgMatches) -> Running>,
}

impl Program {
    /// Creates a program without operators.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a program without operators whose subcommand `run` has options of your own too.
    pub fn with_options<Options: Args + Clone + 'static>() -> Program<Options> {
        Program {
            operators: Operators {
                parts: Vec::new(),
                commands: Vec::new(),
                with_options: with::<Options>,
            },
            options: PhantomData,
        }
    }
}

impl Default for Program {
    fn default() -> Self {
        Self::with_options()
    }
}

impl<Options: Args + Clone + 'static> Program<Options> {
    /// Adds an operator; `connect` creates its application, or the operator itself, when the program runs.
    #[must_use]
    pub fn with<O, C, F, E>(self, connect: C) -> Self
    where
        O: IntoOperator + 'static,
        C: FnOnce(Client) -> F + 'static,
        F: Future<Output = Result<O, E>> + 'static,
        E: Error + 'static,
    {
        self.with_connected(|client, _| connect(client))
    }

    /// Adds an operator as [`with`](Self::with) does; `connect` also gets the options of your own.
    #[must_use]
    pub fn with_connected<O, C, F, E>(mut self, connect: C) -> Self
    where
        O: IntoOperator + 'static,
        C: FnOnce(Client, Options) -> F + 'static,
        F: Future<Output = Result<O, E>> + 'static,
        E: Error + 'static,
    {
        let connect = Connecting::new(|client, given| {
            let options = Options::from_arg_matches(given).map_err(|error| error.to_string())?;
            Ok(connect(client, options))
        });
        self.operators.parts.push(Box::new(connect));
        self
    }

    /// Adds a subcommand of your own; its name is that of the clap command.
    #[must_use]
    pub fn command<C, F, E>(mut self, run: impl FnOnce(C) -> F + 'static) -> Self
    where
        C: Parser,
        F: Future<Output = Result<(), E>> + 'static,
        E: Error + 'static,
    {
        self.operators.commands.push(Own {
            command: C::command(),
            run: Box::new(|matches| {
                let read = C::from_arg_matches(matches).map_err(|error| error.to_string());
                let ran = read.map(run);
                async move { ran?.await.map_err(|error| chain(&error)) }.boxed_local()
            }),
        });
        self
    }

    /// Reads the command line and executes its subcommand; `run` ends at SIGTERM or Ctrl-C.
    ///
    /// On the first signal the program starts no more work and waits for the work that runs
    /// ([`Operator::shutdown_limit`](okt_runtime::Operator::shutdown_limit)). A second signal ends it at once.
    /// The program ends as soon as one of its operators cannot start.
    pub async fn main(self) -> ExitCode {
        match self.operators.execute(std::env::args_os().collect()).await {
            Ok(code) => code,
            Err(why) => {
                eprintln!("error: {why}");
                ExitCode::FAILURE
            }
        }
    }
}

impl Operators {
    /// Boxed, so that everything in it is compiled here and not once more in each program.
    fn execute(
        self,
        arguments: Vec<OsString>,
    ) -> LocalBoxFuture<'static, Result<ExitCode, String>> {
        self.try_to_execute(arguments).boxed_local()
    }

    async fn try_to_execute(mut self, arguments: Vec<OsString>) -> Result<ExitCode, String> {
        let mut command = CommandLine::command()
            .mut_subcommand("run", self.with_options)
            .mut_subcommand("preview", self.with_options);
        command = command.subcommands(self.commands.iter().map(|own| own.command.clone()));
        // So that options from a file and those of the command line are read in the same way.
        command.build();
        let (arguments, log_file) = config::with_file(&command, arguments)?;
        let matches = command.get_matches_from(arguments);
        if let Some((name, given)) = matches.subcommand() {
            let own = self
                .commands
                .iter()
                .position(|own| own.command.get_name() == name);
            if let Some(own) = own {
                (self.commands.swap_remove(own).run)(given).await?;
                return Ok(ExitCode::SUCCESS);
            }
        }
        let line = CommandLine::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let given = matches.subcommand().map_or(&matches, |(_, given)| given);
        match line.command {
            OperatorCommand::Run(run) => {
                let parts = self.limited(&run.namespace);
                run::run(parts, &run, log_file, given, own_name()).await
            }
            OperatorCommand::Preview(asked) => {
                let account = asked.service_account.clone().map_or_else(own_account, Ok)?;
                let parts = self.limited(&asked.namespace);
                let found = preview::preview(parts, account, given, &own_name()).await?;
                print(&preview::printed(&found, &asked)?)?;
                return Ok(preview::code(&found));
            }
            OperatorCommand::Migrate { to, per_second } => self.migrate(to, per_second).await,
            OperatorCommand::Crd {
                union,
                service_account,
            } => {
                let account = service_account.or_else(|| own_account().ok());
                print(&self.printed_definitions(union.as_deref(), account.as_ref())?)
            }
            OperatorCommand::Rbac {
                namespace,
                service_account,
                metrics_secure,
                state_verbs,
            } => {
                let account = service_account.as_ref();
                print(&self.printed_roles(&namespace, account, (metrics_secure, state_verbs))?)
            }
            OperatorCommand::Manifests(manifests) => print(&self.manifests(manifests)?),
            OperatorCommand::Graph { format } => print(&self.graphs(format)),
            OperatorCommand::Dashboards { what, manifest } => {
                print(&self.dashboards(what, manifest)?)
            }
            OperatorCommand::ArgoCd => print(&self.argo_cd()?),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Brings the objects of all kinds to the version that their definitions store, and prints what was done.
    async fn migrate(&self, to: Option<String>, per_second: u32) -> Result<(), String> {
        let (config, address) = run::cluster().await?;
        let client = Client::try_from(config);
        let client = client.map_err(|error| run::cannot_connect(&address, &error))?;
        let client = limit_requests(&limit_answers(client), per_second, 1);
        let kinds = self.parts.iter().map(|part| part.migrated());
        let kinds = kinds.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
        let has = |kind: &MigratedKind| to.as_ref().is_none_or(|to| kind.versions.contains(to));
        let (kinds, others): (Vec<_>, Vec<_>) = kinds.partition(has);
        for kind in others {
            let versions = kind.versions.join(", ");
            eprintln!("{}: stays as it is, with the versions {versions}", kind.crd);
        }
        for kind in kinds {
            if let Some(to) = &to {
                go_back(&client, &kind, to).await?;
            }
            let done = migrate(&client, &kind).await?;
            print(&format!("{done}\n"))?;
        }
        Ok(())
    }

    fn operated(&self) -> Vec<OperatedKind> {
        self.parts.iter().map(|part| part.operated()).collect()
    }

    /// Returns the health checks and the actions for Argo CD.
    fn argo_cd(&self) -> Result<String, String> {
        yaml(&argo_cd::config_map(&self.operated())?)
    }

    /// Returns all graphs in this format.
    fn graphs(&self, format: PrintFormat) -> String {
        let graphs = self.parts.iter().flat_map(|part| part.graphs());
        let drawn = graphs.map(|graph| match format {
            PrintFormat::Mermaid => graph.mermaid(),
            PrintFormat::Dot => graph.dot(),
            PrintFormat::Json => graph.json(),
        });
        let ended = drawn.map(|drawn| format!("{}\n", drawn.trim_end()));
        ended.collect::<Vec<_>>().join("\n")
    }

    /// Returns what monitors the program.
    fn dashboards(&self, what: Monitor, manifest: bool) -> Result<String, String> {
        let operators = self.parts.iter().map(|part| {
            let mut graphs = part.graphs().into_iter();
            Monitored {
                controller: controller(&part.kind().1),
                graph: graphs.find(|graph| graph.kind == okt_core::Kind::Lifecycle),
            }
        });
        let (operators, program) = (operators.collect::<Vec<_>>(), own_name());
        match (what, manifest) {
            (Monitor::Grafana, false) => Ok(format!(
                "{:#}\n",
                dashboards::dashboard(&program, &operators)
            )),
            (Monitor::Grafana, true) => yaml(&dashboards::config_map(&program, &operators)),
            (Monitor::Rules, false) => yaml(&alerts::rules(&operators)),
            (Monitor::Rules, true) => yaml(&alerts::prometheus_rule(&program, &operators)),
            (Monitor::KubeStateMetrics, manifest) => {
                let configuration = yaml(&state_metrics::configuration(&self.operated()))?;
                if manifest {
                    return yaml(&state_metrics::config_map(&program, &configuration));
                }
                Ok(configuration)
            }
        }
    }

    /// Returns the namespaces that each operator is limited to; a cluster-scoped kind next to namespaced ones has no
    /// limit.
    ///
    /// If all kinds are cluster-scoped, they keep the limit, and their operators refuse it, because it would have no
    /// effect.
    fn limit<'a>(
        &self,
        namespaces: &'a [String],
    ) -> impl Fn(&dyn ProgramPart) -> &'a [String] + use<'a> {
        let some_are_limited = self.parts.iter().any(|part| !part.is_cluster_scoped());
        move |part| {
            let whole = some_are_limited && part.is_cluster_scoped();
            if whole { &[] } else { namespaces }
        }
    }

    /// Returns the operators, each with the namespaces that it is limited to.
    fn limited(self, namespaces: &[String]) -> Vec<LimitedPart> {
        let limit = self.limit(namespaces);
        let parts = self.parts.into_iter();
        parts
            .map(|part| {
                let namespaces = limit(&*part).to_vec();
                (part, namespaces)
            })
            .collect()
    }
}

/// Returns the name of the program, as Kubernetes objects can have it; empty if it has none.
fn own_name() -> String {
    let program = std::env::args_os().next().map(PathBuf::from);
    let stem = program.as_deref().and_then(Path::file_stem);
    let name = stem.unwrap_or_default().to_string_lossy();
    name.to_lowercase().replace('_', "-")
}

/// Returns the default service account: named after the program, in a namespace of its own.
fn own_account() -> Result<ServiceAccount, String> {
    let name = own_name();
    format!("{name}-system/{name}").parse().map_err(|_| {
        "cannot name a service account after this program: pass --service-account NAMESPACE/NAME"
            .to_owned()
    })
}

/// Joins documents to one YAML stream.
fn stream(documents: impl Iterator<Item = Result<String, String>>) -> Result<String, String> {
    Ok(documents.collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

fn print(text: &str) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        // The reader, for example `head`, has closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot print: {error}")),
    }
}
