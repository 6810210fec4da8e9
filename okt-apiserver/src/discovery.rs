//! Answers discovery requests: versions, groups, resources, health.

mod openapi;
mod protobuf;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::ApiAnswer;
use crate::builtin::{self, SubresourceLine};
use crate::kind::{Origin, ServedKind};
use crate::priority::priority;
use crate::refusal::Refusal;
use crate::store::Store;

/// The Kubernetes version that this API reports: the one that `okt-apiserver/kubernetes` builds.
const VERSION: (&str, &str, &str) = ("1", "36", "1");

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a GET request for a path that is no resource.
pub(crate) fn answer(
    store: &Store,
    segments: &[&str],
    accept: &str,
    host: &str,
) -> Result<ApiAnswer, Refusal> {
    let aggregated = is_aggregated(accept);
    Ok(match segments {
        ["healthz" | "livez" | "readyz", ..] => ApiAnswer::text("ok"),
        ["version"] => ApiAnswer::ok(version()),
        ["api"] if aggregated => aggregate(store, true),
        ["apis"] if aggregated => aggregate(store, false),
        ["api"] => ApiAnswer::ok(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{
                "clientCIDR": "0.0.0.0/0",
                "serverAddress": host,
            }],
        })),
        ["apis"] => ApiAnswer::ok(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups(store).iter().filter(|(group, _)| !group.is_empty())
                .map(|(group, kinds)| api_group(group, kinds)).collect::<Vec<_>>(),
        })),
        ["api", "v1"] => ApiAnswer::ok(resources(store, "", "v1")?),
        ["apis", group] => {
            let groups = groups(store);
            let kinds = groups.get(*group).ok_or_else(Refusal::unknown_path)?;
            let mut body = api_group(group, kinds);
            body["kind"] = "APIGroup".into();
            body["apiVersion"] = "v1".into();
            ApiAnswer::ok(body)
        }
        ["apis", group, version] => ApiAnswer::ok(resources(store, group, version)?),
        ["openapi", "v2"] => openapi::v2(store, accept)?,
        ["openapi", "v3"] => ApiAnswer::ok(openapi::index(store)),
        ["openapi", "v3", "api", "v1"] => openapi::v3(store, "", "v1", accept)?,
        ["openapi", "v3", "apis", group, version] => openapi::v3(store, group, version, accept)?,
        [] => ApiAnswer::ok(
            json!({ "paths": ["/api", "/apis", "/healthz", "/openapi/v2", "/openapi/v3", "/version"] }),
        ),
        ["metrics" | "logs" | "debug", ..] => {
            let path = segments.join("/");
            return Err(Refusal::not_served(format!("the path /{path}")));
        }
        ["api", ..] => return Err(builtin::unknown("")),
        ["apis", group, ..] => return Err(builtin::unknown(group)),
        _ => return Err(Refusal::unknown_path()),
    })
}

/// Whether the client asks for aggregated discovery, in any of its media types; the beta version is not supported.
fn is_aggregated(accept: &str) -> bool {
    let wanted = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
    accept.split(',').any(|media| {
        let mut parts = media.split(';').map(str::trim);
        let is_json = matches!(
            parts.next(),
            Some("application/json" | "application/*" | "*/*")
        );
        let parameters: Vec<&str> = parts.collect();
        is_json && wanted.iter().all(|wanted| parameters.contains(wanted))
    })
}

fn version() -> Value {
    let (major, minor, patch) = VERSION;
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("v{major}.{minor}.{patch}"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": "okt-apiserver",
    })
}

/// Returns the kinds of each group, in order.
fn groups(store: &Store) -> BTreeMap<String, Vec<&ServedKind>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for kind in store.kinds() {
        groups.entry(kind.group.clone()).or_default().push(&**kind);
    }
    groups
}

/// Returns the distinct versions of a group, the preferred one first.
fn versions(kinds: &[&ServedKind]) -> Vec<String> {
    let mut versions: Vec<_> = kinds.iter().map(|kind| kind.version.clone()).collect();
    versions.sort_by_key(|version| priority(version));
    versions.dedup();
    versions
}

fn api_group(group: &str, kinds: &[&ServedKind]) -> Value {
    let versions: Vec<_> = versions(kinds)
        .iter()
        .map(|version| json!({ "groupVersion": format!("{group}/{version}"), "version": version }))
        .collect();
    json!({ "name": group, "versions": versions, "preferredVersion": versions.first() })
}

/// The verbs of built-in kinds, in the order of a real server.
const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
/// A server deletes one namespace at a time.
const NAMESPACE_VERBS: [&str; 7] = [
    "create", "delete", "get", "list", "patch", "update", "watch",
];
/// The verbs of custom resources, which a real server lists in another order.
const CRD_VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

fn resources(store: &Store, group: &str, version: &str) -> Result<Value, Refusal> {
    let mut resources = Vec::new();
    for kind in store.kinds() {
        if kind.group != group || kind.version != version {
            continue;
        }
        resources.push(json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": verbs(kind),
            "shortNames": kind.short_names,
            "categories": kind.categories,
        }));
        for (name, response, verbs) in subresources(kind) {
            let (group, version, response) = response;
            resources.push(json!({
                "name": format!("{}/{name}", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced,
                "group": group,
                "version": version,
                "kind": response,
                "verbs": verbs,
            }));
        }
    }
    if resources.is_empty() {
        return Err(builtin::unknown(group));
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn verbs(kind: &ServedKind) -> &'static [&'static str] {
    match kind.origin {
        Origin::BuiltIn if kind.is_action => &["create"],
        Origin::BuiltIn if kind.is("", "namespaces") => &NAMESPACE_VERBS,
        Origin::BuiltIn => &VERBS,
        Origin::Crd => &CRD_VERBS,
    }
}

/// Returns the subresources of a kind, with the group, version and kind of their responses.
fn subresources(kind: &ServedKind) -> Vec<SubresourceLine<'_>> {
    let mut subresources: Vec<SubresourceLine<'_>> = Vec::new();
    if kind.has_status {
        let own = (
            kind.group.as_str(),
            kind.version.as_str(),
            kind.kind.as_str(),
        );
        subresources.push(("status", own, &SUBRESOURCE_VERBS));
    }
    if kind.scale.is_some() {
        subresources.push(("scale", ("autoscaling", "v1", "Scale"), &SUBRESOURCE_VERBS));
    }
    let more = builtin::SUBRESOURCES.iter();
    let more = more.filter(|(plural, _)| kind.is_built_in() && *plural == kind.plural);
    subresources.extend(more.map(|(_, line)| *line));
    subresources
}

fn aggregate(store: &Store, core: bool) -> ApiAnswer {
    let items: Vec<_> = groups(store)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, kinds)| {
            let versions: Vec<_> = versions(kinds)
                .iter()
                .map(|version| {
                    let resources: Vec<_> = kinds
                        .iter()
                        .filter(|kind| kind.version == *version)
                        .map(|kind| aggregate_kind(kind))
                        .collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let metadata = if group.is_empty() {
                json!({ "creationTimestamp": null })
            } else {
                json!({ "name": group, "creationTimestamp": null })
            };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    let body = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    ApiAnswer::of_type(AGGREGATED, body.to_string().into())
}

fn aggregate_kind(kind: &ServedKind) -> Value {
    let response = |(group, version, kind): (&str, &str, &str)| json!({ "group": group, "version": version, "kind": kind });
    let subresources: Vec<_> = subresources(kind)
        .into_iter()
        .map(|(name, answer, verbs)| {
            json!({
                "subresource": name,
                "responseKind": response(answer),
                "verbs": verbs,
            })
        })
        .collect();
    json!({
        "resource": kind.plural,
        "responseKind": response((&kind.group, &kind.version, &kind.kind)),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
        "shortNames": kind.short_names,
        "categories": kind.categories,
        "subresources": subresources,
    })
}
