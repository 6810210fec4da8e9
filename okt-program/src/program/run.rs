//! The subcommand `run`: the operators of a program, until a signal.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
#[cfg(feature = "webhooks")]
use std::time::Duration;

use clap::ArgMatches;
use futures::future::try_join_all;
use kube::client::ClientBuilder;
use kube::{Client, Config};
#[cfg(any(feature = "cloudevents", feature = "otel"))]
use okt_reach::reach::Reach;
#[cfg(feature = "serve")]
use okt_serve::ListenAddress;
use okt_sharding::gate::Gate;
use okt_sharding::membership::{Group, Membership, Shards};
use okt_telemetry::kube_events::EventPolicy;
use okt_telemetry::monitoring::Monitoring;
use okt_telemetry::operators::controller;
#[cfg(feature = "cloudevents")]
use okt_telemetry::receivers::cloud_events::CloudEvents;
#[cfg(feature = "otel")]
use okt_telemetry::receivers::collector::Traces;
#[cfg(feature = "map")]
use okt_view::Map;
use okt_wire::limit::limit_requests;
use okt_wire::texts::chain;
use tokio_util::sync::CancellationToken;
#[cfg(feature = "serve")]
use tokio_util::task::AbortOnDropHandle;

#[cfg(feature = "cloudevents")]
use super::command_line::ContentMode;
#[cfg(feature = "serve")]
use super::command_line::Listen;
use super::command_line::RunOptions;
#[cfg(feature = "logs")]
use super::logs;
use super::part::{LimitedPart, OperatorLimits, PartTask, ProgramContext};
#[cfg(feature = "serve")]
use crate::install::manifests::{HEALTH_PORT, metrics_port};
#[cfg(feature = "webhooks")]
use crate::install::webhooks::{WEBHOOKS_PORT, WebhookService};
#[cfg(feature = "webhooks")]
use crate::webhooks::{HookedKind, Webhooks};

/// The longest name of the leases, in bytes: a shard has a word behind it.
pub(super) const NAME_LIMIT: usize = 40;

/// Where a pod finds the namespace that it is in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// How long a pod that stops still answers webhooks: for so long, the API server may still be led to it.
#[cfg(feature = "webhooks")]
const LINGERS: Duration = Duration::from_secs(5);

/// Runs operators, each in its namespaces, until a signal; `program` is the name of the program, and
/// `log_file` decides what is logged.
pub(super) async fn run(
    parts: Vec<LimitedPart>,
    asked: &RunOptions,
    log_file: Option<PathBuf>,
    options: &ArgMatches,
    program: String,
) -> Result<(), String> {
    let (config, address) = cluster().await?;
    let stopping = CancellationToken::new();
    #[cfg(feature = "webhooks")]
    let ended_all = CancellationToken::new();
    let monitoring = Monitoring::new();
    for (part, _) in &parts {
        monitoring.expect(controller(&part.kind().1));
    }
    let requests = monitoring.requests(&config);
    let client =
        ClientBuilder::try_from(config).map_err(|error| cannot_connect(&address, &error))?;
    let client = client.with_layer(&requests).build();
    #[cfg(feature = "otel")]
    let traces = traces(asked, &client, &program)?;
    #[cfg(feature = "logs")]
    let _logs = logs::start(
        asked,
        log_file,
        #[cfg(feature = "otel")]
        traces.as_ref(),
    );
    #[cfg(not(feature = "logs"))]
    drop(log_file);
    #[cfg(feature = "serve")]
    let _served = serve(
        asked,
        #[cfg(feature = "secure-metrics")]
        &client,
        &monitoring,
    )
    .await?;
    #[cfg(feature = "map")]
    let _map = map(asked, &client, &parts).await?;
    #[cfg(feature = "webhooks")]
    let webhooks = webhooks(
        asked,
        &client,
        &parts,
        (&program, &monitoring),
        (stopping.clone(), ended_all.clone()),
    )
    .await?;
    #[cfg(not(feature = "webhooks"))]
    for (part, _) in parts.iter().filter(|(part, _)| part.webhooks().converts) {
        tracing::warn!(
            crd = part.crd_name(),
            "its versions differ, and this program converts no objects: it is built without the feature `webhooks`"
        );
    }
    let replica_group = shares(asked)?
        .then(|| group(asked, &client, program))
        .transpose()?;
    let membership = replica_group.map(|group| Membership::join(client.clone(), group));
    let client = limited(client, asked);
    #[cfg(feature = "cloudevents")]
    let cloud_events = cloud_events(asked, &client)?;
    let limits = limits(asked);
    let running = parts.into_iter().map(|(part, namespaces)| {
        if namespaces.len() < asked.namespace.len() {
            let crd = part.crd_name();
            tracing::info!(crd, "cluster-scoped: watched in the whole cluster");
        }
        part.begin(PartTask::Run(Box::new(ProgramContext {
            client: client.clone(),
            address: address.clone(),
            namespaces,
            limits,
            monitoring: monitoring.clone(),
            #[cfg(feature = "cloudevents")]
            cloud_events: cloud_events.clone(),
            gate: membership.as_ref().map_or(Gate::Always, Membership::gate),
            options: options.clone(),
            stopping: stopping.clone(),
        })))
    });
    let running = try_join_all(running);
    let Some(ended) = until_ended(running, membership.as_ref(), &stopping).await else {
        // The next operator resumes the work that runs, as after a crash.
        return Err("stopped at once: a second signal arrived".to_owned());
    };
    if let Some(membership) = membership {
        membership.leave().await;
    }
    #[cfg(feature = "webhooks")]
    ended_all.cancel();
    #[cfg(feature = "webhooks")]
    if let Some(webhooks) = webhooks {
        // It has ended by itself, or after what was on its way.
        let _ended = webhooks.await;
    }
    #[cfg(feature = "otel")]
    if let Some(traces) = traces {
        traces.end().await;
    }
    ended.map(drop)
}

/// Returns a client that sends as many requests as the command line permits.
fn limited(client: Client, asked: &RunOptions) -> Client {
    let Some(rate) = asked.requests_per_second else {
        return client;
    };
    let burst = asked.request_burst.unwrap_or(rate.saturating_mul(2));
    limit_requests(&client, rate, burst)
}

/// Returns how to reach the cluster, and the address of its API server.
pub(super) async fn cluster() -> Result<(Config, String), String> {
    let mut config = Config::infer()
        .await
        .map_err(|error| format!("cannot find a cluster: {}", chain(&error)))?;
    // The operator waits by itself, knows why, and says so.
    config.default_retry = false;
    // Also in a Pod whose kubeconfig names another one.
    if let Ok(namespace) = std::fs::read_to_string(NAMESPACE_FILE) {
        namespace.trim().clone_into(&mut config.default_namespace);
    }
    let address = config.cluster_url.to_string();
    Ok((config, address))
}

pub(super) fn cannot_connect(address: &str, error: &kube::Error) -> String {
    format!("cannot connect to {address}: {}", chain(error))
}

/// Stops the operators at a signal, and returns how they have ended; none at a second signal.
async fn until_ended<T>(
    running: impl Future<Output = T>,
    membership: Option<&Membership>,
    stopping: &CancellationToken,
) -> Option<T> {
    let mut running = pin!(running);
    let ended = tokio::select! {
        ended = &mut running => Some(ended),
        () = shutdown_signal() => None,
    };
    if let Some(membership) = membership {
        membership.stop();
    }
    stopping.cancel();
    if ended.is_some() {
        return ended;
    }
    tokio::select! {
        ended = running => Some(ended),
        () = shutdown_signal() => None,
    }
}

fn limits(asked: &RunOptions) -> OperatorLimits {
    OperatorLimits {
        concurrency: asked.concurrency,
        actions: asked.actions.map(|it| it.get().into()),
        questions: asked.questions.map(|it| it.get().into()),
        shutdown: asked.shutdown_limit,
        events: asked.events.map(EventPolicy::from),
    }
}

/// Serves the metrics and the health, until the result is dropped.
#[cfg(feature = "serve")]
async fn serve(
    asked: &RunOptions,
    #[cfg(feature = "secure-metrics")] client: &Client,
    monitoring: &Monitoring,
) -> Result<Vec<AbortOnDropHandle<()>>, String> {
    let at = |given: Option<Listen>, usual: u16| match given {
        Some(Listen(address)) => address,
        None => is_in_pod().then_some(ListenAddress::All(usual)),
    };
    let health = at(asked.health_address, HEALTH_PORT);
    let with_options = |error| format!("{error}; see --metrics-address and --health-address");
    #[cfg(feature = "secure-metrics")]
    let with_tls_options =
        |error| format!("{error}; see --metrics-address and --metrics-cert-path");
    let mut running = Vec::new();
    #[cfg(feature = "secure-metrics")]
    let secure = asked.secure_metrics()?;
    #[cfg(not(feature = "secure-metrics"))]
    let secure = false;
    let metrics = match at(asked.metrics_address, metrics_port(secure)) {
        #[cfg(feature = "secure-metrics")]
        Some(metrics) if secure => {
            let certificate = asked.metrics_cert_path.as_deref();
            let served = monitoring
                .serve_securely(metrics, client, certificate)
                .await;
            running.push(tokio::spawn(served.map_err(with_tls_options)?));
            None
        }
        metrics => metrics,
    };
    let served = monitoring
        .serve(metrics, health)
        .await
        .map_err(with_options)?;
    running.push(tokio::spawn(served));
    Ok(running.into_iter().map(AbortOnDropHandle::new).collect())
}

/// Serves the map of the operators' objects, until the result is dropped.
#[cfg(feature = "map")]
async fn map(
    asked: &RunOptions,
    client: &Client,
    parts: &[LimitedPart],
) -> Result<Option<AbortOnDropHandle<()>>, String> {
    let Some(Listen(Some(address))) = asked.map_address else {
        return Ok(None);
    };
    let token = asked.map_token_file.as_ref().map(|file| {
        let content = std::fs::read_to_string(file);
        let text = content.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Ok::<_, String>(text.trim().to_owned())
    });
    let kinds = parts.iter().filter_map(|(part, _)| part.shown());
    let map = Map::new(client.clone(), kinds, asked.namespace.iter().cloned());
    let (address, served) = map
        .serve(address, token.transpose()?)
        .await
        .map_err(|error| format!("{error}; see --map-address and --map-token-file"))?;
    tracing::info!(%address, "serves the map");
    let both = async move {
        let ((), ()) = futures::future::join(map.watch(), served).await;
    };
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(both))))
}

/// Serves the webhooks, until the result is dropped, or until the operators have ended; none if no kind needs one.
#[cfg(feature = "webhooks")]
async fn webhooks(
    asked: &RunOptions,
    client: &Client,
    parts: &[LimitedPart],
    (program, monitoring): (&str, &Monitoring),
    tokens: (CancellationToken, CancellationToken),
) -> Result<Option<AbortOnDropHandle<()>>, String> {
    let kinds = parts.iter().map(|(part, _)| part.hooked());
    let kinds: Vec<_> = kinds.filter(HookedKind::is_asked).collect();
    let address = match asked.webhook_address {
        Some(Listen(address)) => address,
        None => is_in_pod().then_some(ListenAddress::All(WEBHOOKS_PORT)),
    };
    let Some(address) = address.filter(|_| !kinds.is_empty()) else {
        return Ok(None);
    };
    let webhooks = Webhooks {
        address,
        certificate: asked.webhook_cert_path.clone(),
        service: WebhookService::of(program, &own_namespace(asked, client)),
        valid: asked.webhook_cert_duration,
        lingers: if is_in_pod() { LINGERS } else { Duration::ZERO },
    };
    let served = crate::webhooks::serve(webhooks, client.clone(), kinds, monitoring, tokens).await;
    let served = served
        .map_err(|error| format!("{error}; see --webhook-address and --webhook-cert-path"))?;
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(served))))
}

/// Returns the exporter of traces, if the command line asks for one.
#[cfg(feature = "otel")]
fn traces(asked: &RunOptions, client: &Client, program: &str) -> Result<Option<Traces>, String> {
    let Some(endpoint) = asked.otlp_endpoint.as_deref().filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    let http = Reach::new(client.clone()).http();
    let traces = Traces::to(endpoint, program, &http);
    traces
        .map(Some)
        .map_err(|error| format!("--otlp-endpoint: {}", chain(&*error)))
}

/// Returns where transitions are sent, if the command line names a place.
#[cfg(feature = "cloudevents")]
fn cloud_events(asked: &RunOptions, client: &Client) -> Result<Option<CloudEvents>, String> {
    let Some(url) = asked
        .cloudevents_sink
        .as_deref()
        .filter(|it| !it.is_empty())
    else {
        return Ok(None);
    };
    let http = Reach::new(client.clone()).http();
    let events =
        CloudEvents::new(http, url).map_err(|error| format!("--cloudevents-sink: {error}"))?;
    let events = events.source(asked.cloudevents_source.clone());
    Ok(Some(match asked.cloudevents_mode {
        ContentMode::Structured => events,
        ContentMode::Binary => events.binary(),
        ContentMode::Batched => events.batched(),
    }))
}

/// Returns whether this process is one of several replicas: by default, if it runs in a pod, or an option is about
/// replicas.
///
/// # Errors
///
/// If the options contradict each other.
fn shares(asked: &RunOptions) -> Result<bool, String> {
    let is_of_many = asked.shards != Shards::One;
    if asked.leader_election == Some(false) && is_of_many {
        return Err("--shards needs leader election: leave out --leader-election=false".to_owned());
    }
    let is_named = asked.lease_name.is_some();
    Ok(asked
        .leader_election
        .unwrap_or_else(|| is_of_many || is_named || is_in_pod()))
}

fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn group(asked: &RunOptions, client: &Client, program: String) -> Result<Group, String> {
    let name = asked.lease_name.clone().unwrap_or(program);
    if name.is_empty() || name.len() > NAME_LIMIT {
        return Err("cannot name the leases after this program: pass --lease-name NAME".to_owned());
    }
    Ok(Group::new(name, own_namespace(asked, client))
        .shards(asked.shards)
        .lease(asked.lease_duration))
}

/// Returns the namespace of what the replicas share.
fn own_namespace(asked: &RunOptions, client: &Client) -> String {
    let asked = asked.lease_namespace.as_deref();
    asked.unwrap_or(client.default_namespace()).to_owned()
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::program::command_line::{CommandLine, OperatorCommand};

    #[test]
    fn options_about_replicas_make_a_process_one_of_several() {
        let is_one = |options: &[&str]| {
            let line = CommandLine::parse_from([&["it", "run"], options].concat());
            let OperatorCommand::Run(run) = line.command else {
                panic!("it is `run`");
            };
            shares(&run)
        };
        assert_eq!(is_one(&[]), Ok(is_in_pod()));
        assert_eq!(is_one(&["--leader-election"]), Ok(true));
        assert_eq!(is_one(&["--leader-election=false"]), Ok(false));
        assert_eq!(is_one(&["--shards", "auto"]), Ok(true));
        assert_eq!(is_one(&["--lease-name", "them"]), Ok(true));
        assert!(is_one(&["--shards=3", "--leader-election=false"]).is_err());
    }
}
