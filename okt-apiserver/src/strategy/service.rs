//! Addresses and ports of Services.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::kind::{KindId, ServedKind};
use crate::object::{self, at, items, put, text};
use crate::refusal::Refusal;
use crate::store::Store;

/// The first address of Services, and their number: the default of kubeadm.
const SERVICES: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 96, 0, 0), 1 << 20);
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

/// Returns the Service by which Pods reach the API server.
pub(crate) fn service_of_api(uid: &str, now: &str) -> Value {
    let address = Ipv4Addr::from_bits(SERVICES.0.to_bits() + 1).to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "uid": uid,
            "creationTimestamp": now,
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": { "loadBalancer": {} },
    })
}

/// Keeps the addresses and the ports of a Service, and drops what only its old type needs, unless the client has changed it.
pub(super) fn keep(old: &Value, new: &mut Value) {
    drop_dependent(old, new);
    if is_outside(old) || is_outside(new) {
        return;
    }
    let mut kept = vec!["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
    if is_checked(old) && is_checked(new) {
        kept.push("healthCheckNodePort");
    }
    for key in kept {
        let path = ["spec", key];
        let is_given = at(new, &path).is_some_and(|value| value.as_str() != Some(""));
        if let (false, Some(value)) = (is_given, at(old, &path)) {
            put(new, &path, value.clone());
        }
    }
    if !(may_have_node_ports(old) && may_have_node_ports(new)) {
        return;
    }
    let ports = new["spec"].get_mut("ports").and_then(Value::as_array_mut);
    let ports = ports.into_iter().flatten();
    for port in ports.filter(|port| node_port(port) == 0) {
        let mut before = items(old, &["spec", "ports"]).iter();
        let same =
            before.find(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
        if let Some(kept) = same.map(node_port).filter(|kept| *kept > 0) {
            port["nodePort"] = kept.into();
        }
    }
}

/// Drops the fields that the old type needs and the new one does not, each unless the client has changed it.
fn drop_dependent(old: &Value, new: &mut Value) {
    let balances = |service: &Value| text(service, &["spec", "type"]) == "LoadBalancer";
    let is_open = |service: &Value| {
        may_have_node_ports(service) || !items(service, &["spec", "externalIPs"]).is_empty()
    };
    let lost = |needs: &dyn Fn(&Value) -> bool| needs(old) && !needs(new);
    let addresses = [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "internalTrafficPolicy",
    ];
    let balancing = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];
    let dropped: [(bool, &[&str]); 4] = [
        (lost(&|service| !is_outside(service)), &addresses),
        (lost(&is_checked), &["healthCheckNodePort"]),
        (lost(&balances), &balancing),
        (lost(&is_open), &["externalTrafficPolicy"]),
    ];
    for key in dropped.iter().filter(|it| it.0).flat_map(|it| it.1) {
        if new["spec"].get(key) == old["spec"].get(key) {
            object::set(object::fields(&mut new["spec"]), key, None);
        }
    }
    let numbers = |service: &Value| -> BTreeSet<u64> {
        let ports = items(service, &["spec", "ports"]).iter();
        ports.map(node_port).filter(|port| *port > 0).collect()
    };
    if may_have_node_ports(old)
        && !may_have_node_ports(new)
        && numbers(old).is_superset(&numbers(new))
    {
        let ports = new["spec"].get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            object::set(object::fields(port), "nodePort", None);
        }
    }
    if !balances(new) {
        put(new, &["status", "loadBalancer"], json!({}));
    }
}

/// Whether the nodes answer the checks of a load balancer at a port of their own.
fn is_checked(service: &Value) -> bool {
    text(service, &["spec", "type"]) == "LoadBalancer"
        && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

/// Whether the type of a Service has ports of nodes.
fn may_have_node_ports(service: &Value) -> bool {
    matches!(
        text(service, &["spec", "type"]),
        "NodePort" | "LoadBalancer"
    )
}

fn is_outside(service: &Value) -> bool {
    text(service, &["spec", "type"]) == "ExternalName"
}

fn node_port(port: &Value) -> u64 {
    port["nodePort"].as_u64().unwrap_or(0)
}

/// Allocates the address and the ports of a Service that has none yet.
pub(crate) fn allocate(
    store: &Store,
    kind: &ServedKind,
    service: &mut Value,
) -> Result<(), Refusal> {
    if !kind.is("", "services") || is_outside(service) {
        return Ok(());
    }
    let has = |key: &str| at(service, &["spec", key]).is_some_and(|value| *value != "");
    let allocated = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
    if !allocated.into_iter().all(has) {
        allocate_address(store, kind, service)?;
    }
    if may_have_node_ports(service) {
        allocate_ports(store, kind, service)?;
    }
    if is_checked(service) && service["spec"]["healthCheckNodePort"].is_null() {
        let taken = taken_ports(store, service);
        let free = NODE_PORTS.rev().find(|port| !taken.contains(port));
        let free = free.unwrap_or(0);
        put(service, &["spec", "healthCheckNodePort"], free.into());
    }
    Ok(())
}

/// Returns the ports of nodes that other Services have.
fn taken_ports(store: &Store, but: &Value) -> BTreeSet<u64> {
    let mut taken = BTreeSet::new();
    for other in services(store, object::uid(but)) {
        let ports = items(&other, &["spec", "ports"]).iter();
        taken.extend(ports.map(node_port).filter(|port| *port > 0));
        taken.extend(other["spec"]["healthCheckNodePort"].as_u64());
    }
    taken
}

/// Returns all Services but the one with a uid.
fn services(store: &Store, but: &str) -> Vec<Value> {
    let id = KindId::new("", "services");
    let others = store
        .list(&id, None)
        .filter(|(_, stored)| stored.uid() != but);
    others.map(|(_, stored)| stored.read()).collect()
}

fn allocate_address(store: &Store, kind: &ServedKind, service: &mut Value) -> Result<(), Refusal> {
    let given = match text(service, &["spec", "clusterIP"]) {
        "" => items(service, &["spec", "clusterIPs"])
            .first()
            .and_then(Value::as_str)
            .unwrap_or(""),
        given => given,
    };
    let (first, number) = SERVICES;
    let all = first.to_bits()..first.to_bits() + number;
    let others = services(store, object::uid(service));
    let is_free = |address: &String| {
        let mut taken = others.iter().map(|it| text(it, &["spec", "clusterIP"]));
        taken.all(|taken| taken != address)
    };
    let is_ours = |ip: Ipv4Addr| all.contains(&ip.to_bits());
    let given = given.to_owned();
    let refused = match given.as_str() {
        "" | "None" => None,
        given if !given.parse().is_ok_and(is_ours) => Some(format!(
            "the provided IP ({given}) is not in the valid range. The range of valid IPs is {first}/12"
        )),
        _ if !is_free(&given) => Some("provided IP is already allocated".to_owned()),
        _ => None,
    };
    if let Some(why) = refused {
        let detail = format!("failed to allocate IP {given}: {why}");
        let (subject, given) = (kind.subject(object::name(service)), json!([given]));
        let field = "spec.clusterIPs";
        return Err(Refusal::invalid_field(subject, field, given, &detail));
    }
    let address = if given.is_empty() {
        // The version of the store counts up, so no two Services get the same address.
        let at = u32::try_from(store.version() % u64::from(number - 256)).unwrap_or(0);
        let steps = (0..number).map(|step| all.start + 10 + (at + step) % (number - 256));
        let mut addresses = steps.map(|bits| Ipv4Addr::from_bits(bits).to_string());
        addresses.find(is_free).unwrap_or_default()
    } else {
        given
    };
    let is_open = address == "None" && at(service, &["spec", "selector"]).is_none();
    let spec = object::fields(&mut service["spec"]);
    spec.insert("clusterIP".to_owned(), address.as_str().into());
    spec.insert("clusterIPs".to_owned(), json!([address]));
    let (families, policy) = if is_open {
        (json!(["IPv4", "IPv6"]), "RequireDualStack")
    } else {
        (json!(["IPv4"]), "SingleStack")
    };
    spec.entry("ipFamilies").or_insert(families);
    spec.entry("ipFamilyPolicy")
        .or_insert_with(|| policy.into());
    Ok(())
}

fn allocate_ports(store: &Store, kind: &ServedKind, service: &mut Value) -> Result<(), Refusal> {
    let mut taken = taken_ports(store, service);
    let name = object::name(service).to_owned();
    let gets_some = service["spec"]["allocateLoadBalancerNodePorts"] != false;
    let given: Vec<_> = items(service, &["spec", "ports"])
        .iter()
        .map(|port| (port["port"].clone(), node_port(port)))
        .collect();
    // The same port of several protocols has one port of the nodes.
    let mut shared: Vec<(Value, u64)> = Vec::new();
    let ports = service["spec"].get_mut("ports");
    let ports = ports.and_then(Value::as_array_mut);
    for (index, port) in ports.into_iter().flatten().enumerate() {
        if node_port(port) == 0 && !gets_some {
            continue;
        }
        let of = |all: &[(Value, u64)]| {
            let mut same = all.iter().filter(|(number, _)| *number == port["port"]);
            same.find_map(|(_, node)| Some(*node).filter(|node| *node > 0))
        };
        let allocated = of(&shared);
        let wanted = match (node_port(port), allocated) {
            (0, Some(allocated)) => allocated,
            (0, None) => of(&given).unwrap_or(0),
            (own, _) => own,
        };
        let why = match wanted {
            wanted if wanted == 0 || allocated == Some(wanted) => "",
            wanted if !NODE_PORTS.contains(&wanted) => {
                "provided port is not in the valid range. The range of valid ports is 30000-32767"
            }
            wanted if taken.contains(&wanted) => "provided port is already allocated",
            _ => "",
        };
        if !why.is_empty() {
            let field = format!("spec.ports[{index}].nodePort");
            let subject = kind.subject(&name);
            return Err(Refusal::invalid_field(subject, field, wanted, why));
        }
        let mut free = NODE_PORTS.filter(|port| !taken.contains(port));
        let node = match wanted {
            0 => free.next().unwrap_or(0),
            wanted => wanted,
        };
        port["nodePort"] = node.into();
        taken.insert(node);
        if allocated.is_none() {
            shared.push((port["port"].clone(), node));
        }
    }
    Ok(())
}
