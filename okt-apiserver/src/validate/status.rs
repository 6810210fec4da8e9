//! Checks the status that a controller writes to an object of a built-in kind.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::json;

use super::part::CheckedPart;
use super::{certificate, job, quota};
use crate::causes::Causes;
use crate::kind::ServedKind;
use crate::{object, rules};

/// Checks a status that is written, apart from the metadata; `approves` says by which endpoint.
pub(super) fn check(
    kind: &ServedKind,
    old: &CheckedPart<'_>,
    new: &CheckedPart<'_>,
    approves: bool,
    causes: &mut Causes,
) {
    let (was, is) = (&old.field("status"), &new.field("status"));
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod(old, new, causes),
        ("", "Namespace") => namespace(new, causes),
        ("", "Node") => node(is, causes),
        ("", "Service") => {
            let ingress = is.field("loadBalancer.ingress");
            if new.field("spec.type").text() == "LoadBalancer" || ingress.is_empty() {
                balanced(&ingress, true, causes);
            } else {
                let detail = "may only be used when `spec.type` is 'LoadBalancer'";
                ingress.forbid(detail, causes);
            }
        }
        ("networking.k8s.io", "Ingress") => {
            balanced(&is.field("loadBalancer.ingress"), false, causes);
        }
        ("", "ResourceQuota") => {
            for key in ["hard", "used"] {
                quota::check_amounts(&is.field(key), causes);
            }
        }
        ("", "PersistentVolumeClaim") => {
            let capacity = is.field("capacity");
            for (name, _) in capacity.entries() {
                let amount = capacity.key(name);
                if let Some(bytes) = amount.quantity().filter(|amount| *amount < 0) {
                    // A server shows the number.
                    let shown = bytes / 1_000_000_000;
                    let detail = "must be a valid resource quantity";
                    causes.invalid(&*amount.path, i64::try_from(shown).ok(), detail);
                }
            }
        }
        ("batch", "Job") => job::check_status(old, new, causes),
        ("policy", "PodDisruptionBudget") => is.field("conditions").conditions(causes),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificate::request(new, causes);
            certificate::check_change(old, new, approves, causes);
        }
        _ => {}
    }
    check_counts(&kind.kind, was, is, causes);
}

/// The numbers of a status, and those of them that count a part of the replicas.
struct Counts {
    all: &'static [&'static str],
    parts: &'static [&'static str],
}

const DEPLOYMENT: Counts = Counts {
    all: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
};

const REPLICA_SET: Counts = Counts {
    all: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
};

const STATEFUL_SET: Counts = Counts {
    all: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    parts: &[
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ],
};

const DAEMON_SET: Counts = Counts {
    all: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    parts: &[],
};

const AUTOSCALER: Counts = Counts {
    all: &["currentReplicas", "desiredReplicas"],
    parts: &[],
};

const BUDGET: Counts = Counts {
    all: &[
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ],
    parts: &[],
};

/// Checks the numbers of a status.
fn check_counts(kind: &str, was: &CheckedPart<'_>, is: &CheckedPart<'_>, causes: &mut Causes) {
    let Counts { all, parts } = match kind {
        "Deployment" => DEPLOYMENT,
        "ReplicaSet" | "ReplicationController" => REPLICA_SET,
        "StatefulSet" => STATEFUL_SET,
        "DaemonSet" => DAEMON_SET,
        "HorizontalPodAutoscaler" => AUTOSCALER,
        "PodDisruptionBudget" => BUDGET,
        _ => return,
    };
    for key in all {
        is.field(key).not_negative(causes);
    }
    if !parts.is_empty() {
        check_parts(kind, is, parts, causes);
    }
    if all.contains(&"collisionCount") {
        check_collisions(was, is, causes);
    }
}

/// Checks that parts of the replicas are not more than all of them, and that only ready ones are available.
fn check_parts(kind: &str, status: &CheckedPart<'_>, parts: &[&str], causes: &mut Causes) {
    let all = status.field("replicas").number();
    for key in parts {
        let part = status.field(key);
        if part.number() > all {
            part.invalid("cannot be greater than status.replicas", causes);
        }
    }
    let available = status.field("availableReplicas");
    if available.number() > status.field("readyReplicas").number() {
        let path = if kind == "StatefulSet" { "status." } else { "" };
        let detail = format!("cannot be greater than {path}readyReplicas");
        available.invalid(&detail, causes);
    }
}

fn check_collisions(was: &CheckedPart<'_>, is: &CheckedPart<'_>, causes: &mut Causes) {
    let (before, count) = (was.field("collisionCount"), is.field("collisionCount"));
    if before.is_set() && (!count.is_set() || count.number() < before.number()) {
        causes.invalid(&*count.path, count.number(), "cannot be decremented");
    }
}

fn namespace(namespace: &CheckedPart<'_>, causes: &mut Causes) {
    let (allowed, is_empty) = if object::is_deleting(namespace.value) {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    let phase = namespace.field("status.phase").text();
    if phase != allowed {
        let detail = format!("may only be '{allowed}' if `deletionTimestamp` {is_empty}");
        causes.invalid("status.Phase", phase, &detail);
    }
}

/// An address as a server shows it.
#[derive(PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct NodeAddress<'a> {
    #[serde(rename = "Type")]
    kind: &'a str,
    address: &'a str,
}

fn node(status: &CheckedPart<'_>, causes: &mut Causes) {
    let mut seen = Vec::new();
    for address in status.field("addresses").items() {
        let fields = NodeAddress {
            kind: address.field("type").text(),
            address: address.field("address").text(),
        };
        if seen.contains(&fields) {
            causes.duplicate(&*address.path, &fields);
        }
        seen.push(fields);
    }
}

/// Checks the addresses of a load balancer; those of Services say how they are used.
fn balanced(ingress: &CheckedPart<'_>, has_modes: bool, causes: &mut Causes) {
    for address in ingress.items() {
        let (ip, mode) = (address.field("ip"), address.field("ipMode"));
        if !ip.is_empty() {
            ip.ip_address(causes);
        }
        if has_modes && ip.is_empty() && mode.is_set() {
            mode.forbid("may not be specified when `ip` is not set", causes);
        } else if has_modes {
            mode.supported(&["Proxy", "VIP"], causes);
        }
        address.field("hostname").host_name(causes);
    }
}

fn pod(old: &CheckedPart<'_>, new: &CheckedPart<'_>, causes: &mut Causes) {
    const NO_COUNT: &str = "must be a non-negative integer";
    let (was, is) = (old.field("status"), new.field("status"));
    for condition in is.field("conditions").items() {
        let observed = condition.field("observedGeneration");
        if observed.number() < 0 {
            observed.invalid(NO_COUNT, causes);
        }
        let kind = condition.field("type").text();
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            rules::check_key(&format!("{}.Type", condition.path), kind, causes);
        }
    }
    let nominated = is.field("nominatedNodeName");
    if !nominated.is_empty() && nominated.text() != was.field("nominatedNodeName").text() {
        nominated.dns_subdomain(causes);
        if !old.field("spec.nodeName").is_empty() {
            nominated.forbid(
                "may not be set on pods that are already bound to a node",
                causes,
            );
        }
    }
    let observed = is.field("observedGeneration");
    if observed.number() < 0 {
        observed.invalid(NO_COUNT, causes);
    }
    let class = is.field("qosClass");
    if class.text() != was.field("qosClass").text() {
        class.invalid("field is immutable", causes);
    }
    for (statuses, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        let spec = old.field("spec");
        check_restarts(
            &was.field(statuses),
            &is.field(statuses),
            &spec,
            containers,
            causes,
        );
    }
    check_addresses(&is, causes);
}

/// Checks the addresses of a Pod and of its node.
fn check_addresses(is: &CheckedPart<'_>, causes: &mut Causes) {
    for (list, first) in [("podIPs", ""), ("hostIPs", "hostIP")] {
        let addresses = is.field(list);
        let ips: Vec<_> = addresses.items().map(|it| it.field("ip")).collect();
        if let (false, Some(ip)) = (first.is_empty(), ips.first())
            && ip.text() != is.field(first).text()
        {
            ip.invalid("must be equal to `hostIP`", causes);
        }
        for (ip, address) in ips.iter().zip(addresses.items()) {
            let path = address.path;
            CheckedPart {
                value: ip.value,
                path,
            }
            .ip_address(causes);
        }
        if ips.len() > 1 {
            let all = ips.iter().enumerate();
            if let Some((index, wrong)) = all.into_iter().find(|(_, ip)| !ip.is_ip_address()) {
                let wrong = wrong.text();
                let detail = format!(
                    "failed to check for dual stack with error:invalid IP[{index}]: {wrong}"
                );
                causes.internal(&*addresses.path, &detail);
            }
        }
        let families: BTreeSet<_> = ips.iter().map(|ip| ip.text().contains(':')).collect();
        if ips.len() > families.len() {
            let shown: Vec<_> = ips.iter().map(|ip| json!({ "IP": ip.value })).collect();
            let detail = "may specify no more than one IP for each IP family";
            causes.invalid(&*addresses.path, shown, detail);
        }
    }
}

/// Checks that a container that has ended begins again only if its Pod lets it.
fn check_restarts(
    were: &CheckedPart<'_>,
    are: &CheckedPart<'_>,
    spec: &CheckedPart<'_>,
    containers: &str,
    causes: &mut Causes,
) {
    let restarts_all = |list: &str| {
        let all = spec.field(list);
        let mut rules = all
            .items()
            .flat_map(|it| it.field("restartPolicyRules").items().collect::<Vec<_>>());
        rules.any(|rule| rule.field("action").text() == "RestartAllContainers")
    };
    let is_ephemeral = containers.is_empty();
    if !is_ephemeral
        && ["containers", "initContainers"]
            .into_iter()
            .any(restarts_all)
    {
        return;
    }
    for status in were.items() {
        let (name, ended) = (
            status.field("name").text(),
            status.field("state.terminated"),
        );
        let runs_now = |it: &CheckedPart<'_>| {
            it.field("name").text() == name && !it.field("state.terminated").is_set()
        };
        if !ended.is_set() || !are.items().any(|it| runs_now(&it)) {
            continue;
        }
        let code = ended.field("exitCode").number();
        let mut all = spec
            .field(containers)
            .items()
            .collect::<Vec<_>>()
            .into_iter();
        let container = all.find(|it| it.field("name").text() == name);
        if is_ephemeral || !container.is_some_and(|it| restarts(&it, spec, code)) {
            let state = status.field("state");
            state.forbid("may not be transitioned to non-terminated state", causes);
        }
    }
}

/// Whether a container that has ended with an exit code begins again.
fn restarts(container: &CheckedPart<'_>, pod: &CheckedPart<'_>, code: i64) -> bool {
    let own = container.field("restartPolicy");
    let is_meant = |rule: &CheckedPart<'_>| {
        let codes = rule.field("exitCodes");
        let is_listed = codes.field("values").items().any(|it| it.number() == code);
        match codes.field("operator").text() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    };
    let by_rule = own.is_set()
        && container
            .field("restartPolicyRules")
            .items()
            .any(|it| is_meant(&it));
    let policy = if own.is_set() {
        own
    } else {
        pod.field("restartPolicy")
    };
    by_rule
        || match policy.text() {
            "OnFailure" => code != 0,
            "Never" => false,
            _ => true,
        }
}
