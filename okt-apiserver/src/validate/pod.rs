//! Pods and their templates.

mod container;
mod placement;
mod running;
mod volume;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

pub(super) use self::container::check_resource_name;
use self::container::{check_container, check_host_ports, check_probes, check_unique, check_user};
use self::placement::{check_placement, check_toleration};
pub(super) use self::running::{check_attached, check_resized};
use self::volume::check_volumes;
use super::part::{CheckedPart, Rule};
use crate::causes::Causes;
use crate::rules;

static SYSCTL: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    Regex::new(pattern).expect("it is valid")
});
static SEARCH: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$";
    Regex::new(pattern).expect("it is valid")
});
const NO_SEARCH: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";

/// Checks the template of a Pod.
pub(super) fn check_template(template: &CheckedPart<'_>, causes: &mut Causes) {
    template.field("metadata.labels").labels(causes);
    for (key, _) in template.field("metadata.annotations").entries() {
        let path = format!("{}.annotations", template.path);
        rules::check_key(&path, &key.to_lowercase(), causes);
    }
    let ephemeral = template.field("spec.ephemeralContainers");
    if !ephemeral.is_empty() {
        ephemeral.forbid("ephemeral containers not allowed in pod template", causes);
    }
    check_spec(&template.field("spec"), false, causes);
}

/// Checks the spec of a Pod.
pub(super) fn check(spec: &CheckedPart<'_>, causes: &mut Causes) {
    check_spec(spec, true, causes);
}

fn check_spec(spec: &CheckedPart<'_>, is_pod: bool, causes: &mut Causes) {
    let volumes = check_volumes(
        &spec.field("volumes"),
        is_pod.then(|| spec.field("serviceAccountName").text()),
        causes,
    );
    check_containers(spec, &volumes, causes);
    check_host_network(spec, is_pod, causes);
    spec.field("restartPolicy")
        .one_of(&["Always", "OnFailure", "Never"], causes);
    spec.field("dnsPolicy").one_of(
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        causes,
    );
    spec.field("nodeSelector").labels(causes);
    check_user(&spec.field("securityContext"), causes);
    check_names(spec, causes);
    check_shared(spec, causes);
    check_placement(spec, causes);
    for key in ["serviceAccountName", "nodeName", "runtimeClassName"] {
        let name = spec.field(key);
        if !name.is_empty() {
            name.dns_subdomain(causes);
        }
    }
    spec.field("activeDeadlineSeconds")
        .within(1..=i64::from(i32::MAX), causes);
    for key in ["hostname", "subdomain"] {
        let name = spec.field(key);
        if !name.is_empty() {
            name.dns_label(causes);
        }
    }
    for toleration in spec.field("tolerations").items() {
        check_toleration(&toleration, causes);
    }
    spec.follow(RULES, causes);
    check_security(spec, causes);
    check_pod_resources(spec, causes);
    spec.field("preemptionPolicy")
        .supported(&["PreemptLowerPriority", "Never"], causes);
}

/// Rules of single fields.
const RULES: &[(&str, Rule)] = &[
    ("hostnameOverride", Rule::Subdomain),
    ("hostAliases[].hostnames[]", Rule::Subdomain),
    (
        "securityContext.supplementalGroups[]",
        Rule::Within(0, i32::MAX as i64),
    ),
    (
        "securityContext.supplementalGroupsPolicy",
        Rule::OneOf(&["Merge", "Strict"]),
    ),
];

/// Checks what a Pod asks of the kernel, and that this is a kernel of its system.
fn check_security(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let security = spec.field("securityContext");
    let mut names = BTreeSet::new();
    for sysctl in security.field("sysctls").items() {
        let name = sysctl.field("name");
        if name.is_empty() {
            name.require("", causes);
        } else if name.text().len() > 253 || !SYSCTL.is_match(name.text()) {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            name.invalid(detail, causes);
        } else if !names.insert(name.text()) {
            causes.duplicate(&*name.path, name.value);
        }
    }
    let of_linux = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
    ];
    let windows = ["windowsOptions"];
    let (others, detail): (&[&str], _) = match spec.field("os.name").text() {
        "windows" => (&of_linux, "cannot be set for a windows pod"),
        "linux" => (&windows, "windows options cannot be set for a linux pod"),
        _ => return,
    };
    for part in others
        .iter()
        .map(|key| security.field(key))
        .filter(CheckedPart::is_set)
    {
        part.forbid(detail, causes);
    }
}

/// A claim as a server shows it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PodClaim<'v> {
    name: &'v Value,
    resource_claim_name: &'v Value,
    resource_claim_template_name: &'v Value,
}

/// Checks the resources of a Pod as a whole, and the claims of its containers.
fn check_pod_resources(spec: &CheckedPart<'_>, causes: &mut Causes) {
    for list in ["limits", "requests"] {
        let amounts = spec.field("resources").field(list);
        for (name, _) in amounts.entries() {
            let amount = amounts.key(name);
            if !matches!(name.as_str(), "cpu" | "memory") && !name.starts_with("hugepages-") {
                causes.unsupported(&*amount.path, name, &["cpu", "hugepages-", "memory"]);
            }
            if amount.quantity().is_some_and(|amount| amount < 0) {
                amount.invalid("must be greater than or equal to 0", causes);
            }
        }
    }
    let mut names = BTreeSet::new();
    for claim in spec.field("resourceClaims").items() {
        let name = claim.field("name");
        if name.is_empty() {
            name.require("", causes);
        } else if names.insert(name.text()) {
            name.dns_label(causes);
        } else {
            causes.duplicate(&*name.path, name.value);
        }
        let [by_name, by_template] =
            ["resourceClaimName", "resourceClaimTemplateName"].map(|key| claim.field(key));
        let detail = match (by_name.is_set(), by_template.is_set()) {
            (true, true) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            (false, false) => {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            }
            _ => continue,
        };
        let shown = PodClaim {
            name: name.value,
            resource_claim_name: by_name.value,
            resource_claim_template_name: by_template.value,
        };
        causes.invalid(&*claim.path, shown, detail);
    }
    for path in [
        "containers[].resources.claims[]",
        "initContainers[].resources.claims[]",
    ] {
        for claim in spec.all(path) {
            let name = claim.field("name").text();
            if !names.contains(name) {
                let known = if names.is_empty() {
                    " which is empty"
                } else {
                    ""
                };
                let detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
                causes.not_found_because(&*claim.path, name, &detail);
            }
        }
    }
}

/// Checks how a Pod finds names.
fn check_names(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let config = spec.field("dnsConfig");
    let servers = config.field("nameservers");
    if spec.field("dnsPolicy").text() == "None" {
        if !config.is_set() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            causes.required(&*config.path, detail);
        } else if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.required(&*servers.path, detail);
        }
    }
    if servers.items().count() > 3 {
        servers.invalid("must not have more than 3 nameservers", causes);
    }
    for server in servers.items() {
        server.ip_address(causes);
    }
    for search in config.field("searches").items() {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        if search.text() != "." && !SEARCH.is_match(name) {
            causes.invalid(&*search.path, name, NO_SEARCH);
        }
    }
    for option in config.field("options").items() {
        if option.field("name").is_empty() {
            causes.required(&*option.path, "must not be empty");
        }
    }
    for alias in spec.field("hostAliases").items() {
        alias.field("ip").ip_address(causes);
    }
}

/// Checks what a Pod shares with its node, and what it waits for.
fn check_shared(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let is = |field: &str| spec.field(field).value == &Value::Bool(true);
    let inner = |field: &str| format!("{}.securityContext.{field}", spec.path);
    if is("hostPID") && is("shareProcessNamespace") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.invalid(inner("shareProcessNamespace"), Value::Bool(true), detail);
    }
    if spec.field("hostUsers").value == &Value::Bool(false) {
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            if is(field) {
                spec.field(field)
                    .forbid("when `hostUsers` is false", causes);
            }
        }
    }
    let change = spec.field("securityContext.fsGroupChangePolicy");
    change.supported(&["Always", "OnRootMismatch"], causes);
    let os = spec.field("os");
    let name = os.field("name");
    if os.is_set() && !matches!(name.text(), "linux" | "windows") {
        causes.unsupported(&*os.path, name.text(), &["linux", "windows"]);
    }
    for gate in spec.field("readinessGates").items() {
        let kind = gate.field("conditionType");
        rules::check_key(&kind.path, kind.text(), causes);
    }
    for gate in spec.field("schedulingGates").items() {
        rules::check_key(&gate.path, gate.field("name").text(), causes);
    }
}

fn check_containers(spec: &CheckedPart<'_>, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    let containers = spec.field("containers");
    containers.require("", causes);
    let mut names = BTreeSet::new();
    for container in containers.items() {
        check_container(&container, spec, volumes, causes);
        check_unique(&container.field("name"), &mut names, causes);
        check_probes(&container, spec, causes);
    }
    check_host_ports(&containers, causes);
    for container in spec.field("initContainers").items() {
        check_container(&container, spec, volumes, causes);
        check_unique(&container.field("name"), &mut names, causes);
        if container.field("restartPolicy").text() == "Always" {
            check_probes(&container, spec, causes);
            continue;
        }
        for key in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            let part = container.field(key);
            if part.is_set() {
                part.forbid(NOT_FOR_INIT, causes);
            }
        }
    }
    check_ephemeral(spec, volumes, causes);
}

/// Checks the containers that are attached to a running Pod.
fn check_ephemeral(spec: &CheckedPart<'_>, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    /// The fields that a container lacks that is attached to a running Pod.
    const OF_OTHERS: &str = "ports resources resizePolicy restartPolicy restartPolicyRules livenessProbe readinessProbe \
    startupProbe lifecycle";
    const NOT_ALLOWED: &str = "cannot be set for an Ephemeral Container";
    let own = ["containers", "initContainers"].map(|list| spec.field(list));
    let own = own.iter().flat_map(CheckedPart::items);
    let own: BTreeSet<_> = own.map(|it| it.field("name").text()).collect();
    let mut names = own.clone();
    for container in spec.field("ephemeralContainers").items() {
        check_container(&container, spec, volumes, causes);
        check_unique(&container.field("name"), &mut names, causes);
        let target = container.field("targetContainerName");
        if !target.is_empty() && !own.contains(target.text()) {
            causes.not_found(&*target.path, target.text());
        }
        for key in OF_OTHERS.split(' ') {
            let part = container.field(key);
            if !part.is_empty() {
                part.forbid(NOT_ALLOWED, causes);
            }
        }
        for mount in container.field("volumeMounts").items() {
            for key in ["subPath", "subPathExpr"] {
                let part = mount.field(key);
                if !part.is_empty() {
                    part.forbid(NOT_ALLOWED, causes);
                }
            }
        }
    }
}

/// Checks that containers on the network of the node use its ports.
fn check_host_network(spec: &CheckedPart<'_>, is_pod: bool, causes: &mut Causes) {
    if spec.field("hostNetwork").value != &Value::Bool(true) {
        return;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let host = port.field("hostPort");
            // The ports of Pods have a default.
            let is_checked = is_pod || host.number() != 0;
            if is_checked && host.number() != port.field("containerPort").number() {
                host.invalid(
                    "must match `containerPort` when `hostNetwork` is true",
                    causes,
                );
            }
        }
    }
}
