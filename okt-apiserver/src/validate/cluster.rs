//! Kinds that administrators and controllers write: nodes, volumes, endpoints, limits, classes, events.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::part::CheckedPart;
use super::small::check_modes;
use super::{pod, quota};
use crate::causes::Causes;
use crate::rules;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NO_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// The sources of volumes, in the order in which a server looks for them.
pub(super) const SOURCES: &str = "hostPath gcePersistentDisk awsElasticBlockStore glusterfs nfs rbd quobyte cephfs iscsi cinder fc \
    flocker azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local \
    storageos csi";

pub(super) fn node(node: &CheckedPart<'_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    // The paths of a server begin with the metadata.
    let taints = CheckedPart {
        value: &node.value["spec"]["taints"],
        path: "metadata.taints".to_owned(),
    };
    for taint in taints.items() {
        let (key, effect) = (taint.field("key"), taint.field("effect"));
        rules::check_key(&key.path, key.text(), causes);
        rules::check_label(
            &taint.field("value").path,
            taint.field("value").text(),
            causes,
        );
        effect.one_of(EFFECTS, causes);
        if !seen.insert((key.text(), effect.text())) {
            causes.duplicate(&*taint.path, taint.value);
        }
    }
    for cidr in node.field("spec.podCIDRs").items() {
        check_cidr(&cidr, causes);
    }
}

/// Checks a range of addresses.
pub(super) fn check_cidr(cidr: &CheckedPart<'_>, causes: &mut Causes) {
    match cidr.text().parse::<IpNet>() {
        Err(_) => cidr.invalid(NO_CIDR, causes),
        Ok(range) if range != range.trunc() => {
            cidr.invalid("must not have bits set beyond the prefix length", causes);
        }
        Ok(_) => {}
    }
}

pub(super) fn volume(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let (modes, capacity) = (spec.field("accessModes"), spec.field("capacity"));
    modes.require("", causes);
    check_modes(&modes, causes);
    capacity.require("", causes);
    if !capacity.key("storage").is_set() || capacity.entries().count() > 1 {
        causes.unsupported(&*capacity.path, capacity.value, &["storage"]);
    }
    for (name, _) in capacity.entries() {
        let size = capacity.key(name);
        if size.quantity().is_some_and(|size| size <= 0) {
            size.invalid("must be greater than zero", causes);
        }
    }
    spec.field("persistentVolumeReclaimPolicy")
        .supported(&["Delete", "Recycle", "Retain"], causes);
    let mut found = SOURCES
        .split(' ')
        .map(|source| spec.field(source))
        .filter(CheckedPart::is_set);
    match found.next() {
        None => causes.required(&*spec.path, "must specify a volume type"),
        Some(source) => match source.path.rsplit('.').next() {
            Some("hostPath" | "local") => source.field("path").require("", causes),
            Some("nfs") => {
                source.field("server").require("", causes);
                source.field("path").require("", causes);
            }
            Some("csi") => {
                source.field("driver").require("", causes);
                source.field("volumeHandle").require("", causes);
            }
            _ => {}
        },
    }
    for other in found {
        other.forbid("may not specify more than 1 volume type", causes);
    }
    spec.field("volumeMode")
        .supported(&["Block", "Filesystem"], causes);
}

pub(super) fn endpoints(object: &CheckedPart<'_>, causes: &mut Causes) {
    for subset in object.field("subsets").items() {
        let lists = [subset.field("addresses"), subset.field("notReadyAddresses")];
        if lists.iter().all(CheckedPart::is_empty) {
            causes.required(
                &*subset.path,
                "must specify `addresses` or `notReadyAddresses`",
            );
        }
        for address in lists.iter().flat_map(CheckedPart::items) {
            let ip = address.field("ip");
            ip.ip_address(causes);
            if !ip.is_ip_address() {
                // A server checks it twice.
                ip.invalid("must be a valid IP address", causes);
            }
            ip.endpoint_ip(causes);
        }
        let ports = subset.field("ports");
        let needs_names = ports.items().count() > 1;
        for port in ports.items() {
            let name = port.field("name");
            if !name.is_empty() {
                name.dns_label(causes);
            } else if needs_names {
                causes.required(&*name.path, "");
            }
            port.field("port").port(causes);
            port.field("protocol").protocol(causes);
        }
    }
}

pub(super) fn endpoint_slice(slice: &CheckedPart<'_>, causes: &mut Causes) {
    let family = slice.field("addressType");
    family.one_of(&["FQDN", "IPv4", "IPv6"], causes);
    let has_ips = family.text().starts_with("IP");
    let mut names = BTreeSet::new();
    for port in slice.field("ports").items() {
        // A server does not check the number.
        let name = port.field("name");
        if !name.is_empty() {
            name.dns_label(causes);
        }
        if !names.insert(name.text()) {
            causes.duplicate(&*name.path, name.text());
        }
        port.field("protocol")
            .supported(&["SCTP", "TCP", "UDP"], causes);
        port.field("appProtocol").optional_key(causes);
    }
    for endpoint in slice.field("endpoints").items() {
        let addresses = endpoint.field("addresses");
        addresses.require("must contain at least 1 address", causes);
        for address in addresses.items().filter(|_| has_ips) {
            address.ip_address(causes);
            let ip = address.text().parse::<IpAddr>();
            if ip.is_ok_and(|ip| ip.is_ipv4() != (family.text() == "IPv4")) {
                let detail = format!("must be an {} address", family.text());
                causes.invalid(&*addresses.path, address.text(), &detail);
            }
            address.endpoint_ip(causes);
        }
    }
}

/// Checks the names of resources that are limited.
fn check_limit_names(limit: &CheckedPart<'_>, causes: &mut Causes) {
    let kind = limit.field("type").text();
    for list in [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ] {
        let amounts = limit.field(list);
        if kind == "Pod" && list.starts_with("default") {
            if !amounts.is_empty() {
                amounts.forbid("may not be specified when `type` is 'Pod'", causes);
            }
            continue;
        }
        for (name, _) in amounts.entries() {
            let path = amounts.key(name).path;
            if matches!(kind, "Pod" | "Container") {
                pod::check_resource_name(&path, name, causes);
            } else {
                quota::check_name(&path, name, causes);
            }
        }
    }
    let has_storage = |list: &str| limit.field(list).key("storage").is_set();
    if kind == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        causes.required(format!("{}.limits", limit.path), detail);
    }
}

pub(super) fn limit_range(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for limit in spec.field("limits").items() {
        let kind = limit.field("type");
        rules::check_key(&kind.path, kind.text(), causes);
        let is_standard = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if !is_standard && !kind.text().contains('/') && !kind.is_empty() {
            kind.invalid("must be a standard limit type or fully qualified", causes);
        }
        if !seen.insert(kind.text()) {
            causes.duplicate(&*kind.path, kind.text());
        }
        check_limit_names(&limit, causes);
        let keys: BTreeSet<_> = ["max", "min", "default", "defaultRequest"]
            .iter()
            .flat_map(|list| {
                limit
                    .field(list)
                    .entries()
                    .map(|(key, _)| key)
                    .collect::<Vec<_>>()
            })
            .collect();
        for key in keys {
            check_limit(&limit, key, causes);
        }
    }
}

/// Checks that the values of one resource are in order.
fn check_limit(limit: &CheckedPart<'_>, key: &str, causes: &mut Causes) {
    let part = |list: &str| limit.field(list).key(key);
    let (most, least) = (part("max"), part("min"));
    let (default, request) = (part("default"), part("defaultRequest"));
    let exceeds = |one: &CheckedPart<'_>, other: &CheckedPart<'_>| matches!((one.quantity(), other.quantity()), (Some(one), Some(other)) if one > other);
    for (one, other, what) in [
        (&least, &most, "min value"),
        (&least, &request, "min value"),
        (&least, &default, "min value"),
        (&request, &most, "default request value"),
        (&request, &default, "default request value"),
        (&default, &most, "default value"),
    ] {
        if exceeds(one, other) {
            let name = if std::ptr::eq(other, &raw const most) {
                "max value"
            } else if std::ptr::eq(other, &raw const request) {
                "default request value"
            } else if what == "default request value" {
                "default limit value"
            } else {
                "default value"
            };
            let detail = format!(
                "{what} {} is greater than {name} {}",
                one.text(),
                other.text()
            );
            one.invalid(&detail, causes);
        }
    }
}

pub(super) fn lease(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let duration = spec.field("leaseDurationSeconds");
    if duration.is_set() && duration.number() <= 0 {
        duration.invalid("must be greater than 0", causes);
    }
    spec.field("leaseTransitions").not_negative(causes);
}

pub(super) fn ingress_class(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let controller = spec.field("controller");
    if controller.is_empty() {
        controller.require("", causes);
    } else {
        controller.domain_path(causes);
    }
    let parameters = spec.field("parameters");
    if !parameters.is_set() {
        return;
    }
    let group = parameters.field("apiGroup");
    if group.is_set() {
        group.dns_subdomain(causes);
    }
    for key in ["kind", "name"] {
        let part = parameters.field(key);
        if part.is_empty() {
            part.require("", causes);
        } else {
            rules::check_path_segment(&part.path, part.text(), causes);
        }
    }
    parameters
        .field("scope")
        .supported(&["Cluster", "Namespace"], causes);
    let namespace = parameters.field("namespace");
    match (parameters.field("scope").text(), namespace.is_set()) {
        ("Namespace", false) => {
            namespace.require("`parameters.scope` is set to 'Namespace'", causes);
        }
        ("Cluster", true) => namespace.forbid("`parameters.scope` is set to 'Cluster'", causes),
        _ => {}
    }
}

pub(super) fn controller_revision(revision: &CheckedPart<'_>, causes: &mut Causes) {
    let data = revision.field("data");
    match data.value {
        Value::Null => causes.required(&*data.path, "data is mandatory"),
        Value::Object(_) => {}
        _ => causes.required(&*data.path, "data must be a valid JSON object"),
    }
    revision.field("revision").not_negative(causes);
}

pub(super) fn runtime_class(class: &CheckedPart<'_>, causes: &mut Causes) {
    let handler = class.field("handler");
    if handler.is_empty() {
        handler.require("", causes);
    } else {
        handler.dns_label(causes);
    }
    let overhead = CheckedPart {
        path: "overhead.limits".to_owned(),
        ..class.field("overhead.podFixed")
    };
    for (name, _) in overhead.entries() {
        let amount = overhead.key(name);
        pod::check_resource_name(&amount.path, name, causes);
        if amount.quantity().is_some_and(|amount| amount < 0) {
            amount.invalid("must be greater than or equal to 0", causes);
        }
    }
}

pub(super) fn role_aggregation(role: &CheckedPart<'_>, causes: &mut Causes) {
    let rule = role.field("aggregationRule");
    if !rule.is_set() {
        return;
    }
    let selectors = rule.field("clusterRoleSelectors");
    selectors.require(
        "at least one clusterRoleSelector required if aggregationRule is non-nil",
        causes,
    );
    for selector in selectors.items() {
        selector.label_selector(causes);
    }
}

/// Checks an event of `events.k8s.io`, or of the core group if it has the fields of a new one.
pub(super) fn event(event: &CheckedPart<'_>, is_new_group: bool, causes: &mut Causes) {
    let (object, component) = if is_new_group {
        ("regarding", "reportingController")
    } else {
        ("involvedObject", "reportingComponent")
    };
    let namespace = event.field("metadata.namespace");
    let involved = event.value[object]["namespace"]
        .as_str()
        .unwrap_or_default();
    let time = event.field("eventTime");
    let fits = match (time.is_set(), involved) {
        (false, "") => namespace.text() == "default",
        (false, involved) => involved == namespace.text(),
        (true, "") => matches!(namespace.text(), "default" | "kube-system"),
        (true, _) => true,
    };
    if !fits {
        causes.invalid(
            "involvedObject.namespace",
            involved,
            "does not match event.namespace",
        );
    }
    if time.is_set() {
        let reporter = event.field(component);
        reporter.require("", causes);
        rules::check_key(&reporter.path, reporter.text(), causes);
        for (key, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
            let part = event.field(key);
            part.require("", causes);
            if part.text().len() > most {
                causes.invalid(
                    &*part.path,
                    "",
                    &format!("can have at most {most} characters"),
                );
            }
        }
    }
    if is_new_group {
        if !time.is_set() {
            causes.required(&*time.path, "");
        }
        let kind = event.field("type");
        if !matches!(kind.text(), "Normal" | "Warning") {
            causes.invalid(
                &*kind.path,
                "",
                &format!("has invalid value: {}", kind.text()),
            );
        }
    }
}
