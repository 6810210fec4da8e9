//! One operator of a program.

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use okt_core::{Graph, Lifecycle};
use okt_runtime::{Application, PassGraph, StateOf};
use okt_runtime::{IntoOperator, Operator, OperatorError};
use okt_sharding::gate::Gate;
use okt_telemetry::kube_events::EventPolicy;
use okt_telemetry::monitoring::Monitoring;
#[cfg(feature = "cloudevents")]
use okt_telemetry::receivers::cloud_events::CloudEvents;
#[cfg(feature = "map")]
use okt_view::Kind;
use okt_wire::api_timeout::limit_answers;
use okt_wire::object::has_lifecycle;
use okt_wire::texts::chain;
use tokio_util::sync::CancellationToken;

use crate::install::rbac::{Rbac, ServiceAccount};
use crate::preview::{Preview, Record, preview};

/// An operator or a subcommand that runs; an error is a message.
pub(super) type Running = LocalBoxFuture<'static, Result<(), String>>;

/// One operator of a program.
pub(super) struct ProgramPart<Options> {
    pub(super) crd_name: fn() -> &'static str,
    /// The group and the kind.
    pub(super) kind: fn() -> (String, String),
    pub(super) cluster_scoped: fn() -> bool,
    pub(super) definition: fn(Option<&CustomResourceDefinition>) -> Result<String, String>,
    pub(super) roles: fn(&[String], Option<&ServiceAccount>) -> Result<String, String>,
    pub(super) graphs: fn() -> Vec<&'static Graph<'static>>,
    /// The kind as the map shows it; none if it serves no version.
    #[cfg(feature = "map")]
    pub(super) shown: fn() -> Option<Kind>,
    pub(super) begin: Box<dyn FnOnce(PartTask<Options>) -> Running>,
}

/// What an operator is created for.
pub(super) enum PartTask<Options> {
    Run(Box<ProgramContext<Options>>),
    Preview(Box<Previewed<Options>>),
}

/// What an operator is previewed with.
pub(super) struct Previewed<Options> {
    /// A client whose writes are only tried.
    pub(super) client: Client,
    pub(super) record: Record,
    pub(super) namespaces: Vec<String>,
    pub(super) account: ServiceAccount,
    /// The roles that the account needs beside those of the operator.
    pub(super) beside: Rbac,
    pub(super) options: Options,
    /// Where what is found is added.
    pub(super) found: Rc<RefCell<Vec<Preview>>>,
}

/// The context in which a program runs each of its operators.
pub(super) struct ProgramContext<Options> {
    pub(super) client: Client,
    /// The address of the API server, for messages.
    pub(super) address: String,
    pub(super) namespaces: Vec<String>,
    pub(super) limits: OperatorLimits,
    pub(super) monitoring: Monitoring,
    #[cfg(feature = "cloudevents")]
    pub(super) cloud_events: Option<CloudEvents>,
    pub(super) gate: Gate,
    pub(super) options: Options,
    pub(super) stopping: CancellationToken,
}

/// The limits from the command line.
#[derive(Clone, Copy)]
pub(super) struct OperatorLimits {
    pub(super) concurrency: Option<u16>,
    pub(super) actions: Option<usize>,
    pub(super) questions: Option<usize>,
    pub(super) shutdown: Option<Duration>,
    pub(super) events: Option<EventPolicy>,
}

/// Creates one operator and runs it, or previews it.
pub(super) async fn begin<O, C, F, E, Options>(
    connect: C,
    task: PartTask<Options>,
) -> Result<(), String>
where
    O: IntoOperator,
    C: FnOnce(Client, Options) -> F,
    F: Future<Output = Result<O, E>>,
    E: Error,
{
    match task {
        PartTask::Run(surroundings) => run(connect, *surroundings).await,
        PartTask::Preview(previewed) => {
            let Previewed {
                client,
                record,
                namespaces,
                account,
                beside,
                options,
                found,
            } = *previewed;
            let connected = connect(limit_answers(client.clone()), options).await;
            let connected =
                connected.map_err(|error| format!("cannot begin: {}", chain(&error)))?;
            let operator = connected.into_operator(client);
            let preview = preview(operator, &record, &namespaces, (&account, beside)).await?;
            found.borrow_mut().push(preview);
            Ok(())
        }
    }
}

/// Runs one operator.
async fn run<O, C, F, E, Options>(
    connect: C,
    surroundings: ProgramContext<Options>,
) -> Result<(), String>
where
    O: IntoOperator,
    C: FnOnce(Client, Options) -> F,
    F: Future<Output = Result<O, E>>,
    E: Error,
{
    let ProgramContext {
        client,
        address,
        namespaces,
        limits,
        monitoring,
        #[cfg(feature = "cloudevents")]
        cloud_events,
        gate,
        options,
        stopping,
    } = surroundings;
    let connected = tokio::select! {
        connected = connect(limit_answers(client.clone()), options) => {
            connected.map_err(|error| format!("cannot begin: {}", chain(&error)))?
        }
        () = stopping.cancelled() => return Ok(()),
    };
    let operator = connected.into_operator(client);
    say_start(&operator, &address);
    let operator = limits.of(operator).namespaces(namespaces);
    let operator = operator.gate(gate).monitored(&monitoring);
    #[cfg(feature = "cloudevents")]
    let operator = match cloud_events {
        Some(events) => operator.delivering(events),
        None => operator,
    };
    match operator.run(stopping.cancelled_owned()).await {
        Ok(()) => Ok(()),
        Err(OperatorError::NoContact(error)) => Err(format!(
            "cannot reach the Kubernetes API at {address}: {}",
            chain(&error)
        )),
        Err(error) => Err(chain(&error)),
    }
}

fn say_start<A: Application>(_: &Operator<A>, address: &str) {
    let graph = has_lifecycle::<A::Resource>().then_some(StateOf::<A>::GRAPH.name);
    let pass = A::pass();
    let pass = pass.as_ref().map(|pass| PassGraph::graph(pass).name);
    tracing::info!(graph, pass, address, "operator starts");
}

impl OperatorLimits {
    /// Sets what the command line gives.
    fn of<A: Application>(self, mut operator: Operator<A>) -> Operator<A> {
        if let Some(concurrency) = self.concurrency {
            operator = operator.concurrency(concurrency);
        }
        if let Some(actions) = self.actions {
            operator = operator.actions(actions);
        }
        if let Some(questions) = self.questions {
            operator = operator.questions(questions);
        }
        if let Some(limit) = self.shutdown {
            operator = operator.shutdown_limit(limit);
        }
        if let Some(policy) = self.events {
            operator = operator.events(policy);
        }
        operator
    }
}
