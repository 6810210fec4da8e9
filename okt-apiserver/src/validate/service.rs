//! Services, Ingresses and network policies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::json;

use super::cluster::check_cidr;
use super::part::{CheckedPart, Rule, port_name};
use crate::causes::Causes;
use crate::rules;

pub(super) fn check(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let (ports, kind) = (spec.field("ports"), spec.field("type"));
    let is_headless =
        spec.field("clusterIP").text() == "None" || spec.value["clusterIPs"][0] == "None";
    if !is_headless && kind.text() != "ExternalName" {
        ports.require("", causes);
    }
    match kind.text() {
        "LoadBalancer" | "NodePort" if is_headless => {
            let detail = format!("may not be set to 'None' for {} services", kind.text());
            causes.invalid(format!("{}.clusterIPs[0]", spec.path), "None", &detail);
        }
        "ExternalName" => {
            for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let part = spec.field(key);
                if !part.is_empty() {
                    part.forbid("may not be set for ExternalName services", causes);
                }
            }
            if spec.field("clusterIPs").is_empty() && !spec.field("clusterIP").is_empty() {
                let detail = "may not be set for ExternalName services";
                spec.field("clusterIPs").forbid(detail, causes);
            }
            let name = spec.field("externalName");
            match name.text().strip_suffix('.').unwrap_or(name.text()) {
                "" => causes.required(&*name.path, ""),
                host => rules::check_dns_subdomain(&name.path, host, causes),
            }
        }
        _ => {}
    }
    check_ports(&ports, causes);
    check_addresses(spec, false, causes);
    spec.field("selector").labels(causes);
    spec.field("sessionAffinity")
        .one_of(&["ClientIP", "None"], causes);
    let timeout = spec.field("sessionAffinityConfig.clientIP.timeoutSeconds");
    if timeout.is_set() && !(1..=86_400).contains(&timeout.number()) {
        timeout.invalid("must be greater than 0 and less than 86400", causes);
    }
    kind.one_of(
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        causes,
    );
    let mut taken = BTreeSet::new();
    for port in ports.items() {
        let node = port.field("nodePort");
        if kind.text() == "ClusterIP" && node.number() != 0 {
            node.forbid("may not be used when `type` is 'ClusterIP'", causes);
        }
    }
    for port in ports.items() {
        let node = port.field("nodePort");
        if node.number() != 0 && !taken.insert((port.field("protocol").text(), node.number())) {
            causes.duplicate(&*node.path, node.number());
        }
    }
    let mut taken = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.field("protocol"), port.field("port"));
        if !taken.insert((protocol.text(), number.number())) {
            let shown =
                json!({ "port": number.number(), "protocol": protocol.text(), "targetPort": 0 });
            causes.duplicate(&*port.path, shown);
        }
    }
    check_outside(spec, causes);
}

/// Checks what only Services with an address outside of the cluster have.
fn check_outside(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let kind = spec.field("type");
    let ranges = CheckedPart {
        path: format!("{}.LoadBalancerSourceRanges", spec.path),
        ..spec.field("loadBalancerSourceRanges")
    };
    if !ranges.is_empty() && kind.text() != "LoadBalancer" {
        ranges.forbid("may only be used when `type` is 'LoadBalancer'", causes);
    }
    for range in ranges.items() {
        check_cidr(&range, causes);
    }
    for address in spec.field("externalIPs").items() {
        address.ip_address(causes);
        address.endpoint_ip(causes);
    }
    if kind.text() != "LoadBalancer" {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            let part = spec.field(key);
            if part.is_set() {
                part.forbid("may only be used when `type` is 'LoadBalancer'", causes);
            }
        }
    }
    if kind.text() == "LoadBalancer" {
        spec.follow(&[("loadBalancerClass", Rule::Key)], causes);
    }
    spec.field("internalTrafficPolicy")
        .supported(&["Cluster", "Local"], causes);
    spec.field("trafficDistribution")
        .supported(&["PreferClose", "PreferSameZone", "PreferSameNode"], causes);
    let policy = spec.field("externalTrafficPolicy");
    let check = spec.field("healthCheckNodePort");
    if check.number() != 0 && !(kind.text() == "LoadBalancer" && policy.text() == "Local") {
        let detail =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        check.invalid(detail, causes);
    }
    if policy.is_set() {
        if !matches!(kind.text(), "LoadBalancer" | "NodePort")
            && spec.field("externalIPs").is_empty()
        {
            policy.invalid("may only be set for externally-accessible services", causes);
        } else {
            policy.supported(&["Cluster", "Local"], causes);
        }
    }
}

/// Checks the addresses inside the cluster, which has those of one family. An update sets one of both fields.
pub(super) fn check_addresses(spec: &CheckedPart<'_>, is_new: bool, causes: &mut Causes) {
    let policy = spec.field("ipFamilyPolicy");
    policy.supported(
        &["PreferDualStack", "RequireDualStack", "SingleStack"],
        causes,
    );
    let families = spec.field("ipFamilies");
    let mut seen = BTreeSet::new();
    for family in families.items() {
        family.supported(&["IPv4", "IPv6"], causes);
        if !seen.insert(family.text()) {
            causes.duplicate(&*family.path, family.value);
        }
    }
    let (first, all) = (spec.field("clusterIP"), spec.field("clusterIPs"));
    let given = all.items().next();
    if let Some(given) = &given
        && is_new
        && !first.is_empty()
        && first.text() != given.text()
    {
        all.invalid("first value must match `clusterIP`", causes);
    }
    let address = given.map_or(first.text(), |it| it.text());
    if !matches!(address, "" | "None") && address.parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.invalid(format!("{}[0]", all.path), address, detail);
    }
    let is_open = address == "None" && !spec.field("selector").is_set();
    if is_open || !causes.is_empty() {
        return;
    }
    if policy.text() == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        policy.invalid(detail, causes);
    }
    if let Some(family) = families.items().find(|it| it.text() == "IPv6") {
        family.invalid("not configured on this cluster", causes);
    }
}

fn check_ports(ports: &CheckedPart<'_>, causes: &mut Causes) {
    let needs_names = ports.items().count() > 1;
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.is_empty() {
            name.dns_label(causes);
            if !names.insert(name.text()) {
                causes.duplicate(&*name.path, name.text());
            }
        } else if needs_names {
            causes.required(&*name.path, "");
        }
        port.field("port").port(causes);
        port.field("protocol").protocol(causes);
        port.field("targetPort").port_or_name(causes);
        port.field("appProtocol").optional_key(causes);
    }
}

pub(super) fn ingress(ingress: &CheckedPart<'_>, is_new: bool, causes: &mut Causes) {
    let spec = &ingress.field("spec");
    let (rules, backend) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        causes.invalid(
            &*spec.path,
            rules.value,
            "either `defaultBackend` or `rules` must be specified",
        );
    }
    if backend.is_set() {
        check_backend(&backend, causes);
    }
    for rule in rules.items() {
        let host = rule.field("host");
        if host.text().parse::<std::net::IpAddr>().is_ok() {
            host.invalid("must be a DNS name, not an IP address", causes);
        }
        check_host(&host, causes);
        let http = rule.field("http");
        if !http.is_set() {
            continue;
        }
        let paths = http.field("paths");
        paths.require("", causes);
        for path in paths.items() {
            check_path(&path, causes);
        }
    }
    for tls in spec.field("tls").items() {
        for host in tls.field("hosts").items() {
            check_host(&host, causes);
        }
        let secret = tls.field("secretName");
        if !secret.is_empty() {
            secret.dns_subdomain(causes);
        }
    }
    let class = spec.field("ingressClassName");
    if class.is_set() {
        class.dns_subdomain(causes);
    }
    let named = ingress
        .field("metadata.annotations")
        .key("kubernetes.io/ingress.class");
    if is_new && class.is_set() && named.is_set() && named.text() != class.text() {
        let detail = "must match `ingressClassName` when both are specified";
        causes.invalid(
            "annotations.kubernetes.io/ingress.class",
            named.text(),
            detail,
        );
    }
}

fn check_host(host: &CheckedPart<'_>, causes: &mut Causes) {
    let text = host.text();
    if text.contains('*') {
        let is_wildcard = text
            .strip_prefix("*.")
            .is_some_and(|rest| !rest.contains('*') && rules::is_subdomain(rest));
        if !is_wildcard {
            host.invalid("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')", causes);
        }
    } else if !text.is_empty() {
        host.dns_subdomain(causes);
    }
}

fn check_path(path: &CheckedPart<'_>, causes: &mut Causes) {
    let (kind, text) = (path.field("pathType"), path.field("path"));
    if !kind.is_set() {
        causes.required(&*kind.path, "pathType must be specified");
        return;
    }
    let is_strict = matches!(kind.text(), "Exact" | "Prefix");
    if (is_strict || (kind.text() == "ImplementationSpecific" && !text.is_empty()))
        && !text.text().starts_with('/')
    {
        causes.invalid(&*text.path, text.text(), "must be an absolute path");
    }
    if is_strict {
        for part in ["//", "/./", "/../", "%2f", "%2F"] {
            if text.text().contains(part) {
                text.invalid(&format!("must not contain '{part}'"), causes);
            }
        }
        for end in ["/..", "/."] {
            if text.text().ends_with(end) {
                text.invalid(&format!("cannot end with '{end}'"), causes);
            }
        }
    }
    kind.supported(&["Exact", "ImplementationSpecific", "Prefix"], causes);
    check_backend(&path.field("backend"), causes);
}

fn check_backend(backend: &CheckedPart<'_>, causes: &mut Causes) {
    let (resource, service) = (backend.field("resource"), backend.field("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => causes.invalid(
            &*backend.path,
            "",
            "cannot set both resource and service backends",
        ),
        (true, false) => {
            resource.field("kind").require("", causes);
            resource.field("name").require("", causes);
        }
        (false, true) => {
            let name = service.field("name");
            if name.is_empty() {
                name.require("", causes);
            } else {
                rules::check_service_name(&name.path, name.text(), causes);
            }
            let (port, number) = (service.field("port.name"), service.field("port.number"));
            match (!port.is_empty(), number.number() != 0) {
                (true, true) => causes.invalid(
                    &*backend.path,
                    "",
                    "cannot set both port name & port number",
                ),
                (true, false) => {
                    for detail in port_name(port.text()) {
                        port.invalid(detail, causes);
                    }
                }
                (false, true) => number.port(causes),
                (false, false) => {
                    causes.required(&*backend.path, "port name or number is required");
                }
            }
        }
        (false, false) => causes.invalid(
            &*backend.path,
            "",
            "resource or service backend is required",
        ),
    }
}

pub(super) fn network_policy(spec: &CheckedPart<'_>, causes: &mut Causes) {
    spec.field("podSelector").label_selector(causes);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(rules).items() {
            for port in rule.field("ports").items() {
                check_policy_port(&port, causes);
            }
            for peer in rule.field(peers).items() {
                check_peer(&peer, causes);
            }
        }
    }
    let types = spec.field("policyTypes");
    if types.items().count() > 2 {
        types.invalid("may not specify more than two policyTypes", causes);
        return;
    }
    for kind in types.items() {
        kind.supported(&["Ingress", "Egress"], causes);
    }
}

fn check_policy_port(port: &CheckedPart<'_>, causes: &mut Causes) {
    port.field("protocol")
        .supported(&["TCP", "UDP", "SCTP"], causes);
    let (number, end) = (port.field("port"), port.field("endPort"));
    if number.value.is_number() {
        number.port(causes);
        if end.is_set() {
            if end.number() < number.number() {
                causes.invalid(
                    &*end.path,
                    number.number(),
                    "must be greater than or equal to `port`",
                );
            }
            end.port(causes);
        }
        return;
    }
    if end.is_set() {
        let what = if number.is_set() {
            "non-numeric"
        } else {
            "not specified"
        };
        end.invalid(
            &format!("may not be specified when `port` is {what}"),
            causes,
        );
    }
    if number.is_set() {
        number.port_or_name(causes);
    }
}

fn check_peer(peer: &CheckedPart<'_>, causes: &mut Causes) {
    let mut peers = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        let selector = peer.field(selector);
        peers += usize::from(selector.is_set());
        selector.label_selector(causes);
    }
    let block = peer.field("ipBlock");
    if block.is_set() {
        let range = block.field("cidr");
        range.require("", causes);
        if !range.is_empty() {
            check_cidr(&range, causes);
        }
        for hole in block.field("except").items() {
            check_cidr(&hole, causes);
            if let (Ok(inner), Ok(outer)) =
                (hole.text().parse::<IpNet>(), range.text().parse::<IpNet>())
                && (inner.prefix_len() <= outer.prefix_len() || !outer.contains(&inner))
            {
                hole.invalid("must be a strict subset of `cidr`", causes);
            }
        }
    }
    match (peers, block.is_set()) {
        (0, false) => causes.required(&*peer.path, "must specify a peer"),
        (1.., true) => peer.forbid("may not specify both ipBlock and another peer", causes),
        _ => {}
    }
}
