//! This file lists the kinds that are there without a CRD.
//!
//! They are stored as they are: without validation and, but for what is said here, without
//! defaults. Where a list has keys that server-side apply or a strategic merge patch goes by, it is
//! declared; all other lists are owned and replaced as a whole.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::{
    kind::{Kind, Origin, Scale},
    object,
    schema::Schema,
    table,
};

/// One line of the table below.
struct Line {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    traits: &'static [Trait],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trait {
    Cluster,
    Status,
    Generation,
    Scale,
    /// A PUT needs a resourceVersion.
    Versioned,
    /// A PUT creates.
    Upsert,
    /// Part of `kubectl get all`.
    All,
}

use Trait::{All, Cluster, Generation, Status, Upsert, Versioned};

const fn line(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    traits: &'static [Trait],
) -> Line {
    Line {
        group,
        version,
        kind,
        plural,
        short,
        traits,
    }
}

const WORKLOAD: &[Trait] = &[Status, Generation, Trait::Scale, All];
const RBAC: &str = "rbac.authorization.k8s.io";

#[rustfmt::skip]
const LINES: &[Line] = &[
    line("", "v1", "Namespace", "namespaces", "ns", &[Cluster, Status, Versioned]),
    line("", "v1", "ConfigMap", "configmaps", "cm", &[]),
    line("", "v1", "Secret", "secrets", "", &[]),
    line("", "v1", "Service", "services", "svc", &[Status, All]),
    line("", "v1", "ServiceAccount", "serviceaccounts", "sa", &[]),
    line("", "v1", "Pod", "pods", "po", &[Status, Generation, All]),
    line("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", &[Status]),
    line("", "v1", "Event", "events", "ev", &[Upsert]),
    line("events.k8s.io", "v1", "Event", "events", "ev", &[Upsert]),
    line("coordination.k8s.io", "v1", "Lease", "leases", "", &[Versioned, Upsert]),
    line("apps", "v1", "Deployment", "deployments", "deploy", WORKLOAD),
    line("apps", "v1", "StatefulSet", "statefulsets", "sts", WORKLOAD),
    line("apps", "v1", "ReplicaSet", "replicasets", "rs", WORKLOAD),
    line("apps", "v1", "DaemonSet", "daemonsets", "ds", &[Status, Generation, All]),
    line("batch", "v1", "Job", "jobs", "", &[Status, Generation, All]),
    line("batch", "v1", "CronJob", "cronjobs", "cj", &[Status, Generation, All]),
    line(RBAC, "v1", "Role", "roles", "", &[Upsert]),
    line(RBAC, "v1", "RoleBinding", "rolebindings", "", &[Upsert]),
    line(RBAC, "v1", "ClusterRole", "clusterroles", "", &[Cluster, Upsert]),
    line(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", "", &[Cluster, Upsert]),
    line("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd",
        &[Cluster, Status, Generation, Versioned]),
];

/// Groups of a real server of which nothing, or not everything, is served here.
pub(crate) fn is_known_elsewhere(group: &str) -> bool {
    group.is_empty()
        || group.ends_with(".k8s.io")
        || matches!(group, "apps" | "batch" | "autoscaling" | "policy")
}

/// All kinds that are there from the start.
pub(crate) fn kinds() -> Vec<Kind> {
    LINES.iter().map(kind).collect()
}

fn kind(line: &Line) -> Kind {
    let has = |wanted: Trait| line.traits.contains(&wanted);
    let words = |text: &str| -> Vec<String> {
        (!text.is_empty())
            .then(|| text.to_owned())
            .into_iter()
            .collect()
    };
    Kind {
        group: line.group.to_owned(),
        version: line.version.to_owned(),
        kind: line.kind.to_owned(),
        list_kind: format!("{}List", line.kind),
        plural: line.plural.to_owned(),
        singular: line.kind.to_lowercase(),
        short_names: words(line.short),
        categories: words(if has(All) { "all" } else { "" }),
        namespaced: !has(Cluster),
        origin: Origin::BuiltIn,
        schema: Arc::new(Schema::of_builtin(known_shape(line.kind))),
        openapi: json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        has_status: has(Status),
        scale: has(Trait::Scale).then(|| Scale {
            spec_replicas: path(&["spec", "replicas"]),
            status_replicas: path(&["status", "replicas"]),
            selector: Some(path(&["spec", "selector", "matchLabels"])),
        }),
        has_generation: has(Generation),
        selectable: selectable(line.kind, line.group),
        columns: table::builtin_columns(line.kind),
        updates_unconditionally: !has(Versioned),
        creates_on_update: has(Upsert),
        was_changed: false,
        is_served: true,
        is_stored: true,
        deprecation: None,
        siblings: Vec::new(),
    }
}

fn path(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

fn selectable(kind: &str, group: &str) -> Vec<String> {
    let paths: &[&str] = match (kind, group) {
        ("Pod", _) => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        ("Namespace", _) => &["status.phase"],
        ("Secret", _) => &["type"],
        ("Event", "") => &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "type",
        ],
        ("Event", _) => &[
            "regarding.apiVersion",
            "regarding.fieldPath",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.resourceVersion",
            "regarding.uid",
            "reason",
            "reportingController",
            "type",
        ],
        ("ReplicaSet", _) => &["status.replicas"],
        ("Job", _) => &["status.successful"],
        _ => &[],
    };
    paths.iter().map(|&path| path.to_owned()).collect()
}

/// Fills in what the type of a kind always has, though it may be empty.
pub(crate) fn fill(kind: &str, object: &mut Value) {
    if kind == "ServiceAccount" {
        // Of a secret nothing but its name is kept.
        let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten() {
            object::fields(secret).retain(|key, _| key == "name");
        }
    }
    let blank = blank(kind);
    for (key, value) in blank.as_object().into_iter().flatten() {
        let found = object::fields(object)
            .entry(key.clone())
            .or_insert_with(|| value.clone());
        if found.as_array().is_some_and(Vec::is_empty) {
            found.clone_from(value);
        }
    }
}

/// The parts that every object of a kind has: nobody who creates one owns them.
pub(crate) fn blank(kind: &str) -> Value {
    match kind {
        "Lease" => json!({ "spec": {} }),
        "Role" | "ClusterRole" => json!({ "rules": null }),
        _ => json!({}),
    }
}

/// The lists of a kind that are merged item by item.
fn known_shape(kind: &str) -> Value {
    let pod = || POD_SPEC.clone();
    let template = || open(json!({ "spec": pod() }));
    let conditions = || open(json!({ "conditions": keyed(&["type"], json!({})) }));
    let job = || open(json!({ "template": template() }));
    let properties = match kind {
        "Pod" => json!({ "spec": pod(), "status": conditions() }),
        "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet" => json!({
            "spec": open(json!({ "template": template(), "selector": atomic_map() })),
            "status": conditions(),
        }),
        "Job" => json!({ "spec": job(), "status": conditions() }),
        "CronJob" => {
            json!({ "spec": open(json!({ "jobTemplate": open(json!({ "spec": job() })) })) })
        }
        "Service" => json!({
            "spec": open(json!({
                "ports": keyed(&["port", "protocol"], json!({
                    "port": { "type": "integer" },
                    "protocol": { "type": "string", "default": "TCP" },
                })),
                "selector": atomic_map(),
            })),
            "status": conditions(),
        }),
        "ConfigMap" => json!({
            "data": texts(), "binaryData": bytes(), "immutable": { "type": "boolean" },
        }),
        "Secret" => json!({
            "data": bytes(), "type": { "type": "string", "default": "Opaque" }, "immutable": { "type": "boolean" },
        }),
        "Lease" => json!({ "spec": lease() }),
        "ServiceAccount" => {
            let mut secrets = keyed(&["name"], json!({}));
            secrets["items"]["x-kubernetes-map-type"] = "atomic".into();
            json!({ "secrets": secrets, "automountServiceAccountToken": { "type": "boolean" } })
        }
        "Namespace" | "PersistentVolumeClaim" | "CustomResourceDefinition" => {
            json!({ "status": conditions() })
        }
        _ => json!({}),
    };
    json!({ "properties": properties })
}

static POD_SPEC: LazyLock<Value> = LazyLock::new(|| {
    let containers = || {
        let ports = json!({
            "containerPort": { "type": "integer" },
            "protocol": { "type": "string", "default": "TCP" },
        });
        keyed(
            &["name"],
            json!({
                "env": keyed(&["name"], json!({})),
                "ports": keyed(&["containerPort", "protocol"], ports),
                "volumeMounts": keyed(&["mountPath"], json!({})),
                "volumeDevices": keyed(&["devicePath"], json!({})),
            }),
        )
    };
    open(json!({
        "containers": containers(),
        "initContainers": containers(),
        "ephemeralContainers": containers(),
        "volumes": keyed(&["name"], json!({})),
        "imagePullSecrets": keyed(&["name"], json!({})),
        "hostAliases": keyed(&["ip"], json!({})),
        "nodeSelector": atomic_map(),
    }))
});

/// A map of texts, which is left out where it is empty.
fn texts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// A map of bytes, where none at all are told from an empty value until they are stored.
fn bytes() -> Value {
    let value = json!({ "type": "string", "nullable": true });
    json!({ "type": "object", "additionalProperties": value })
}

fn lease() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    open(json!({
        "holderIdentity": text, "preferredHolder": text, "strategy": text,
        "acquireTime": text, "renewTime": text,
        "leaseDurationSeconds": number, "leaseTransitions": number,
    }))
}

/// A map with known fields among others.
fn open(properties: impl Into<Value>) -> Value {
    let properties = properties.into();
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": properties,
    })
}

/// A list whose items are told apart by keys.
fn keyed(keys: &[&str], mut properties: Value) -> Value {
    for &key in keys {
        if properties.get(key).is_none() {
            properties[key] = json!({ "type": "string" });
        }
    }
    let required: Vec<_> = keys
        .iter()
        .filter(|&&key| properties[key].get("default").is_none())
        .collect();
    let mut items = open(properties.clone());
    items["required"] = json!(required);
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": items,
    })
}

fn atomic_map() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-map-type": "atomic",
    })
}
