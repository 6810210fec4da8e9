//! Watches the CRD in the cluster and decides whether this operator may act.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::runtime::watcher;
use okt_core::stored::{StoredGraph, Unread};
use okt_core::{Graph, Lifecycle};
use okt_wire::keys::GRAPH_ANNOTATION;
use okt_wire::object::LifecycleObject;
use okt_wire::texts::chain;
use okt_wire::watch::{Connection, retried};
use serde_json::Value;
use tokio::sync::watch;

use crate::crd::definition::{crd, graph_text};
use crate::crd::union::value_of;

/// Whether the CRD in the cluster fits this operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Readiness {
    /// The CRD was not read yet.
    Unknown,
    /// The CRD is missing, unreadable or incomplete: the operator may act on no object.
    Unfit(String),
    /// The CRD has everything that this operator writes, and possibly states of a newer one.
    Fit {
        /// The states of the CRD's graph, by present and former names.
        states: BTreeSet<String>,
    },
}

impl Readiness {
    /// Returns whether the CRD's graph has a state of this name.
    pub(crate) fn knows(&self, state: &str) -> bool {
        match self {
            Self::Fit { states } => states.contains(state),
            Self::Unknown | Self::Unfit(_) => false,
        }
    }

    pub(crate) fn is_fit(&self) -> bool {
        matches!(self, Self::Fit { .. })
    }
}

/// What an operator writes, which the CRD in the cluster must have.
pub(crate) struct ExpectedCrd {
    name: &'static str,
    version: String,
    graph: &'static Graph<'static>,
    /// The schema of the status.
    status: Option<Value>,
}

impl ExpectedCrd {
    pub(crate) fn of<K: LifecycleObject>() -> Self {
        let version = K::version(&()).into_owned();
        Self {
            name: K::crd_name(),
            graph: K::State::GRAPH,
            status: crd::<K>().ok().and_then(|own| status_of(&own, &version)),
            version,
        }
    }
}

/// Reads the CRD at start and on every change, as long as the future is polled. `is_limited` is whether the operator is
/// limited to namespaces: one that may not read CRDs, which have none, goes on without comparing.
///
/// Boxed, so that everything in it is compiled here, and not once more for each application.
pub(crate) fn watch_crd(
    expected: ExpectedCrd,
    connection: Connection,
    is_limited: bool,
    readiness: watch::Sender<Readiness>,
) -> BoxFuture<'static, ()> {
    watch_stored(expected, connection, is_limited, readiness).boxed()
}

async fn watch_stored(
    expected: ExpectedCrd,
    connection: Connection,
    is_limited: bool,
    readiness: watch::Sender<Readiness>,
) {
    let name = expected.name;
    let client = connection.for_watch("CustomResourceDefinition");
    let api: Api<CustomResourceDefinition> = Api::all(client);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = Box::pin(retried(watcher(api, config)));
    let mut found = false;
    loop {
        let next = match events.try_next().await {
            Ok(Some(watcher::Event::Apply(crd) | watcher::Event::InitApply(crd))) => {
                found = true;
                judge(&expected, &crd)
            }
            Ok(Some(watcher::Event::Init)) => {
                found = false;
                continue;
            }
            Ok(Some(watcher::Event::InitDone)) if found => continue,
            Ok(Some(watcher::Event::InitDone | watcher::Event::Delete(_))) => Readiness::Unfit(
                format!("there is no CRD {name}; apply the output of the subcommand `crd`"),
            ),
            Ok(None) => return,
            Err(error)
                if is_limited
                    && is_forbidden(&error)
                    && *readiness.borrow() == Readiness::Unknown =>
            {
                tracing::warn!(
                    crd = name,
                    "may not read the CRD, and goes on without comparing it; apply what `rbac` prints: {}",
                    chain(&error)
                );
                Readiness::Fit {
                    states: names_of(expected.graph),
                }
            }
            Err(error) => {
                tracing::warn!(crd = name, "cannot read the CRD: {}", chain(&error));
                continue;
            }
        };
        readiness.send_if_modified(|readiness| {
            let changed = *readiness != next;
            if changed {
                match &next {
                    Readiness::Unfit(why) => tracing::error!(crd = name, "not ready: {why}"),
                    Readiness::Unknown | Readiness::Fit { .. } => {
                        tracing::info!(crd = name, "ready");
                    }
                }
                *readiness = next;
            }
            changed
        });
    }
}

/// Returns whether the operator may not list CRDs.
fn is_forbidden(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 403
    )
}

fn names_of(graph: &Graph<'_>) -> BTreeSet<String> {
    graph
        .iter()
        .map(|(_, state)| state.name.to_owned())
        .collect()
}

/// Compares the CRD in the cluster with the fields and edges that this operator writes.
fn judge(expected: &ExpectedCrd, stored: &CustomResourceDefinition) -> Readiness {
    let graph = match graph_text(stored).map(StoredGraph::read) {
        Some(Ok(graph)) => graph,
        Some(Err(Unread::Format(format))) => {
            return Readiness::Unfit(format!(
                "the annotation {GRAPH_ANNOTATION} of the CRD has format {format}, and this operator knows {}: the CRD is of another version of OKT",
                Graph::JSON_FORMAT
            ));
        }
        Some(Err(Unread::Text(why))) => {
            return Readiness::Unfit(format!(
                "the annotation {GRAPH_ANNOTATION} of the CRD cannot be read: {why}; apply the output of the subcommand `crd`"
            ));
        }
        None => {
            return Readiness::Unfit(format!(
                "the CRD has no annotation {GRAPH_ANNOTATION}; apply the output of the subcommand `crd`"
            ));
        }
    };
    let missing = missing_edge(expected.graph, &graph)
        .or_else(|| missing_subresource(&expected.version, stored))
        .or_else(|| missing_field(expected, stored));
    match missing {
        Some(missing) => Readiness::Unfit(format!(
            "the CRD lacks {missing}, which this operator writes: apply the output of the subcommand `crd`, unless the CRD is of a newer release"
        )),
        None => Readiness::Fit {
            states: graph
                .states
                .into_iter()
                .flat_map(|state| std::iter::once(state.name).chain(state.was))
                .collect(),
        },
    }
}

/// Returns the first state or edge of this operator's graph that the CRD's graph lacks, under old and new names.
fn missing_edge(graph: &Graph<'_>, stored: &StoredGraph) -> Option<String> {
    let edges = stored.edges();
    graph.iter().find_map(|(_, state)| {
        let Some(targets) = stored.named(state.name).and_then(|name| edges.get(name)) else {
            return Some(format!("the state {}", state.name));
        };
        let leads = |to: &str| stored.named(to).is_some_and(|to| targets.contains(to));
        let missing = state
            .targets()
            .map(|to| graph.name_of(to))
            .find(|to| !leads(to))?;
        Some(format!("the edge from {} to {missing}", state.name))
    })
}

/// Returns the status subresource if the CRD lacks it: every write of a status would be a 404.
fn missing_subresource(version: &str, stored: &CustomResourceDefinition) -> Option<String> {
    let served = stored
        .spec
        .versions
        .iter()
        .find(|stored| stored.name == version)?;
    let has_status = served
        .subresources
        .as_ref()
        .is_some_and(|all| all.status.is_some());
    (!has_status).then(|| format!("the status subresource in version {version}"))
}

/// Returns the first field of the status that this operator writes and the CRD does not declare.
///
/// Server-side apply of an undeclared field fails with a 500, so every write would fail.
fn missing_field(expected: &ExpectedCrd, stored: &CustomResourceDefinition) -> Option<String> {
    let own = expected.status.as_ref()?;
    let Some(stored) = status_of(stored, &expected.version) else {
        return Some(format!("a status in version {}", expected.version));
    };
    missing_property(own, &stored, "status")
}

fn status_of(crd: &CustomResourceDefinition, version: &str) -> Option<Value> {
    let version = crd.spec.versions.iter().find(|v| v.name == version)?;
    value_of(version, "status")
}

fn missing_property(own: &Value, stored: &Value, path: &str) -> Option<String> {
    let free = stored.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if free {
        return None;
    }
    for (limit, what) in [("maxItems", "items"), ("maxLength", "characters")] {
        let most = |schema: &Value| schema.get(limit).and_then(Value::as_u64);
        if let (Some(own), Some(stored)) = (most(own), most(stored))
            && stored < own
        {
            return Some(format!(
                "room for {own} {what} in the field {path}: it has room for {stored}"
            ));
        }
    }
    if let (Some(own), Some(stored)) = (own.get("items"), stored.get("items"))
        && let Some(missing) = missing_property(own, stored, path)
    {
        return Some(missing);
    }
    let properties = own.get("properties").and_then(Value::as_object)?;
    properties.iter().find_map(|(name, own)| {
        let path = format!("{path}.{name}");
        match stored.get("properties").and_then(|stored| stored.get(name)) {
            Some(stored) => missing_property(own, stored, &path),
            None => Some(format!("the field {path}")),
        }
    })
}
