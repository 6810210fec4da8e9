//! What else in the cluster may keep an object where it is: the replicas of operators, webhooks, events.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use okt_core::reasons::{self, resources};
use okt_wire::keys::{GROUP_LABEL, KINDS_KEY, READY_KEY};

use crate::limits::LimitView;
use crate::object::View;
use crate::requests::ObjectRequests;
use crate::text::plain;

/// How many events, and how many pods, are shown.
const SHOWN: usize = 5;

/// What surrounds an object.
#[derive(Default, Debug)]
pub(super) struct ObjectSurroundings {
    /// The groups of replicas that may act on the object; none if they cannot be listed.
    pub(super) groups: Option<Vec<ReplicaGroup>>,
    /// The webhooks that may change the status of the object.
    pub(super) webhooks: Vec<String>,
    /// The pods of the resources that the object waits for, each with what it waits for.
    pub(super) pods: Vec<String>,
    /// The limit before which the object waits, and how many objects wait longer.
    pub(super) limit: Option<(LimitView, usize)>,
    /// The requests for the object; none if they cannot be listed.
    pub(super) requests: Option<ObjectRequests>,
    /// The last warnings about the object, oldest first.
    pub(super) events: Vec<String>,
    /// What could not be read, and why.
    pub(super) unread: Vec<String>,
}

/// The replicas of one operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReplicaGroup {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The names of the CRDs of its objects; none if a release wrote the leases that does not record them.
    pub(super) kinds: BTreeSet<String>,
    /// How many replicas have a valid lease.
    pub(super) alive: usize,
    /// How many of these have read their CRDs and filled their caches.
    pub(super) ready: usize,
}

impl ObjectSurroundings {
    pub(super) async fn read(client: &Client, view: &View<'_>) -> Self {
        let mut all = Self::default();
        let name = view.name();
        let (groups, webhooks, limit, pods, requests, events) = futures::join!(
            groups(client, view),
            webhooks(client, view),
            limit(client, view),
            pods(client, view),
            ObjectRequests::read(client, view.kind, view.namespace(), name, Some(view)),
            events(client, view)
        );
        match groups {
            Ok(groups) => all.groups = Some(groups),
            Err(error) => all.note("the leases of operators", &error),
        }
        match webhooks {
            Ok(webhooks) => all.webhooks = webhooks,
            Err(error) => all.note("webhooks", &error),
        }
        match limit {
            Ok(limit) => all.limit = limit,
            Err(error) => all.note("the places of the limit", &error),
        }
        match pods {
            Ok(pods) => all.pods = pods,
            Err(error) => all.note("pods", &error),
        }
        match requests {
            Ok(requests) => all.requests = Some(requests),
            Err(error) => all.unread.push(format!("requests ({error})")),
        }
        match events {
            Ok(events) => all.events = events,
            Err(error) => all.note("events", &error),
        }
        all
    }

    fn note(&mut self, what: &str, error: &kube::Error) {
        let why = match error {
            kube::Error::Api(status) => status.message.clone(),
            error => error.to_string(),
        };
        self.unread.push(format!("{what} ({})", plain(&why)));
    }
}

async fn groups(client: &Client, view: &View<'_>) -> Result<Vec<ReplicaGroup>, kube::Error> {
    let lease_api: Api<Lease> = Api::all(client.clone());
    let leases = lease_api
        .list(&ListParams::default().labels(GROUP_LABEL))
        .await?;
    let groups = grouped(&leases.items, Timestamp::now());
    Ok(of_kind(groups, &view.kind.id()))
}

/// Returns the groups that name a kind; where none does, those that name no kind.
fn of_kind(mut groups: Vec<ReplicaGroup>, kind: &str) -> Vec<ReplicaGroup> {
    let is_named = groups.iter().any(|group| group.kinds.contains(kind));
    groups.retain(|group| {
        if is_named {
            group.kinds.contains(kind)
        } else {
            group.kinds.is_empty()
        }
    });
    groups
}

/// Returns the groups of these leases; the lease of a table has no duration.
fn grouped(leases: &[Lease], now: Timestamp) -> Vec<ReplicaGroup> {
    let mut groups: Vec<ReplicaGroup> = Vec::new();
    for lease in leases {
        let labels = lease.metadata.labels.as_ref();
        let Some(name) = labels.and_then(|labels| labels.get(GROUP_LABEL)) else {
            continue;
        };
        let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
        let position = groups
            .iter()
            .position(|it| it.name == *name && it.namespace == namespace);
        let known = position.unwrap_or_else(|| {
            groups.push(ReplicaGroup {
                namespace: namespace.to_owned(),
                name: name.clone(),
                kinds: BTreeSet::new(),
                alive: 0,
                ready: 0,
            });
            groups.len() - 1
        });
        let text = |key: &str| lease.metadata.annotations.as_ref()?.get(key);
        let kinds = text(KINDS_KEY)
            .into_iter()
            .flat_map(|kinds| kinds.split(','));
        groups[known].kinds.extend(kinds.map(str::to_owned));
        let spec = lease.spec.clone().unwrap_or_default();
        let (Some(renewed), Some(length)) = (spec.renew_time, spec.lease_duration_seconds) else {
            continue;
        };
        // The clocks of two machines differ; a lease that is valid for seconds more changes nothing here.
        if now.duration_since(renewed.0).as_secs() > 2 * i64::from(length) {
            continue;
        }
        groups[known].alive += 1;
        if text(READY_KEY).is_some_and(|ready| ready == "true") {
            groups[known].ready += 1;
        }
    }
    groups
}

async fn webhooks(client: &Client, view: &View<'_>) -> Result<Vec<String>, kube::Error> {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let configurations = api.list(&ListParams::default()).await?.items;
    Ok(of_status(&configurations, &view.kind.resource))
}

/// Returns the webhooks that may change the status of objects of a kind.
fn of_status(
    configurations: &[MutatingWebhookConfiguration],
    resource: &ApiResource,
) -> Vec<String> {
    let status = format!("{}/status", resource.plural);
    let has = |list: &Option<Vec<String>>, wanted: &[&str]| {
        let mut list = list.iter().flatten();
        list.any(|it| wanted.contains(&it.as_str()))
    };
    let matches = |rule: &RuleWithOperations| {
        has(&rule.api_groups, &["*", &resource.group])
            && has(&rule.resources, &["*/*", "*/status", &status])
    };
    let all = configurations.iter().flat_map(|configuration| {
        let of = configuration.metadata.name.as_deref().unwrap_or_default();
        let hooks = configuration.webhooks.iter().flatten();
        hooks.map(move |hook| (of, hook))
    });
    let hooks = all.filter(|(_, hook)| hook.rules.iter().flatten().any(matches));
    hooks
        .map(|(of, hook)| format!("{} in mutatingwebhookconfiguration/{of}", hook.name))
        .collect()
}

/// Returns the limit before which an object waits, and how many objects wait for its places for a longer time.
async fn limit(
    client: &Client,
    view: &View<'_>,
) -> Result<Option<(LimitView, usize)>, kube::Error> {
    let Some(own) = view.position().and_then(|it| it.waiting.as_ref()) else {
        return Ok(None);
    };
    if view.ready().1 != reasons::WAITING_FOR_LIMIT {
        return Ok(None);
    }
    let all = LimitView::all(client).await?.into_iter();
    let mut all = all.filter(|it| it.key.crd == view.kind.id());
    let limit = all.find(|it| (&it.key.limit, &it.key.group) == (&own.gate, &own.group));
    let objects = view.kind.objects(client, None);
    let objects = objects
        .list(&ListParams::default())
        .await?
        .items
        .into_iter();
    let before = objects.filter(|object| {
        let waiting = &object.data["status"]["lifecycle"]["waiting"];
        let since: Option<Timestamp> = waiting["since"].as_str().and_then(|it| it.parse().ok());
        waiting["gate"].as_str() == Some(&own.gate)
            && waiting["group"].as_str().unwrap_or_default() == own.group
            && since.is_some_and(|since| own.since.is_some_and(|own| since < own))
    });
    let before = before.count();
    Ok(limit.map(|limit| (limit, before)))
}

/// The kinds that make pods.
const WORKLOADS: [&str; 6] = [
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "StatefulSet",
];

async fn pods(client: &Client, view: &View<'_>) -> Result<Vec<String>, kube::Error> {
    let (_, reason, message) = view.ready();
    let waits = [resources::WAITING, resources::NOT_READY].contains(&reason);
    let (Some(namespace), true) = (view.namespace(), waits) else {
        return Ok(Vec::new());
    };
    // Messages name a resource as `Deployment web`.
    let words: Vec<&str> = message.split([' ', ':', ',', ';']).collect();
    let pairs = words.windows(2).filter(|pair| WORKLOADS.contains(&pair[0]));
    let names: Vec<&str> = pairs.map(|pair| pair[1]).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut pods = api.list(&ListParams::default()).await?.items;
    pods.retain(|pod| {
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        let is_of = |name: &&str| {
            let rest = pod.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        names.iter().any(is_of)
    });
    Ok(pods.iter().filter_map(waits_for).take(SHOWN).collect())
}

/// Returns what a pod waits for; none if it runs.
fn waits_for(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref()?;
    let status = pod.status.as_ref()?;
    let init_containers = status.init_container_statuses.iter().flatten();
    let mut containers = init_containers.chain(status.container_statuses.iter().flatten());
    let waiting = containers.find_map(|container| container.state.as_ref()?.waiting.as_ref());
    let conditions = status.conditions.iter().flatten();
    let mut unscheduled =
        conditions.filter(|it| it.type_ == "PodScheduled" && it.status == "False");
    let (reason, message) = match (waiting, unscheduled.next()) {
        (Some(waiting), _) => (&waiting.reason, &waiting.message),
        (None, Some(condition)) => (&condition.reason, &condition.message),
        (None, None) => return None,
    };
    let reason = reason.as_deref().unwrap_or("Waiting");
    let message = message.as_deref().unwrap_or_default();
    let separator = if message.is_empty() { "" } else { ": " };
    Some(plain(&format!(
        "Pod {name} waits: {reason}{separator}{message}"
    )))
}

async fn events(client: &Client, view: &View<'_>) -> Result<Vec<String>, kube::Error> {
    // The events about cluster-scoped objects are in this namespace.
    let namespace = view.namespace().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let uid = view.meta.uid.as_deref().unwrap_or_default();
    let fields = format!("involvedObject.uid={uid},type=Warning");
    let mut events = api
        .list(&ListParams::default().fields(&fields))
        .await?
        .items;
    let time = |event: &Event| {
        let series = event
            .series
            .as_ref()
            .and_then(|series| series.last_observed_time.as_ref());
        let micro = series.or(event.event_time.as_ref()).map(|time| time.0);
        micro.or(event.last_timestamp.as_ref().map(|time| time.0))
    };
    events.sort_by_key(time);
    let last = events.iter().skip(events.len().saturating_sub(SHOWN));
    let line = |event: &Event| {
        let at = time(event)
            .map(|at| at.strftime("%F %TZ").to_string())
            .unwrap_or_default();
        let reason = event.reason.as_deref().unwrap_or_default();
        let message = event.message.as_deref().unwrap_or_default();
        plain(&format!("{at} {reason}: {message}"))
    };
    Ok(last.map(line).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_webhooks_that_see_the_status_are_named() {
        let hook = |name: &str, group: &str, resource: &str| {
            json!({
                "name": name, "admissionReviewVersions": ["v1"], "clientConfig": {}, "sideEffects": "None",
                "rules": [{ "apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource] }],
            })
        };
        let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
            "metadata": { "name": "policy" },
            "webhooks": [
                hook("a", "demo.okt.dev", "databases/status"),
                hook("b", "*", "*/*"),
                hook("c", "demo.okt.dev", "*"),
                hook("d", "apps", "*/*"),
            ],
        }))
        .expect("a configuration");
        let resource = ApiResource {
            group: "demo.okt.dev".to_owned(),
            version: "v1".to_owned(),
            api_version: "demo.okt.dev/v1".to_owned(),
            kind: "Database".to_owned(),
            plural: "databases".to_owned(),
        };
        let named = of_status(&[configuration], &resource);
        let of = "in mutatingwebhookconfiguration/policy";
        assert_eq!(named, [format!("a {of}"), format!("b {of}")]);
    }

    #[test]
    fn replicas_are_counted_by_their_leases() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().expect("a time");
        let member = |name: &str, renewed: &str, ready: &str| -> Lease {
            serde_json::from_value(json!({
                "metadata": {
                    "name": name, "namespace": "system",
                    "labels": { "okt.dev/ranges": "app" }, "annotations": { "okt.dev/ready": ready },
                },
                "spec": { "renewTime": renewed, "leaseDurationSeconds": 15 },
            }))
            .expect("a lease")
        };
        let table: Lease = serde_json::from_value(json!({
            "metadata": {
                "name": "app-ranges", "namespace": "system",
                "labels": { "okt.dev/ranges": "app" }, "annotations": { "okt.dev/kinds": "a.demo,b.demo" },
            },
            "spec": {},
        }))
        .expect("a lease");
        let leases = [
            table,
            member("a", "2026-11-25T11:59:50.000000Z", "true"),
            member("b", "2026-11-25T11:59:50.000000Z", "false"),
            member("c", "2026-11-25T11:00:00.000000Z", "true"),
        ];
        let group = ReplicaGroup {
            namespace: "system".to_owned(),
            name: "app".to_owned(),
            kinds: ["a.demo", "b.demo"].map(str::to_owned).into(),
            alive: 2,
            ready: 1,
        };
        assert_eq!(grouped(&leases, now), [group]);
    }

    #[test]
    fn only_groups_that_may_act_on_the_kind_are_named() {
        let group = |name: &str, kinds: &[&str]| ReplicaGroup {
            namespace: "system".to_owned(),
            name: name.to_owned(),
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            alive: 1,
            ready: 1,
        };
        let groups = vec![
            group("old", &[]),
            group("one", &["a.demo"]),
            group("two", &["b.demo"]),
        ];
        let named = |kind: &str| {
            let groups = of_kind(groups.clone(), kind).into_iter();
            groups.map(|group| group.name).collect::<Vec<_>>()
        };
        assert_eq!(named("a.demo"), ["one"]);
        assert_eq!(named("c.demo"), ["old"]);
    }
}
