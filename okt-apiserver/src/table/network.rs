//! Defines the columns of the kinds that lead to Pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Column;
use super::cell::{NONE, count, each, first_of, number, or};
use crate::object::{at, items, text, texts};

/// The number of hosts or addresses that a cell shows.
const SHOWN: usize = 3;

pub(super) fn ingress() -> Vec<Column> {
    vec![
        Column::text_or("Class", &["spec", "ingressClassName"], NONE),
        Column::cell_of("Hosts", |object, _| {
            let rules = each(object, &["spec", "rules"], |rule| {
                text(rule, &["host"]).to_owned()
            });
            let hosts: Vec<_> = rules
                .iter()
                .take(SHOWN)
                .map(String::as_str)
                .filter(|host| !host.is_empty())
                .collect();
            match rules.len().checked_sub(SHOWN) {
                _ if hosts.is_empty() => "*".into(),
                Some(more @ 1..) => format!("{} + {more} more...", hosts.join(",")).into(),
                _ => hosts.join(",").into(),
            }
        }),
        Column::cell_of("Address", |object, _| {
            let path = ["status", "loadBalancer", "ingress"];
            let addresses: BTreeSet<_> = each(object, &path, |ingress| {
                match text(ingress, &["ip"]) {
                    "" => text(ingress, &["hostname"]),
                    ip => ip,
                }
                .to_owned()
            })
            .into_iter()
            .filter(|address| !address.is_empty())
            .collect();
            Vec::from_iter(addresses).join(",").into()
        }),
        Column::cell_of("Ports", |object, _| {
            if count(object, &["spec", "tls"]) > 0 {
                "80, 443".into()
            } else {
                "80".into()
            }
        }),
        Column::age(),
    ]
}

pub(super) fn endpoints() -> Vec<Column> {
    vec![
        Column::cell_of("Endpoints", |object, _| addresses(object)),
        Column::age(),
    ]
}

fn addresses(endpoints: &Value) -> Value {
    let subsets = items(endpoints, &["subsets"]);
    if subsets.is_empty() {
        return NONE.into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = each(subset, &["addresses"], |address| {
            text(address, &["ip"]).to_owned()
        });
        let ports = each(subset, &["ports"], |port| number(port, &["port"]));
        if ports.is_empty() {
            all.extend(ips);
            continue;
        }
        for port in ports {
            all.extend(ips.iter().map(|ip| {
                if ip.contains(':') {
                    format!("[{ip}]:{port}")
                } else {
                    format!("{ip}:{port}")
                }
            }));
        }
    }
    first_of(all).into()
}

pub(super) fn endpoint_slice() -> Vec<Column> {
    vec![
        Column::text_or("AddressType", &["addressType"], ""),
        Column::cell_of("Ports", |slice, _| {
            let ports = each(slice, &["ports"], |port| match at(port, &["port"]) {
                Some(number) => number.to_string(),
                None if port.get("name").is_some() => text(port, &["name"]).to_owned(),
                None => "*".to_owned(),
            });
            or(&first_of(ports), NONE)
        }),
        Column::cell_of("Endpoints", |slice, _| {
            let all = items(slice, &["endpoints"]).iter();
            let all = all.flat_map(|endpoint| texts(endpoint, &["addresses"]));
            or(&first_of(all.map(str::to_owned).collect()), NONE)
        }),
        Column::age(),
    ]
}

pub(super) fn policy() -> Vec<Column> {
    vec![
        Column::selector("Pod-Selector", &["spec", "podSelector"]),
        Column::age(),
    ]
}
