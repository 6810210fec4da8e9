//! One operator of a program.

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use clap::ArgMatches;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, OptionFuture};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, CustomResourceExt, Resource, ResourceExt};
use okt_core::Graph;
use okt_runtime::__program::lifecycle_field;
use okt_runtime::{
    Application, IntoOperator, Operator, OperatorError, PassGraph, Requests, crd, crd_union,
};
use okt_sharding::gate::Gate;
use okt_telemetry::kube_events::EventPolicy;
use okt_telemetry::monitoring::Monitoring;
#[cfg(feature = "cloudevents")]
use okt_telemetry::receivers::cloud_events::CloudEvents;
#[cfg(feature = "map")]
use okt_view::Kind;
use okt_wire::api_timeout::limit_answers;
use okt_wire::keys::HANDED_OVER_ANNOTATION;
use okt_wire::object::lifecycle_of;
use okt_wire::texts::chain;
use okt_wire::versions::KindVersions;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::command_line::PolicyKind;
use super::hand_over::HandOver;
use crate::install::account::ServiceAccount;
use crate::install::defaults::default_policy;
use crate::install::kind::OperatedKind;
use crate::install::policy::{approval_policy, status_policy, verb_policy};
use crate::install::rbac::{Rbac, rbac, verb_roles};
use crate::install::rules::rule_policy;
use crate::install::webhooks::KindWebhooks;
use crate::migrate::MigratedKind;
use crate::preview::{Preview, Record, preview};
#[cfg(feature = "webhooks")]
use crate::webhooks::HookedKind;

/// An operator or a subcommand that runs; an error is a message.
pub(super) type Running = LocalBoxFuture<'static, Result<(), String>>;

/// One operator of a program.
pub(super) trait ProgramPart {
    fn crd_name(&self) -> &'static str;

    /// Returns the group and the kind.
    fn kind(&self) -> (String, String);

    /// Returns the kind as the tools of others are told of it.
    fn operated(&self) -> OperatedKind;

    fn is_cluster_scoped(&self) -> bool;

    /// Returns the CRD, merged with the one in use, and those of the requests that its objects serve.
    fn definitions(
        &self,
        old: Option<&CustomResourceDefinition>,
    ) -> Result<Vec<CustomResourceDefinition>, String>;

    /// Returns the roles.
    fn roles(
        &self,
        namespaces: &[String],
        account: Option<&ServiceAccount>,
    ) -> Result<Rbac, String>;

    /// Returns the admission policies of a kind, for an operator that runs as this account.
    fn policies(&self, kind: PolicyKind, account: &ServiceAccount) -> Vec<Value>;

    /// Returns the roles for the verbs of states.
    fn verb_roles(&self) -> Rbac;

    /// Returns what the API server asks about objects.
    fn webhooks(&self) -> KindWebhooks;

    /// Returns the kinds whose objects `migrate` brings over: that of the operator, and those of its requests.
    fn migrated(&self) -> Result<Vec<MigratedKind>, String>;

    /// Returns what answers it.
    #[cfg(feature = "webhooks")]
    fn hooked(&self) -> HookedKind;

    /// Returns the graphs that the application declares.
    fn graphs(&self) -> Vec<&'static Graph<'static>>;

    /// Returns the kind as the map shows it; none if it serves no version.
    #[cfg(feature = "map")]
    fn shown(&self) -> Option<Kind>;

    /// Creates the operator and runs it, or previews it.
    fn begin(self: Box<Self>, task: PartTask) -> Running;
}

/// An operator, and the namespaces that it is limited to.
pub(super) type LimitedPart = (Box<dyn ProgramPart>, Vec<String>);

/// Returns what the API server asks about objects of the operators; nothing without the feature `webhooks`.
pub(super) fn webhooks<'a>(parts: impl Iterator<Item = &'a dyn ProgramPart>) -> Vec<KindWebhooks> {
    let all = parts.map(ProgramPart::webhooks);
    all.filter(|it| cfg!(feature = "webhooks") && it.are_needed())
        .collect()
}

/// An operator that a function creates.
pub(super) struct Connecting<O> {
    connect: Connect<O>,
}

/// Creates an operator, with the options from the command line.
type Connect<O> =
    Box<dyn FnOnce(Client, &ArgMatches) -> LocalBoxFuture<'static, Result<O, String>>>;

type ResourceOf<O> = <<O as IntoOperator>::Application as Application>::Resource;

impl<O: 'static> Connecting<O> {
    pub(super) fn new<F, E>(
        connect: impl FnOnce(Client, &ArgMatches) -> Result<F, String> + 'static,
    ) -> Self
    where
        F: Future<Output = Result<O, E>> + 'static,
        E: Error + 'static,
    {
        let connect: Connect<O> = Box::new(|client, given| {
            let attempt = connect(limit_answers(client), given);
            async move {
                let connected = attempt?.await;
                connected.map_err(|error| format!("cannot begin: {}", chain(&error)))
            }
            .boxed_local()
        });
        Self { connect }
    }
}

impl<O: IntoOperator + 'static> ProgramPart for Connecting<O> {
    fn crd_name(&self) -> &'static str {
        ResourceOf::<O>::crd_name()
    }

    fn kind(&self) -> (String, String) {
        let (group, kind) = (ResourceOf::<O>::group(&()), ResourceOf::<O>::kind(&()));
        (group.into_owned(), kind.into_owned())
    }

    fn operated(&self) -> OperatedKind {
        let (group, kind) = self.kind();
        let field = lifecycle_field::<ResourceOf<O>>();
        let lifecycle = field.zip(lifecycle_of::<ResourceOf<O>>());
        OperatedKind {
            group,
            version: ResourceOf::<O>::version(&()).into_owned(),
            kind,
            lifecycle,
        }
    }

    fn is_cluster_scoped(&self) -> bool {
        ResourceOf::<O>::crd().spec.scope == "Cluster"
    }

    fn definitions(
        &self,
        old: Option<&CustomResourceDefinition>,
    ) -> Result<Vec<CustomResourceDefinition>, String> {
        let crd = old.map_or_else(crd::<ResourceOf<O>>, crd_union::<ResourceOf<O>>);
        let mut crds = vec![crd.map_err(|error| error.to_string())?];
        for kind in O::Application::requests(Requests::default()).kinds {
            crds.extend(kind.crds().map_err(|error| error.to_string())?);
        }
        Ok(crds)
    }

    fn roles(
        &self,
        namespaces: &[String],
        account: Option<&ServiceAccount>,
    ) -> Result<Rbac, String> {
        rbac::<O::Application>(namespaces, account).map_err(|error| chain(&error))
    }

    fn policies(&self, kind: PolicyKind, account: &ServiceAccount) -> Vec<Value> {
        match kind {
            PolicyKind::Approvals => approval_policy::<O::Application>(),
            PolicyKind::Defaults => default_policy::<O::Application>(),
            PolicyKind::Rules => rule_policy::<O::Application>(),
            PolicyKind::States => verb_policy::<O::Application>(),
            PolicyKind::Status => status_policy::<O::Application>(account),
        }
    }

    fn verb_roles(&self) -> Rbac {
        verb_roles::<O::Application>()
    }

    fn webhooks(&self) -> KindWebhooks {
        KindWebhooks::of::<O::Application>()
    }

    fn migrated(&self) -> Result<Vec<MigratedKind>, String> {
        let kinds = self.definitions(None)?.into_iter().enumerate();
        let kinds = kinds.map(|(index, crd)| MigratedKind {
            crd: crd.name_any(),
            versions: crd.spec.versions.into_iter().map(|it| it.name).collect(),
            is_of_requests: index > 0,
        });
        Ok(kinds.collect())
    }

    #[cfg(feature = "webhooks")]
    fn hooked(&self) -> HookedKind {
        HookedKind::of::<O::Application>()
    }

    fn graphs(&self) -> Vec<&'static Graph<'static>> {
        let lifecycle = lifecycle_of::<ResourceOf<O>>();
        let pass_graph = O::Application::pass();
        let pass = pass_graph.as_ref().map(PassGraph::graph);
        lifecycle.into_iter().chain(pass).collect()
    }

    #[cfg(feature = "map")]
    fn shown(&self) -> Option<Kind> {
        Kind::of_crd(&crd::<ResourceOf<O>>().ok()?)
    }

    fn begin(self: Box<Self>, task: PartTask) -> Running {
        match task {
            PartTask::Run(context) => run(self.connect, *context).boxed_local(),
            PartTask::Preview(previewed) => try_out(self.connect, *previewed).boxed_local(),
        }
    }
}

/// What an operator is created for.
pub(super) enum PartTask {
    Run(Box<ProgramContext>),
    Preview(Box<Previewed>),
}

/// What an operator is previewed with.
pub(super) struct Previewed {
    /// A client whose writes are only tried.
    pub(super) client: Client,
    pub(super) record: Record,
    pub(super) namespaces: Vec<String>,
    pub(super) account: ServiceAccount,
    /// The roles that the account needs beside those of the operator.
    pub(super) beside: Rbac,
    pub(super) options: ArgMatches,
    /// Where what is found is added.
    pub(super) found: Rc<RefCell<Vec<Preview>>>,
}

/// The context in which a program runs each of its operators.
pub(super) struct ProgramContext {
    pub(super) client: Client,
    /// The address of the API server, for messages.
    pub(super) address: String,
    pub(super) namespaces: Vec<String>,
    pub(super) limits: OperatorLimits,
    pub(super) monitoring: Monitoring,
    #[cfg(feature = "cloudevents")]
    pub(super) cloud_events: Option<CloudEvents>,
    pub(super) gate: Gate,
    pub(super) options: ArgMatches,
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

/// Creates one operator, and adds what it would do.
async fn try_out<O: IntoOperator>(connect: Connect<O>, previewed: Previewed) -> Result<(), String> {
    let Previewed {
        client,
        record,
        namespaces,
        account,
        beside,
        options,
        found,
    } = previewed;
    let connected = connect(client.clone(), &options).await?;
    let operator = connected.into_operator(client);
    let preview = preview(operator, &record, &namespaces, (&account, beside)).await?;
    found.borrow_mut().push(preview);
    Ok(())
}

/// Runs one operator.
async fn run<O: IntoOperator>(connect: Connect<O>, context: ProgramContext) -> Result<(), String> {
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
    } = context;
    let connected = tokio::select! {
        connected = connect(client.clone(), &options) => connected?,
        () = stopping.cancelled() => return Ok(()),
    };
    let watching = client.clone();
    let operator = connected.into_operator(client);
    log_start(&operator, &address);
    let operator = limits
        .of(operator)
        .namespaces(namespaces)
        .gate(gate)
        .monitored(&monitoring);
    #[cfg(feature = "cloudevents")]
    let operator = match cloud_events {
        Some(events) => operator.delivering(events),
        None => operator,
    };
    let hand_over = (KindVersions::of::<ResourceOf<O>>().all().len() > 1).then(|| {
        HandOver::follow(
            watching,
            ResourceOf::<O>::crd_name(),
            ResourceOf::<O>::version(&()).into_owned(),
        )
    });
    let stopped = ended(stopping.clone(), hand_over.as_ref());
    match operator.run(stopped).await {
        Ok(()) => handed_back(&stopping, hand_over.as_ref()).await,
        Err(OperatorError::NoContact(error)) => Err(format!(
            "cannot reach the Kubernetes API at {address}: {}",
            chain(&error)
        )),
        Err(error) => Err(chain(&error)),
    }
}

/// Completes when the operator is to end: the program stops, or another release takes over.
fn ended(
    stopping: CancellationToken,
    hand_over: Option<&HandOver>,
) -> impl Future<Output = ()> + Send + use<> {
    let handed_over = OptionFuture::from(hand_over.map(|it| it.until(true)));
    async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            Some(()) = handed_over => {
                tracing::warn!("its objects go back to an earlier version, as the annotation {HANDED_OVER_ANNOTATION} of the definition says: ends its work, and only converts");
            }
        }
    }
}

/// Waits until a program ends whose operator has ended. If its objects are handed back to it, it has to start anew.
async fn handed_back(
    stopping: &CancellationToken,
    hand_over: Option<&HandOver>,
) -> Result<(), String> {
    let Some(hand_over) = hand_over else {
        return Ok(());
    };
    tokio::select! {
        biased;
        () = stopping.cancelled() => Ok(()),
        () = hand_over.until(false) => {
            Err("its objects do not go back to an earlier version any more: start it anew".to_owned())
        }
    }
}

fn log_start<A: Application>(_: &Operator<A>, address: &str) {
    let graph = lifecycle_of::<A::Resource>().map(|graph| graph.name);
    let pass_graph = A::pass();
    let pass = pass_graph.as_ref().map(|pass| PassGraph::graph(pass).name);
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
