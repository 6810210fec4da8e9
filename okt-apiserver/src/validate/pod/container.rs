//! The containers of a Pod.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::super::part::{CheckedPart, Rule, port_name};
use super::super::quota;
use crate::causes::Causes;
use crate::rules;

/// The divisors of sizes.
const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
const NO_HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

pub(super) fn check_unique<'v>(
    name: &CheckedPart<'v>,
    names: &mut BTreeSet<&'v str>,
    causes: &mut Causes,
) {
    if !names.insert(name.text()) {
        causes.duplicate(&*name.path, name.text());
    }
}

/// Rules of single fields.
const RULES: &[(&str, Rule)] = &[
    (
        "restartPolicy",
        Rule::OneOf(&["Always", "Never", "OnFailure"]),
    ),
    (
        "securityContext.procMount",
        Rule::OneOf(&["Default", "Unmasked"]),
    ),
    ("env[].valueFrom.configMapKeyRef.name", Rule::Subdomain),
    ("env[].valueFrom.secretKeyRef.name", Rule::Subdomain),
];

pub(super) fn check_container(
    container: &CheckedPart<'_>,
    pod: &CheckedPart<'_>,
    volumes: &BTreeSet<&str>,
    causes: &mut Causes,
) {
    let name = container.field("name");
    if name.is_empty() {
        name.require("", causes);
    } else {
        name.dns_label(causes);
    }
    container.field("image").require("", causes);
    container
        .field("terminationMessagePolicy")
        .one_of(&["File", "FallbackToLogsOnError"], causes);
    check_ports(&container.field("ports"), causes);
    for variable in container.field("env").items() {
        check_variable(&variable, causes);
    }
    for volume in container.all("env[].valueFrom.fileKeyRef.volumeName") {
        if !volume.is_empty() && !volumes.contains(volume.text()) {
            causes.not_found(&*volume.path, volume.value);
        }
    }
    for source in container.field("envFrom").items() {
        check_variable_name(&source.field("prefix"), causes);
        let (map, secret) = (source.field("configMapRef"), source.field("secretRef"));
        match (map.is_set(), secret.is_set()) {
            (false, false) => causes.invalid(
                &*source.path,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            ),
            (true, true) => causes.invalid(
                &*source.path,
                "",
                "may not have more than one field specified at a time",
            ),
            (true, false) | (false, true) => {
                let name = if map.is_set() { &map } else { &secret }.field("name");
                name.require("", causes);
                if !name.is_empty() {
                    name.dns_subdomain(causes);
                }
            }
        }
    }
    check_mounts(container, volumes, causes);
    check_devices(container, pod, causes);
    container
        .field("imagePullPolicy")
        .one_of(&["Always", "IfNotPresent", "Never"], causes);
    container.follow(RULES, causes);
    check_restarts(container, causes);
    check_resizes(container, causes);
    check_resources(&container.field("resources"), causes);
    let security = container.field("securityContext");
    check_user(&security, causes);
    let mount = security.field("procMount");
    if mount.text() == "Unmasked" && pod.field("hostUsers").value != &Value::Bool(false) {
        mount.invalid("`hostUsers` must be false to use `Unmasked`", causes);
    }
    if security.field("allowPrivilegeEscalation").value == &Value::Bool(false)
        && security.field("privileged").value == &Value::Bool(true)
    {
        security.invalid(
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            causes,
        );
    }
}

/// A profile as a server shows it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SeccompProfile<'v> {
    #[serde(rename = "Type")]
    kind: &'v Value,
    localhost_profile: &'v Value,
}

/// Checks the rules by which a container begins again.
fn check_restarts(container: &CheckedPart<'_>, causes: &mut Causes) {
    let (policy, rules) = (
        container.field("restartPolicy"),
        container.field("restartPolicyRules"),
    );
    if !policy.is_set() && !rules.is_empty() {
        policy.require(
            "must specify restartPolicy when restart rules are used",
            causes,
        );
    }
    rules.at_most(20, causes);
    for rule in rules.items() {
        let codes = rule.field("exitCodes");
        rule.field("action")
            .supported(&["Restart", "RestartAllContainers"], causes);
        codes.require("must be specified", causes);
        codes.field("operator").supported(&["In", "NotIn"], causes);
        codes.field("values").at_most(255, causes);
    }
}

/// Checks what happens to a container when it is resized.
fn check_resizes(container: &CheckedPart<'_>, causes: &mut Causes) {
    let mut resized = BTreeSet::new();
    for policy in container.field("resizePolicy").items() {
        let resource = policy.field("resourceName").text();
        if !matches!(resource, "cpu" | "memory") {
            let path = format!("{}.resizePolicy", container.path);
            causes.unsupported(path, resource, &["cpu", "memory"]);
        }
        if !resized.insert(resource) {
            causes.duplicate(&*policy.path, resource);
        }
        let restart = policy.field("restartPolicy").text();
        if !matches!(restart, "NotRequired" | "RestartContainer") {
            let path = format!("{}.resizePolicy", container.path);
            causes.unsupported(path, restart, &["NotRequired", "RestartContainer"]);
        }
    }
}

/// Checks the volumes that a container uses as devices.
fn check_devices(container: &CheckedPart<'_>, pod: &CheckedPart<'_>, causes: &mut Causes) {
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        name.require("", causes);
        if !names.insert(name.text()) {
            name.invalid("must be unique", causes);
        }
        let volumes = pod.field("volumes");
        match volumes
            .items()
            .find(|it| it.field("name").text() == name.text())
        {
            None => causes.not_found(&*name.path, name.text()),
            Some(volume) => {
                let mut claims = ["persistentVolumeClaim", "ephemeral"].into_iter();
                if !claims.any(|key| volume.field(key).is_set()) {
                    let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    name.invalid(detail, causes);
                }
            }
        }
        path.require("", causes);
        if !paths.insert(path.text()) {
            path.invalid("must be unique", causes);
        }
        if path.text().split('/').any(|step| step == "..") {
            path.invalid("can not contain backsteps ('..')", causes);
        }
    }
}

pub(super) fn check_user(security: &CheckedPart<'_>, causes: &mut Causes) {
    const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
    for (key, name) in [
        ("seccompProfile", "seccomp"),
        ("appArmorProfile", "AppArmor"),
    ] {
        let (kind, profile) = (
            security.field(key).field("type"),
            security.field(key).field("localhostProfile"),
        );
        kind.supported(PROFILES, causes);
        if kind.text() == "Localhost" {
            profile.require(
                &format!("must be set when {name} type is Localhost"),
                causes,
            );
            if name == "seccomp" {
                profile.local_path(&profile.path, causes);
            }
        } else if profile.is_set() && name == "seccomp" {
            let shown = SeccompProfile {
                kind: kind.value,
                localhost_profile: profile.value,
            };
            let detail = "can only be set when seccomp type is Localhost";
            causes.invalid(&*profile.path, shown, detail);
        } else if profile.is_set() {
            let detail = "can only be set when AppArmor type is Localhost";
            profile.invalid(detail, causes);
        }
    }
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        security.field(key).within(0..=i64::from(i32::MAX), causes);
    }
}

fn check_ports(ports: &CheckedPart<'_>, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        let wrong = if name.is_empty() {
            Vec::new()
        } else {
            port_name(name.text())
        };
        for detail in &wrong {
            name.invalid(detail, causes);
        }
        if wrong.is_empty() && !name.is_empty() {
            check_unique(&name, &mut names, causes);
        }
        let number = port.field("containerPort");
        if number.number() == 0 {
            causes.required(&*number.path, "");
        } else {
            number.port(causes);
        }
        port.field("hostPort").port(causes);
        port.field("protocol").protocol(causes);
    }
}

pub(super) fn check_host_ports(containers: &CheckedPart<'_>, causes: &mut Causes) {
    let mut taken = BTreeSet::new();
    for container in containers.items() {
        for port in container.field("ports").items() {
            let host = port.field("hostPort");
            if host.number() == 0 {
                continue;
            }
            let (protocol, address) = (port.field("protocol"), port.field("hostIP"));
            let place = format!("{}/{}/{}", protocol.text(), address.text(), host.number());
            if !taken.insert(place.clone()) {
                causes.duplicate(&*host.path, place);
            }
        }
    }
}

fn check_variable(variable: &CheckedPart<'_>, causes: &mut Causes) {
    const SOURCES: [&str; 5] = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    let name = variable.field("name");
    name.require("", causes);
    check_variable_name(&name, causes);
    let from = variable.field("valueFrom");
    if !from.is_set() {
        return;
    }
    let sources: Vec<_> = SOURCES
        .iter()
        .map(|source| from.field(source))
        .filter(CheckedPart::is_set)
        .collect();
    for source in &sources {
        match source.path.rsplit('.').next() {
            Some("fieldRef") => check_field_path(&source.field("fieldPath"), causes),
            Some("resourceFieldRef") => check_resource_field(source, causes),
            Some("fileKeyRef") => {
                for key in ["key", "volumeName", "path"] {
                    source.field(key).require("", causes);
                }
                source.field("volumeName").dns_label_if_set(causes);
            }
            Some("configMapKeyRef" | "secretKeyRef") => {
                source.field("name").require("", causes);
                let key = source.field("key");
                key.require("", causes);
                if !key.is_empty() {
                    rules::check_config_key(&key.path, key.text(), causes);
                }
            }
            _ => {}
        }
    }
    let detail = if sources.is_empty() {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !variable.field("value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if sources.len() > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    causes.invalid(&*from.path, "", detail);
}

fn check_variable_name(name: &CheckedPart<'_>, causes: &mut Causes) {
    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
    if name.text().contains('=') || !name.text().bytes().all(is_printable) {
        name.invalid("a valid environment variable name must consist only of printable ASCII characters other than '='", causes);
    }
}

/// Checks the path of a field of the Pod that an environment variable has the value of.
fn check_field_path(path: &CheckedPart<'_>, causes: &mut Causes) {
    const FIELDS: &[&str] = &[
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    path.require("", causes);
    let of_map = ["metadata.labels['", "metadata.annotations['"];
    let text = path.text();
    if text.is_empty()
        || FIELDS.contains(&text)
        || of_map
            .iter()
            .any(|map| text.starts_with(map) && text.ends_with("']"))
    {
        return;
    }
    // A server knows these in other places.
    if matches!(
        text,
        "metadata.labels"
            | "metadata.annotations"
            | "spec.host"
            | "spec.restartPolicy"
            | "spec.schedulerName"
            | "status.phase"
    ) {
        causes.unsupported(&*path.path, text, FIELDS);
        return;
    }
    let why = format!("error converting fieldPath: field label not supported: {text}");
    path.invalid(&why, causes);
}

pub(super) fn check_resource_field(reference: &CheckedPart<'_>, causes: &mut Causes) {
    const RESOURCES: &[&str] = &[
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = reference.field("resource");
    let pages = ["limits.hugepages-", "requests.hugepages-"];
    if resource.is_empty() {
        resource.require("", causes);
    } else if !pages.iter().any(|it| resource.text().starts_with(it)) {
        resource.supported(RESOURCES, causes);
    }
    let divisor = reference.field("divisor");
    let (sizes, what) = match resource.text() {
        "limits.cpu" | "requests.cpu" => ("1m and 1", "cpu"),
        "limits.memory" | "requests.memory" => (SIZES, "memory"),
        name if name.ends_with("ephemeral-storage") => (SIZES, "local ephemeral storage"),
        _ => (SIZES, "hugepages"),
    };
    let mut known = sizes.split([',', ' ']).filter(|word| *word != "and");
    if !matches!(divisor.text(), "" | "0") && !known.any(|size| size == divisor.text()) {
        let detail =
            format!("only divisor's values {sizes} are supported with the {what} resource");
        causes.invalid(&*divisor.path, resource.text(), &detail);
    }
}

fn check_mounts(container: &CheckedPart<'_>, volumes: &BTreeSet<&str>, causes: &mut Causes) {
    let mounts = container.field("volumeMounts");
    let is_privileged = container.field("securityContext.privileged").value == &Value::Bool(true);
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        name.require("", causes);
        if !volumes.contains(name.text()) {
            causes.not_found(&*name.path, name.text());
        }
        path.require("", causes);
        if !paths.insert(path.text()) {
            path.invalid("must be unique", causes);
        }
        let (inner, pattern) = (mount.field("subPath"), mount.field("subPathExpr"));
        inner.local_path(&format!("{}.subPath", mounts.path), causes);
        if !inner.is_empty() && !pattern.is_empty() {
            pattern.invalid("subPathExpr and subPath are mutually exclusive", causes);
        }
        pattern.local_path(&format!("{}.subPathExpr", mounts.path), causes);
        // A server names no index here.
        let [propagation, recursive] =
            ["mountPropagation", "recursiveReadOnly"].map(|key| CheckedPart {
                path: format!("{}.{key}", mounts.path),
                ..mount.field(key)
            });
        propagation.supported(&["Bidirectional", "HostToContainer", "None"], causes);
        if propagation.text() == "Bidirectional" && !is_privileged {
            let detail =
                "Bidirectional mount propagation is available only to privileged containers";
            propagation.forbid(detail, causes);
        }
        recursive.supported(&["Disabled", "Enabled", "IfPossible"], causes);
        let needs_read_only = matches!(recursive.text(), "Enabled" | "IfPossible");
        if needs_read_only && mount.field("readOnly").value != &Value::Bool(true) {
            recursive.forbid("may only be specified when readOnly is true", causes);
        }
    }
}

fn check_resources(resources: &CheckedPart<'_>, causes: &mut Causes) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for list in [&limits, &requests] {
        for (name, _) in list.entries() {
            let amount = list.key(name);
            check_resource_name(&amount.path, name, causes);
            if amount.quantity().is_some_and(|amount| amount < 0) {
                amount.invalid("must be greater than or equal to 0", causes);
            }
            if is_extended(name) && !amount.is_whole() {
                amount.invalid("must be an integer", causes);
            }
            if list.path != requests.path {
                continue;
            }
            let limit = limits.key(name);
            if let (Some(wanted), Some(most)) = (amount.quantity(), limit.quantity())
                && wanted > most
            {
                let detail = format!(
                    "must be less than or equal to {name} limit of {}",
                    limit.text()
                );
                causes.invalid(&*requests.path, amount.text(), &detail);
            }
            if !limit.is_set() && (is_extended(name) || name.starts_with("hugepages-")) {
                let detail = "Limit must be set for non overcommitable resources";
                causes.required(&*limits.path, detail);
            }
        }
    }
    let has = |wanted: &dyn Fn(&str) -> bool| {
        let mut names = limits.entries().chain(requests.entries());
        names.any(|(name, _)| wanted(name))
    };
    if has(&|name| name.starts_with("hugepages-")) && !has(&|name| matches!(name, "cpu" | "memory"))
    {
        resources.forbid("HugePages require cpu or memory", causes);
    }
}

/// Whether a resource is one that a device offers.
fn is_extended(name: &str) -> bool {
    name.contains('/')
        && !name
            .split('/')
            .next()
            .unwrap_or_default()
            .ends_with("kubernetes.io")
}

pub(in crate::validate) fn check_resource_name(path: &str, name: &str, causes: &mut Causes) {
    quota::check_name(path, name, causes);
    let is_standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') && !is_standard {
        causes.invalid(path, name, "must be a standard resource for containers");
    }
    if name.contains('/') && name.starts_with("requests.") {
        causes.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

pub(super) fn check_probes(
    container: &CheckedPart<'_>,
    pod: &CheckedPart<'_>,
    causes: &mut Causes,
) {
    let lifecycle = container.field("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.field(hook);
        if hook.is_set() {
            check_handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], causes);
            let (sleep, grace) = (
                hook.field("sleep"),
                pod.field("terminationGracePeriodSeconds"),
            );
            let seconds = sleep.field("seconds").number();
            if sleep.is_set() && !(0..=grace.number()).contains(&seconds) {
                let detail = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds ({})",
                    grace.number()
                );
                causes.invalid(&*sleep.path, seconds, &detail);
            }
        }
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.field(kind);
        if !probe.is_set() {
            continue;
        }
        check_handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], causes);
        for key in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            probe.field(key).not_negative(causes);
        }
        let grace = probe.field("terminationGracePeriodSeconds");
        if grace.is_set() && grace.number() <= 0 {
            grace.invalid("must be greater than 0", causes);
        }
        if kind == "readinessProbe" {
            if grace.is_set() {
                grace.invalid("must not be set for readinessProbes", causes);
            }
        } else if probe.field("successThreshold").number() != 1 {
            probe.field("successThreshold").invalid("must be 1", causes);
        }
    }
}

fn check_handler(handler: &CheckedPart<'_>, kinds: &[&str], causes: &mut Causes) {
    let mut found = kinds
        .iter()
        .map(|kind| handler.field(kind))
        .filter(CheckedPart::is_set);
    let Some(first) = found.next() else {
        causes.required(&*handler.path, "must specify a handler type");
        return;
    };
    match first.path.rsplit('.').next() {
        Some("exec") => first.field("command").require("", causes),
        Some("httpGet") => {
            first.field("path").require("", causes);
            first.field("port").port_or_name(causes);
            first.field("scheme").supported(&["HTTP", "HTTPS"], causes);
            for name in first.all("httpHeaders[].name") {
                let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                if name.is_empty() || !name.text().bytes().all(is_letter) {
                    let path = format!("{}.httpHeaders", first.path);
                    causes.invalid(path, name.text(), NO_HEADER);
                }
            }
        }
        Some("tcpSocket") => first.field("port").port_or_name(causes),
        Some("grpc") => first.field("port").port(causes),
        _ => {}
    }
    for other in found {
        other.forbid("may not specify more than 1 handler type", causes);
    }
}
