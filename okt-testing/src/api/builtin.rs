//! Lists the kinds that exist without a CRD.
//!
//! They are stored without validation and, except for those listed here, without defaults.

mod kept;
mod known;
mod numbers;
mod plain;
mod quantity;
mod shape;
mod webhooks;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use self::shape::known_shape;
pub(crate) use self::{
    kept::check_kept_fields, known::drop_unknown, numbers::check_integers, webhooks::check_webhooks,
};

use crate::api::kind::{Origin, Scale, ServedKind};
use crate::api::schema::{Schema, SharedSchema};
use crate::api::{object, table};

/// Group, version, kind, plural and short name of a kind, and what is special about it.
type KindLine = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [Trait],
);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trait {
    Cluster,
    Status,
    Generation,
    Scale,
    /// A PUT needs a resourceVersion.
    Versioned,
    /// A PUT creates the object if it does not exist.
    Upsert,
    /// Part of `kubectl get all`.
    All,
}

use Trait::{All, Cluster, Generation, Status, Upsert, Versioned};

const WORKLOAD: &[Trait] = &[Status, Generation, Trait::Scale, All];
/// The group of the configurations of admission.
pub(crate) const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

#[rustfmt::skip]
const LINES: &[KindLine] = &[
    ("", "v1", "Namespace", "namespaces", "ns", &[Cluster, Status, Versioned]),
    ("", "v1", "ConfigMap", "configmaps", "cm", &[]),
    ("", "v1", "Secret", "secrets", "", &[]),
    ("", "v1", "Service", "services", "svc", &[Status, Upsert, All]),
    ("", "v1", "ServiceAccount", "serviceaccounts", "sa", &[]),
    ("", "v1", "Pod", "pods", "po", &[Status, Generation, All]),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", &[Status]),
    ("", "v1", "PersistentVolume", "persistentvolumes", "pv", &[Cluster, Status]),
    ("", "v1", "ReplicationController", "replicationcontrollers", "rc", WORKLOAD),
    ("", "v1", "Endpoints", "endpoints", "ep", &[Upsert]),
    ("", "v1", "ResourceQuota", "resourcequotas", "quota", &[Status]),
    ("", "v1", "LimitRange", "limitranges", "limits", &[Upsert]),
    ("", "v1", "Event", "events", "ev", &[Upsert]),
    ("events.k8s.io", "v1", "Event", "events", "ev", &[Upsert]),
    ("coordination.k8s.io", "v1", "Lease", "leases", "", &[Versioned, Upsert]),
    ("apps", "v1", "Deployment", "deployments", "deploy", WORKLOAD),
    ("apps", "v1", "StatefulSet", "statefulsets", "sts", WORKLOAD),
    ("apps", "v1", "ReplicaSet", "replicasets", "rs", WORKLOAD),
    ("apps", "v1", "DaemonSet", "daemonsets", "ds", &[Status, Generation, All]),
    ("batch", "v1", "Job", "jobs", "", &[Status, Generation, All]),
    ("batch", "v1", "CronJob", "cronjobs", "cj", &[Status, Generation, All]),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", "ing", &[Status, Generation]),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", &[Status, Generation, Versioned]),
    (RBAC, "v1", "Role", "roles", "", &[Upsert]),
    (RBAC, "v1", "RoleBinding", "rolebindings", "", &[Upsert]),
    (RBAC, "v1", "ClusterRole", "clusterroles", "", &[Cluster, Upsert]),
    (RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", "", &[Cluster, Upsert]),
    (ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "",
        &[Cluster, Generation, Versioned]),
    (ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "",
        &[Cluster, Generation, Versioned]),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd",
        &[Cluster, Status, Generation, Versioned]),
];

/// Whether a real server has this API group, which is not or only partly served here.
pub(crate) fn is_known_elsewhere(group: &str) -> bool {
    group.is_empty()
        || group.ends_with(".k8s.io")
        || matches!(group, "apps" | "batch" | "autoscaling" | "policy")
}

/// Returns all built-in kinds; every server shares them.
pub(crate) fn kinds() -> impl Iterator<Item = Arc<ServedKind>> {
    static KINDS: LazyLock<Vec<Arc<ServedKind>>> =
        LazyLock::new(|| LINES.iter().map(|line| Arc::new(kind(line))).collect());
    KINDS.iter().cloned()
}

fn kind(&(group, version, kind, plural, short, traits): &'static KindLine) -> ServedKind {
    let has = |wanted: Trait| traits.contains(&wanted);
    let words = |text: &str| -> Vec<String> {
        (!text.is_empty())
            .then(|| text.to_owned())
            .into_iter()
            .collect()
    };
    ServedKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: words(short),
        categories: words(if has(All) { "all" } else { "" }),
        namespaced: !has(Cluster),
        origin: Origin::BuiltIn,
        schema: SharedSchema::of(|| Schema::of_builtin(known_shape(kind))),
        openapi: json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        has_status: has(Status),
        scale: has(Trait::Scale).then(|| Scale {
            spec_replicas: path(&["spec", "replicas"]),
            status_replicas: path(&["status", "replicas"]),
            selector: Some(match kind {
                "ReplicationController" => path(&["spec", "selector"]),
                _ => path(&["spec", "selector", "matchLabels"]),
            }),
        }),
        has_generation: has(Generation),
        selectable: selectable(kind, group),
        columns: table::builtin_columns(kind),
        updates_unconditionally: !has(Versioned),
        creates_on_update: has(Upsert),
        was_changed: false,
        is_served: true,
        is_stored: true,
        deprecation: (kind == "Endpoints").then(|| {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
        }),
        siblings: Vec::new(),
        conversion: None,
    }
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

/// Fills in the fields that a type always has, even if they are empty.
pub(crate) fn fill(kind: &str, object: &mut Value) {
    if kind == "ServiceAccount" {
        // Only the name of a secret is kept.
        let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten() {
            object::fields(secret).retain(|key, _| key == "name");
        }
    }
    match kind {
        "Secret" if object::text(object, &["type"]).is_empty() => {
            // An empty type is none, for which there is a default.
            object::fields(object).remove("type");
        }
        "Service" => {
            fill_service(object);
            let texts = ["type", "status", "reason", "message"];
            fill_conditions(object, &texts, &["lastTransitionTime"]);
        }
        "Deployment" => fill_conditions(object, &["type", "status"], &[]),
        _ => {}
    }
    let always = match kind {
        "Lease" | "Role" | "ClusterRole" | "PodDisruptionBudget" => blank(kind),
        "Deployment" | "ResourceQuota" => json!({ "status": {} }),
        "Ingress" => json!({ "status": { "loadBalancer": {} } }),
        _ => json!({}),
    };
    for (key, value) in always.as_object().into_iter().flatten() {
        let found = object::fields(object)
            .entry(key.clone())
            .or_insert_with(|| value.clone());
        if found.as_array().is_some_and(Vec::is_empty) {
            found.clone_from(value);
        }
    }
}

/// Fills in the fields that a condition always has: some texts, and times that may be null.
fn fill_conditions(object: &mut Value, texts: &[&str], times: &[&str]) {
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let fields = object::fields(condition);
        for &key in texts {
            fields.entry(key).or_insert_with(|| "".into());
        }
        for &key in times {
            fields.entry(key).or_insert(Value::Null);
        }
    }
}

fn fill_service(service: &mut Value) {
    let status = object::fields(&mut service["status"]);
    status.entry("loadBalancer").or_insert_with(|| json!({}));
    let spec = object::fields(&mut service["spec"]);
    let kind = spec.entry("type").or_insert_with(|| "ClusterIP".into());
    let has_address = kind != "ExternalName";
    let is_outside = kind == "NodePort" || kind == "LoadBalancer";
    let is_balanced = kind == "LoadBalancer";
    let mut fill = |key: &str, value: Value| {
        spec.entry(key).or_insert(value);
    };
    fill("sessionAffinity", "None".into());
    if has_address {
        fill("internalTrafficPolicy", "Cluster".into());
    }
    if is_outside {
        fill("externalTrafficPolicy", "Cluster".into());
    }
    if is_balanced {
        fill("allocateLoadBalancerNodePorts", true.into());
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if let (Some(number), Value::Object(fields)) = (port.get("port").cloned(), port) {
            fields.entry("targetPort").or_insert(number);
        }
    }
}

/// Keeps the values that the server allocated to an object if an update does not repeat them.
pub(crate) fn keep_allocated(kind: &ServedKind, old: &Value, new: &mut Value) {
    if !kind.is("", "services") || object::text(new, &["spec", "type"]) == "ExternalName" {
        return;
    }
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let path = ["spec", key];
        let is_given = object::at(new, &path).is_some_and(|value| value.as_str() != Some(""));
        if let (false, Some(value)) = (is_given, object::at(old, &path)) {
            object::put(new, &path, value.clone());
        }
    }
}

/// Returns the metadata fields that a write through the status does not change; it writes all others.
pub(crate) fn kept_by_status(kind: &str) -> &'static [&'static str] {
    match kind {
        "Deployment" => &["labels"],
        "Pod" => &["ownerReferences"],
        _ => &[],
    }
}

/// Returns the fields that every object of a kind has; the creator of an object does not own them.
pub(crate) fn blank(kind: &str) -> Value {
    match kind {
        "Lease" => json!({ "spec": {} }),
        "Role" | "ClusterRole" => json!({ "rules": null }),
        "Service" | "Ingress" => json!({ "spec": {}, "status": { "loadBalancer": {} } }),
        "ResourceQuota" => json!({ "spec": {}, "status": {} }),
        "PodDisruptionBudget" => {
            let numbers = [
                "currentHealthy",
                "desiredHealthy",
                "disruptionsAllowed",
                "expectedPods",
            ];
            let status: Map<String, Value> = numbers
                .map(|name| (name.to_owned(), 0.into()))
                .into_iter()
                .collect();
            json!({ "spec": {}, "status": status })
        }
        "Deployment" => json!({
            "spec": {
                "selector": null,
                "strategy": {},
                "template": { "metadata": {}, "spec": { "containers": null } },
            },
            "status": {},
        }),
        _ => json!({}),
    }
}
