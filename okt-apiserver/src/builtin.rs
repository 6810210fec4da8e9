//! Lists the kinds that exist without a CRD.
//!
//! Their types, with decoding and defaults, are in `types`.

use std::sync::{Arc, LazyLock};

use serde_json::json;

use crate::kind::{Origin, Scale, ServedKind};
use crate::refusal::Refusal;
use crate::schema::{ListType, Schema, SharedSchema};
use crate::table;
use crate::types::{self, GoType};

/// The group of the configurations of admission.
pub(crate) const ADMISSION: &str = "admissionregistration.k8s.io";

/// The name of a subresource; the group, the version and the kind of its answer; and its verbs.
pub(crate) type SubresourceLine<'k> = (&'k str, (&'k str, &'k str, &'k str), &'k [&'k str]);

/// The subresources that only one kind has, with the plural of the kind.
pub(crate) const SUBRESOURCES: &[(&str, SubresourceLine<'static>)] = &[
    (
        "certificatesigningrequests",
        (
            "approval",
            ("certificates.k8s.io", "v1", "CertificateSigningRequest"),
            WRITTEN,
        ),
    ),
    (
        "namespaces",
        ("finalize", ("", "v1", "Namespace"), &["update"]),
    ),
    ("pods", ("binding", ("", "v1", "Binding"), &["create"])),
    ("pods", ("ephemeralcontainers", ("", "v1", "Pod"), WRITTEN)),
    (
        "pods",
        ("eviction", ("policy", "v1", "Eviction"), &["create"]),
    ),
    ("pods", ("resize", ("", "v1", "Pod"), WRITTEN)),
    (
        "serviceaccounts",
        (
            "token",
            ("authentication.k8s.io", "v1", "TokenRequest"),
            &["create"],
        ),
    ),
];
const WRITTEN: &[&str] = &["get", "patch", "update"];

/// Returns the refusal of a resource or a path that a group does not have: the groups of Kubernetes answer with a
/// `Status`, and what no group serves is a page that is not found.
pub(crate) fn unknown(group: &str) -> Refusal {
    if kinds().any(|kind| kind.group == group) {
        Refusal::unknown_resource()
    } else {
        Refusal::unknown_path()
    }
}

/// Returns the kinds that a cluster serves without a CRD, each with its plural; a name may come twice.
///
/// ```
/// assert!(okt_apiserver::builtin_kinds().any(|it| it == ("CronJob", "cronjobs")));
/// ```
pub fn builtin_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    table_of_kinds().map(|[_, kind, plural, ..]| (kind, plural))
}

/// Returns `apiVersion`, kind, plural, short names and other words of each kind that has a path of its own.
fn table_of_kinds() -> impl Iterator<Item = [&'static str; 5]> {
    let lines = include_str!("types/kinds.txt").lines();
    lines.filter_map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let kind = <[&str; 5]>::try_from(words).ok()?;
        (!line.starts_with('#') && kind[2] != "-").then_some(kind)
    })
}

/// Returns all kinds; every server shares them.
pub(crate) fn kinds() -> impl Iterator<Item = Arc<ServedKind>> {
    static KINDS: LazyLock<Vec<Arc<ServedKind>>> =
        LazyLock::new(|| table_of_kinds().filter_map(kind).map(Arc::new).collect());
    KINDS.iter().cloned()
}

/// What a real server serves and this one does not: group, version, and resource as discovery names it.
pub(crate) const MISSING: [(&str, &str, &str); 9] = [
    ("", "v1", "componentstatuses"),
    ("", "v1", "nodes/proxy"),
    ("", "v1", "pods/attach"),
    ("", "v1", "pods/exec"),
    ("", "v1", "pods/log"),
    ("", "v1", "pods/portforward"),
    ("", "v1", "pods/proxy"),
    ("", "v1", "services/proxy"),
    ("autoscaling", "v1", "horizontalpodautoscalers"),
];

/// Returns a kind of the table; nothing if Kubernetes has no type of that name.
fn kind([api_version, kind, plural, short_names, traits]: [&'static str; 5]) -> Option<ServedKind> {
    let list = |words: &'static str| words.split(',').filter(|word| *word != "-");
    let has = |wanted: &str| list(traits).any(|word| word == wanted);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let go_type = GoType::of_kind(group, version, kind)?;
    let categories = list(traits).filter(|word| matches!(*word, "all" | "api-extensions"));
    Some(ServedKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: list(short_names).map(str::to_owned).collect(),
        categories: categories.map(str::to_owned).collect(),
        namespaced: !has("cluster"),
        origin: Origin::BuiltIn,
        go_type: Some(go_type),
        is_action: has("create"),
        schema: SharedSchema::of(move || match kind {
            "CustomResourceDefinition" => Schema::of_object(definition()),
            _ => Schema::of_object(types::schema_of(go_type)),
        }),
        openapi: json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        has_status: has("status"),
        scale: has("scale").then(|| Scale {
            spec_replicas: path(&["spec", "replicas"]),
            status_replicas: path(&["status", "replicas"]),
            selector: Some(match kind {
                "ReplicationController" => path(&["spec", "selector"]),
                _ => path(&["spec", "selector", "matchLabels"]),
            }),
        }),
        has_generation: has("generation"),
        selectable: selectable(kind, group),
        columns: table::builtin_columns(kind),
        updates_unconditionally: !has("versioned"),
        returns_deleted: has("returned"),
        creates_on_update: has("upsert"),
        was_changed: false,
        is_served: true,
        is_stored: true,
        deprecation: (kind == "Endpoints").then(|| {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
        }),
        siblings: Vec::new(),
        conversion: None,
    })
}

/// Returns the schema of a CRD. Its type contains itself, so only the lists that have owners are described.
fn definition() -> Schema {
    let open = |name: &str, below: Schema| Schema {
        properties: [(name.to_owned(), below)].into(),
        keeps_unknown: true,
        ..Schema::default()
    };
    let conditions = Schema {
        list: ListType::Map(path(&["type"])),
        merge_key: Some("type"),
        items: Some(Box::new(open("type", Schema::default()))),
        ..Schema::default()
    };
    open("status", open("conditions", conditions))
}

fn path(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

fn selectable(kind: &str, group: &str) -> Vec<String> {
    if kind == "Event" {
        return selectable_of_event(group);
    }
    let paths: &[&str] = match kind {
        "Pod" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        "Namespace" => &["status.phase"],
        "Secret" => &["type"],
        "Service" => &["spec.clusterIP", "spec.type"],
        "ReplicaSet" => &["status.replicas"],
        "Job" => &["status.successful"],
        _ => &[],
    };
    paths.iter().map(|&path| path.to_owned()).collect()
}

fn selectable_of_event(group: &str) -> Vec<String> {
    let (object, component) = match group {
        "" => ("involvedObject", "reportingComponent"),
        _ => ("regarding", "reportingController"),
    };
    let mut paths = [
        "apiVersion",
        "fieldPath",
        "kind",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ]
    .map(|field| format!("{object}.{field}"))
    .to_vec();
    paths.extend(["reason", component, "type"].map(str::to_owned));
    paths
}

/// Returns the metadata fields that a write through the status does not change; it writes all others.
pub(crate) fn kept_by_status(kind: &str) -> &'static [&'static str] {
    match kind {
        "Deployment" => &["labels"],
        "Pod" => &["ownerReferences"],
        _ => &[],
    }
}
