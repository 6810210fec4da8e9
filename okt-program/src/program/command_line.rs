//! The command line of an operator.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use okt_runtime::__program::is_label;
#[cfg(feature = "serve")]
use okt_serve::{ListenAddress, ListenAddressError};
use okt_sharding::membership::Shards;
use okt_telemetry::kube_events::EventPolicy;
#[cfg(feature = "logs")]
use tracing_subscriber::EnvFilter;
#[cfg(feature = "logs")]
use tracing_subscriber::filter::LevelFilter;

use crate::install::account::ServiceAccount;

/// Runs the operator, or prints what installs it.
#[derive(Parser)]
#[command(arg_required_else_help = true)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: OperatorCommand,
}

#[derive(Subcommand)]
pub(super) enum OperatorCommand {
    /// Run the operator until SIGTERM or Ctrl-C.
    ///
    /// The cluster is that of $KUBECONFIG or ~/.kube/config, or the one of the pod.
    ///
    /// Each option is also read from the environment, e.g. `--lease-namespace` from `OKT_LEASE_NAMESPACE`, and from the
    /// file of `--config`. The command line comes first, then the environment, then the file.
    Run(Box<RunOptions>),
    /// Print what this release would do to the objects of the cluster, and change nothing.
    ///
    /// It compares the custom resource definition, finds objects that have no place in the graph and those that would
    /// move at once, lets the API server try each change of an owned resource (`dryRun=All`), and asks for the rights
    /// that the service account lacks. It needs the rights of the operator, and that to create subjectaccessreviews.
    /// The cluster is that of $KUBECONFIG or ~/.kube/config, or the one of the pod.
    #[command(after_help = PREVIEW_CODES)]
    Preview(PreviewOptions),
    /// Bring all objects to the version that their custom resource definition stores, and note there that no other one is
    /// stored (`status.storedVersions`).
    ///
    /// Run it once all replicas are of this release and its definition is applied. Each object is written without a
    /// change, or by Kubernetes where it has the kind `StorageVersionMigration`. What is done stays done: if it fails, run it again.
    /// It needs the rights to list and patch the objects in all namespaces, and to patch the status of the definition.
    Migrate {
        /// For the way back to an earlier release: first let the definitions store this version, and serve none that is
        /// newer.
        #[arg(long, value_name = "VERSION")]
        to: Option<String>,
        /// How many objects are written per second.
        #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
        per_second: u32,
    },
    /// Print the custom resource definition, to be applied before `run`.
    Crd {
        /// For one release of an upgrade: also take what the operator of this CRD writes; `-` reads standard input.
        #[arg(long, value_name = "OLD.YAML")]
        union: Option<PathBuf>,
        /// As given to `manifests`: the API server finds the webhooks in its namespace.
        #[cfg_attr(feature = "webhooks", arg(long, value_name = "NAMESPACE/NAME"))]
        #[cfg_attr(not(feature = "webhooks"), arg(skip))]
        service_account: Option<ServiceAccount>,
    },
    /// Print the roles: the least that `run` needs, and those of people who view or edit the objects.
    ///
    /// Add what your handlers themselves request from the cluster.
    Rbac {
        /// As given to `run`: roles in this namespace instead of the whole cluster; may be given several times.
        #[arg(long, value_name = "NAME", value_parser = namespace)]
        namespace: Vec<String>,
        /// Print the bindings too, for this service account, and the role for the leases of its replicas.
        #[arg(long, value_name = "NAMESPACE/NAME")]
        service_account: Option<ServiceAccount>,
        /// As given to `run`, with --service-account: also print the role that asks who may read the metrics, and the
        /// role of those who may.
        #[cfg_attr(feature = "secure-metrics", arg(long, requires = "service_account"))]
        #[cfg_attr(not(feature = "secure-metrics"), arg(skip))]
        metrics_secure: bool,
        /// As given to `manifests`: also print the roles for the verbs of states.
        #[arg(long)]
        state_verbs: bool,
    },
    /// Print all objects that install the operator: `manifests --image IMAGE | kubectl apply --server-side -f -`.
    ///
    /// That is a namespace and a service account, the custom resource definition, the roles with their bindings, a
    /// Deployment, a disruption budget, and a Service for the metrics.
    /// Add what your handlers themselves request from the cluster.
    Manifests(Manifests),
    /// Print the graph of each lifecycle and pass.
    Graph {
        /// The format.
        #[arg(long, value_enum, default_value_t = PrintFormat::Mermaid)]
        format: PrintFormat,
    },
    /// Print what monitors the operator, made from its graph: a Grafana dashboard, Prometheus rules, or metrics of each
    /// object.
    ///
    /// `dashboards rules > rules.yaml`, or for the Prometheus Operator and Grafana's sidecar:
    /// `dashboards rules --manifest | kubectl apply --server-side -f -`.
    Dashboards {
        /// What to print.
        #[arg(value_enum)]
        what: Monitor,
        /// Print a manifest for `kubectl apply`: a `PrometheusRule`, or a `ConfigMap` (for Grafana with the label
        /// `grafana_dashboard`).
        #[arg(long)]
        manifest: bool,
    },
    /// Print the health check and the actions for Argo CD, as its config map.
    ///
    /// `argo-cd | kubectl apply --server-side --field-manager NAME -f -`, with the name of this operator: other operators
    /// write other keys of the same config map, and an apply removes what its manager no longer names.
    ArgoCd,
}

/// What the exit codes of `preview` mean.
const PREVIEW_CODES: &str = "Exit codes:
  0  this release would change nothing
  1  the cluster does not answer, or does not permit it
  2  the command line is wrong
  3  this release would change something
  4  something is to be done before: objects without a place, resources that cannot be applied, rights that are lacking";

/// The options of `preview`.
#[derive(Args)]
pub(super) struct PreviewOptions {
    /// As given to `run`; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(super) namespace: Vec<String>,
    /// The service account whose rights are asked for [default: as in `manifests`]
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(super) service_account: Option<ServiceAccount>,
    /// Show all objects and all differences, not the first ten of each sort.
    #[arg(long)]
    pub(super) all: bool,
    /// Print JSON, with all objects and all differences.
    #[arg(long)]
    pub(super) json: bool,
}

/// What monitors an operator.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Monitor {
    /// A dashboard, as the JSON that Grafana imports.
    Grafana,
    /// Alerting rules, as a file of Prometheus.
    Rules,
    /// Metrics of each object, as the configuration of kube-state-metrics for custom resources.
    KubeStateMetrics,
}

/// A format of graphs.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum PrintFormat {
    /// For Markdown on GitHub and GitLab.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// For programs.
    Json,
}

/// A kind of admission policy.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PolicyKind {
    /// It takes the verb `approve` to approve a plan.
    Approvals,
    /// It takes a verb to ask for a state (`go-stopped`), a visit (`visit-servicing`), a pause (`pause`) or an abandonment
    /// (`abandon`).
    States,
    /// It fills in fields that have an expression as their default (Kubernetes 1.36).
    Defaults,
    /// It refuses what no route leads to, a visit while another is still to be made, and another value of an immutable field.
    Rules,
    /// Only the service account of the operator writes statuses.
    Status,
}

/// The options of `manifests`.
#[derive(Args)]
pub(super) struct Manifests {
    /// The image that has this program as its entry point, and a user that is not root.
    #[arg(long, value_parser = image)]
    pub(super) image: String,
    /// As given to `run`; may be given several times. These namespaces must exist.
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(super) namespace: Vec<String>,
    /// Run as this service account, in its namespace, which must exist [default: both are created, and named after the
    /// program]
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(super) service_account: Option<ServiceAccount>,
    /// The number of replicas.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) replicas: u16,
    /// Also print a `ServiceMonitor`, by which the Prometheus Operator finds the metrics.
    #[cfg_attr(feature = "serve", arg(long))]
    #[cfg_attr(not(feature = "serve"), arg(skip))]
    pub(super) service_monitor: bool,
    /// Also print a `NetworkPolicy` by which nobody reaches the operator, except its metrics and its webhooks.
    #[cfg_attr(feature = "serve", arg(long))]
    #[cfg_attr(not(feature = "serve"), arg(skip))]
    pub(super) network_policy: bool,
    /// Also print admission policies, and the roles with the verbs that they ask for.
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        default_missing_value = "approvals"
    )]
    pub(super) policy: Vec<PolicyKind>,
    /// As given to `run`: how many replicas act at the same time.
    #[arg(long, value_name = "auto|NUMBER", default_value = "1", value_parser = shards)]
    pub(super) shards: Shards,
    /// As given to `crd`, for one release of an upgrade.
    #[arg(long, value_name = "OLD.YAML")]
    pub(super) union: Option<PathBuf>,
    /// As given to `run`; also print the role that asks who may read the metrics, and the role of those who may.
    #[cfg_attr(feature = "secure-metrics", arg(long))]
    #[cfg_attr(not(feature = "secure-metrics"), arg(skip))]
    pub(super) metrics_secure: bool,
    /// Write a chart for helm to this directory instead; what is given here are its default values.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "kustomize")]
    pub(super) helm: Option<PathBuf>,
    /// Write a base and overlays for kustomize to this directory instead.
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) kustomize: Option<PathBuf>,
    /// Write a bundle for the Operator Lifecycle Manager to this directory instead.
    #[arg(
        long,
        value_name = "DIRECTORY",
        conflicts_with_all = ["helm", "kustomize", "namespace", "service_account", "policy", "network_policy"]
    )]
    pub(super) bundle: Option<PathBuf>,
}

/// An address to listen on; none for an empty option.
#[cfg(feature = "serve")]
#[derive(Clone, Copy)]
pub(super) struct Listen(pub(super) Option<ListenAddress>);

#[cfg(feature = "serve")]
fn listen_address(text: &str) -> Result<Listen, ListenAddressError> {
    if text.is_empty() {
        return Ok(Listen(None));
    }
    text.parse().map(|address| Listen(Some(address)))
}

/// What is logged by default. kube logs each failed watch, which the operator logs itself.
#[cfg(feature = "logs")]
pub(super) const LOG: &str = "info,kube_runtime::watcher=error";

#[cfg(feature = "logs")]
fn log_filter(text: &str) -> Result<String, String> {
    filter(text).map(|_| text.to_owned())
}

/// Reads what is to be logged: a level, or levels of modules.
///
/// # Errors
///
/// If it is neither. A word that is no level would be the name of a module to `EnvFilter`, and everything else would be
/// silent.
#[cfg(feature = "logs")]
pub(super) fn filter(text: &str) -> Result<EnvFilter, String> {
    for part in text.split(',') {
        let is_word = !part.is_empty() && !part.contains(['=', '[', ']', '{', '}', ':', '_']);
        if is_word && part.parse::<LevelFilter>().is_err() {
            return Err(format!(
                "`{part}` is no level; levels are error, warn, info, debug, trace and off, \
                 and `{part}=debug` is the level of a module"
            ));
        }
    }
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

/// The format of logs.
#[cfg(feature = "logs")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The content mode of `CloudEvents`.
#[cfg(feature = "cloudevents")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ContentMode {
    /// One JSON object.
    Structured,
    /// Attributes as headers, and the data as the body.
    Binary,
    /// Up to 100 of them as a JSON array; one by one if the receiver takes no batches.
    Batched,
}

/// The value of `--events`.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Events {
    /// Jumps, and transitions along trigger edges.
    WarningsAndTriggers,
    /// Every transition.
    All,
    /// No event at all, also none about troubles.
    None,
}

impl From<Events> for EventPolicy {
    fn from(events: Events) -> Self {
        match events {
            Events::WarningsAndTriggers => Self::WarningsAndTriggers,
            Events::All => Self::All,
            Events::None => Self::None,
        }
    }
}

/// The options of `run`.
#[derive(Args)]
pub(super) struct RunOptions {
    /// Read options from this YAML file, e.g. `shards: auto`.
    #[arg(long, value_name = "FILE", env = "OKT_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// Watch this namespace only; may be given several times. Cluster-scoped kinds are watched in the whole cluster.
    #[arg(long, value_name = "NAME", env = "OKT_NAMESPACE", value_delimiter = ',', value_parser = namespace)]
    pub(super) namespace: Vec<String>,
    /// Share the work with other replicas, one of which leads [default: true in a pod, false elsewhere]
    #[arg(long, value_name = "BOOL", env = "OKT_LEADER_ELECTION", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(super) leader_election: Option<bool>,
    /// How many replicas act at the same time: the leader alone, or several, each on its part of the objects.
    #[arg(long, value_name = "auto|NUMBER", env = "OKT_SHARDS", default_value = "1", value_parser = shards)]
    pub(super) shards: Shards,
    /// The name of the leases that the replicas share [default: the name of the program]
    #[arg(long, value_name = "NAME", env = "OKT_LEASE_NAME", value_parser = lease_name)]
    pub(super) lease_name: Option<String>,
    /// The namespace of the leases [default: the namespace of the pod, or that of the kubeconfig]
    #[arg(long, value_name = "NAME", env = "OKT_LEASE_NAMESPACE", value_parser = namespace)]
    pub(super) lease_namespace: Option<String>,
    /// Serve `/metrics` at this address; empty for none [default: `:8080` in a pod, `:8443` with --metrics-secure, none
    /// elsewhere]
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "HOST:PORT", env = "OKT_METRICS_ADDRESS", value_parser = listen_address)]
    pub(super) metrics_address: Option<Listen>,
    /// Serve `/metrics` over TLS, to those whom the API server lets `get` this path: they send their token.
    #[cfg(feature = "secure-metrics")]
    #[arg(long, value_name = "BOOL", env = "OKT_METRICS_SECURE", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(super) metrics_secure: bool,
    /// The directory of the certificate for --metrics-secure, in the files `tls.crt` and `tls.key`, which may be
    /// replaced [default: a certificate that the program signs itself]
    #[cfg(feature = "secure-metrics")]
    #[arg(long, value_name = "DIRECTORY", env = "OKT_METRICS_CERT_PATH")]
    pub(super) metrics_cert_path: Option<PathBuf>,
    /// Serve `/livez`, `/readyz` and `/statusz` at this address; empty for none [default: `:8081` in a pod, none
    /// elsewhere]
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "HOST:PORT", env = "OKT_HEALTH_ADDRESS", value_parser = listen_address)]
    pub(super) health_address: Option<Listen>,
    /// Serve the webhooks at this address, if a kind has several versions or its objects are checked; empty for none [default: `:9443` in a pod, none
    /// elsewhere]
    #[cfg(feature = "webhooks")]
    #[arg(long, value_name = "HOST:PORT", env = "OKT_WEBHOOK_ADDRESS", value_parser = listen_address)]
    pub(super) webhook_address: Option<Listen>,
    /// The directory of the certificate of the webhooks, in the files `tls.crt` and `tls.key`, which may be replaced, and
    /// `ca.crt` for the definitions [default: a certificate in a Secret, which the replicas make and renew]
    #[cfg(feature = "webhooks")]
    #[arg(long, value_name = "DIRECTORY", env = "OKT_WEBHOOK_CERT_PATH")]
    pub(super) webhook_cert_path: Option<PathBuf>,
    /// How long a certificate of the webhooks is valid that the replicas make.
    #[cfg(feature = "webhooks")]
    #[arg(long, value_name = "TIME", env = "OKT_WEBHOOK_CERT_DURATION", default_value = "2160h", value_parser = certificate_duration)]
    pub(super) webhook_cert_duration: Duration,
    /// Serve the map, a page that shows the objects on their graphs, at this address (e.g. `127.0.0.1:8090`) [default:
    /// none]
    #[cfg(feature = "map")]
    #[arg(long, value_name = "HOST:PORT", env = "OKT_MAP_ADDRESS", value_parser = listen_address)]
    pub(super) map_address: Option<Listen>,
    /// The file with the token that the map asks for: needed if other machines reach --map-address
    #[cfg(feature = "map")]
    #[arg(
        long,
        value_name = "FILE",
        env = "OKT_MAP_TOKEN_FILE",
        requires = "map_address"
    )]
    pub(super) map_token_file: Option<PathBuf>,
    /// What to log on standard error: a level, or levels of modules as in `info,okt_runtime=debug`. In the file of
    /// `--config` it may be changed while the operator runs.
    #[cfg(feature = "logs")]
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = LOG, value_parser = log_filter)]
    pub(super) log: String,
    /// The format of the logs.
    #[cfg(feature = "logs")]
    #[arg(long, value_name = "FORMAT", env = "OKT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(super) log_format: LogFormat,
    /// Which transitions to publish as Kubernetes Events, in addition to troubles [default: warnings-and-triggers]
    #[arg(long, value_name = "WHICH", env = "OKT_EVENTS", value_enum)]
    pub(super) events: Option<Events>,
    /// Send traces to this OpenTelemetry collector by OTLP over HTTP, e.g. `http://collector:4318`
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(super) otlp_endpoint: Option<String>,
    /// Send each transition as a `CloudEvent` to this URL, at least once; Knative's `SinkBinding` sets the variable.
    #[cfg(feature = "cloudevents")]
    #[arg(long, value_name = "URL", env = "K_SINK")]
    pub(super) cloudevents_sink: Option<String>,
    /// How `CloudEvents` are sent: as one JSON object, with their attributes in headers, or several at once.
    #[cfg(feature = "cloudevents")]
    #[arg(long, value_name = "MODE", env = "OKT_CLOUDEVENTS_MODE", value_enum, default_value_t = ContentMode::Structured)]
    pub(super) cloudevents_mode: ContentMode,
    /// The URL of this cluster, before the path of the object in the source of `CloudEvents`.
    #[cfg(feature = "cloudevents")]
    #[arg(
        long,
        value_name = "URL",
        env = "OKT_CLOUDEVENTS_SOURCE",
        default_value = ""
    )]
    pub(super) cloudevents_source: String,
    /// How long a lease is valid; the same for all replicas.
    #[arg(long, value_name = "TIME", env = "OKT_LEASE_DURATION", default_value = "15s", value_parser = lease_duration)]
    pub(super) lease_duration: Duration,
    /// How many objects are reconciled at the same time, without those that wait for your code.
    #[arg(long, value_name = "NUMBER", env = "OKT_CONCURRENCY", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) concurrency: Option<u16>,
    /// How many actions run at the same time.
    #[arg(long, value_name = "NUMBER", env = "OKT_ACTIONS")]
    pub(super) actions: Option<NonZeroU16>,
    /// How many observations and other calls of your code run at the same time.
    #[arg(long, value_name = "NUMBER", env = "OKT_QUESTIONS")]
    pub(super) questions: Option<NonZeroU16>,
    /// The largest average number of requests per second to the API server [default: no limit, the server has its own]
    #[arg(long, value_name = "NUMBER", env = "OKT_REQUESTS_PER_SECOND", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) requests_per_second: Option<u32>,
    /// How many requests may come at once [default: twice --requests-per-second]
    #[arg(long, value_name = "NUMBER", env = "OKT_REQUEST_BURST", requires = "requests_per_second", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) request_burst: Option<u32>,
    /// How long running work may take to end when the program is stopped [default: 20s]
    #[arg(long, value_name = "TIME", env = "OKT_SHUTDOWN_LIMIT", value_parser = duration)]
    pub(super) shutdown_limit: Option<Duration>,
}

/// Parses a namespace. Refuses a name that no namespace can have: the operator would watch nothing and never end.
fn namespace(text: &str) -> Result<String, &'static str> {
    let why = "a namespace is at most 63 of lower case letters, digits and `-`, none of the latter at an end";
    is_label(text).then(|| text.to_owned()).ok_or(why)
}

/// Parses the name of a group of replicas: names of leases begin with it.
fn lease_name(text: &str) -> Result<String, &'static str> {
    let why =
        "a name is at most 40 of lower case letters, digits and `-`, none of the latter at an end";
    (is_label(text) && text.len() <= 40)
        .then(|| text.to_owned())
        .ok_or(why)
}

/// Parses an image. Whether it exists turns out later, on the server.
fn image(text: &str) -> Result<String, &'static str> {
    let is_one = !text.is_empty() && !text.contains(char::is_whitespace);
    is_one
        .then(|| text.to_owned())
        .ok_or("an image is a name without spaces, e.g. `ghcr.io/you/databases:1.0`")
}

fn shards(text: &str) -> Result<Shards, &'static str> {
    match text {
        "auto" => Ok(Shards::Auto),
        "1" => Ok(Shards::One),
        number => match number.parse::<NonZeroU16>() {
            Ok(number) => Ok(Shards::AtMost(number)),
            Err(_) => Err("write `auto`, or a number from 1"),
        },
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    let why = "write a time such as `15s` or `2m`";
    let time: jiff::SignedDuration = text.parse().map_err(|_| why)?;
    Duration::try_from(time).map_err(|_| why)
}

#[cfg(feature = "webhooks")]
fn certificate_duration(text: &str) -> Result<Duration, &'static str> {
    let time = duration(text)?;
    let is_sane = time >= Duration::from_secs(3) && time <= Duration::from_hours(24 * 400);
    is_sane
        .then_some(time)
        .ok_or("a certificate is valid for 3 s to 400 days")
}

fn lease_duration(text: &str) -> Result<Duration, &'static str> {
    let time = duration(text)?;
    let is_sane = time >= Duration::from_secs(3) && time <= Duration::from_hours(1);
    is_sane
        .then_some(time)
        .ok_or("a lease is valid for 3 s to 1 h")
}

#[cfg(feature = "secure-metrics")]
impl RunOptions {
    /// Returns whether the metrics are to be served over TLS.
    pub(super) fn secure_metrics(&self) -> Result<bool, &'static str> {
        if !self.metrics_secure && self.metrics_cert_path.is_some() {
            return Err("--metrics-cert-path is for --metrics-secure, which is not given");
        }
        Ok(self.metrics_secure)
    }
}

#[cfg(all(test, feature = "logs"))]
mod tests;
