//! Describes the types of built-in kinds: the lists whose keys server-side apply or a strategic merge patch
//! uses, and the fields that are structs and not maps.
//!
//! Texts, numbers and atomic lists need not be listed.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// Returns the known part of a kind, as an `OpenAPI` schema.
pub(super) fn known_shape(kind: &str) -> Value {
    let workload = |strategy: &str| {
        let mut spec = json!({ "template": template(), "selector": atomic_map() });
        spec[strategy] = structs(&["rollingUpdate"]);
        json!({ "spec": open(spec), "status": conditions() })
    };
    let properties = match kind {
        "Pod" => json!({ "spec": POD_SPEC.clone(), "status": conditions() }),
        "Deployment" => workload("strategy"),
        "StatefulSet" | "ReplicaSet" | "DaemonSet" => workload("updateStrategy"),
        "Job" => json!({ "spec": job(), "status": conditions() }),
        "CronJob" => {
            let job = open(json!({ "metadata": metadata(), "spec": job() }));
            json!({ "spec": open(json!({ "jobTemplate": job })) })
        }
        "Service" => service(),
        "ReplicationController" => {
            let spec = open(json!({ "template": template(), "selector": atomic_map() }));
            json!({ "spec": spec, "status": conditions() })
        }
        "PersistentVolume" => json!({ "spec": volume_spec(), "status": open(json!({})) }),
        "ResourceQuota" => {
            let limits = |key: &str| open(json!({ key: quantities(), "used": quantities() }));
            json!({ "spec": limits("hard"), "status": limits("hard") })
        }
        "LimitRange" => json!({ "spec": open(json!({ "limits": list() })) }),
        "Endpoints" => json!({ "subsets": subsets() }),
        "Ingress" => json!({
            "spec": open(json!({ "rules": list(), "tls": list(), "defaultBackend": open(json!({})) })),
            "status": structs(&["loadBalancer"]),
        }),
        "PodDisruptionBudget" => json!({
            "spec": open(json!({ "selector": atomic_map() })), "status": conditions(),
        }),
        "ConfigMap" => json!({
            "data": texts(), "binaryData": bytes(), "immutable": { "type": "boolean" },
        }),
        "Secret" => json!({
            "data": bytes(),
            "type": { "type": "string", "default": "Opaque" },
            "immutable": { "type": "boolean" },
        }),
        "Lease" => json!({ "spec": lease() }),
        "ServiceAccount" => {
            let mut secrets = keyed(&["name"], json!({}));
            secrets["items"]["x-kubernetes-map-type"] = "atomic".into();
            json!({ "secrets": secrets, "automountServiceAccountToken": { "type": "boolean" } })
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => webhooks(kind),
        "Namespace" | "PersistentVolumeClaim" | "CustomResourceDefinition" => {
            json!({ "status": conditions() })
        }
        _ => json!({}),
    };
    json!({ "properties": properties })
}

fn conditions() -> Value {
    open(json!({ "conditions": keyed(&["type"], json!({})) }))
}

/// The webhooks of a configuration of this kind.
fn webhooks(kind: &str) -> Value {
    let text = |default: &str| json!({ "type": "string", "default": default });
    let selector = || {
        let mut selector = atomic_map();
        selector["default"] = json!({});
        selector
    };
    let rule = open(json!({
        "apiGroups": list(), "apiVersions": list(), "operations": list(), "resources": list(),
        "scope": text("*"),
    }));
    let port = json!({ "type": "integer", "default": 443 });
    let mut fields = json!({
        "failurePolicy": text("Fail"),
        "matchPolicy": text("Equivalent"),
        "namespaceSelector": selector(),
        "objectSelector": selector(),
        "timeoutSeconds": { "type": "integer", "default": 10 },
        "clientConfig": open(json!({ "service": open(json!({ "port": port })) })),
        "rules": { "type": "array", "items": rule },
        "admissionReviewVersions": list(),
        "matchConditions": keyed(&["name"], json!({})),
    });
    if kind == "MutatingWebhookConfiguration" {
        fields["reinvocationPolicy"] = text("Never");
    }
    json!({ "webhooks": keyed(&["name"], fields) })
}

fn service() -> Value {
    let ports = json!({
        "port": { "type": "integer" },
        "protocol": { "type": "string", "default": "TCP" },
    });
    let mut status = conditions();
    status["properties"]["loadBalancer"] = structs(&[]);
    json!({
        "spec": open(json!({
            "ports": keyed(&["port", "protocol"], ports),
            "selector": atomic(texts()),
            "sessionAffinityConfig": structs(&["clientIP"]),
        })),
        "status": status,
    })
}

fn volume_spec() -> Value {
    let mut spec = fields(&["claimRef", "csi", "hostPath", "iscsi", "local", "nfs"]);
    spec["accessModes"] = list();
    spec["capacity"] = quantities();
    spec["mountOptions"] = list();
    spec["nodeAffinity"] = structs(&["required"]);
    open(spec)
}

/// The addresses behind a Service; the list is atomic.
fn subsets() -> Value {
    let port = open(json!({ "protocol": { "type": "string", "default": "TCP" } }));
    let ports = json!({ "type": "array", "items": port });
    let subset = open(json!({ "ports": ports, "addresses": list() }));
    json!({ "type": "array", "items": subset })
}

fn lease() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    open(json!({
        "holderIdentity": text, "preferredHolder": text, "strategy": text,
        "acquireTime": text, "renewTime": text,
        "leaseDurationSeconds": number, "leaseTransitions": number,
    }))
}

fn job() -> Value {
    open(json!({ "template": template(), "selector": atomic_map() }))
}

fn template() -> Value {
    open(json!({ "metadata": metadata(), "spec": POD_SPEC.clone() }))
}

/// The metadata of a template.
fn metadata() -> Value {
    let finalizers =
        json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    open(json!({ "labels": texts(), "annotations": texts(), "finalizers": finalizers }))
}

static POD_SPEC: LazyLock<Value> = LazyLock::new(|| {
    open(json!({
        "containers": containers(),
        "initContainers": containers(),
        "ephemeralContainers": containers(),
        "volumes": keyed(&["name"], volume()),
        "tolerations": list(),
        "topologySpreadConstraints": keyed(&["topologyKey", "whenUnsatisfiable"], json!({})),
        "imagePullSecrets": keyed(&["name"], json!({})),
        "hostAliases": keyed(&["ip"], json!({})),
        "nodeSelector": atomic_map(),
        "affinity": open(json!({
            "nodeAffinity": open(json!({
                "requiredDuringSchedulingIgnoredDuringExecution": atomic_map(),
            })),
            "podAffinity": structs(&[]),
            "podAntiAffinity": structs(&[]),
        })),
        "dnsConfig": structs(&[]),
        "os": structs(&[]),
        "overhead": quantities(),
        "resources": resources(),
        "securityContext": structs(&[
            "appArmorProfile", "seLinuxOptions", "seccompProfile", "windowsOptions",
        ]),
    }))
});

fn containers() -> Value {
    let ports = json!({
        "containerPort": { "type": "integer" },
        "protocol": { "type": "string", "default": "TCP" },
    });
    let source = json!({
        "configMapKeyRef": atomic_map(),
        "fieldRef": atomic_map(),
        "fileKeyRef": atomic_map(),
        "resourceFieldRef": atomic_map(),
        "secretKeyRef": atomic_map(),
    });
    let probe = || structs(&["exec", "grpc", "httpGet", "tcpSocket"]);
    let hook = || structs(&["exec", "httpGet", "sleep", "tcpSocket"]);
    keyed(
        &["name"],
        json!({
            "args": list(),
            "command": list(),
            "env": keyed(&["name"], json!({ "valueFrom": open(source) })),
            "envFrom": list(),
            "ports": keyed(&["containerPort", "protocol"], ports),
            "volumeMounts": keyed(&["mountPath"], json!({})),
            "volumeDevices": keyed(&["devicePath"], json!({})),
            "lifecycle": open(json!({ "postStart": hook(), "preStop": hook() })),
            "livenessProbe": probe(),
            "readinessProbe": probe(),
            "startupProbe": probe(),
            "resources": resources(),
            "securityContext": structs(&[
                "appArmorProfile", "capabilities", "seLinuxOptions", "seccompProfile", "windowsOptions",
            ]),
        }),
    )
}

fn resources() -> Value {
    open(json!({
        "limits": quantities(),
        "requests": quantities(),
        "claims": keyed(&["name"], json!({})),
    }))
}

fn volume() -> Value {
    let sources = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    fields(&sources)
}

fn quantities() -> Value {
    json!({ "type": "object", "additionalProperties": { "x-kubernetes-int-or-string": true } })
}

/// An atomic list, which is left out if it is empty.
fn list() -> Value {
    let item = json!({ "x-kubernetes-preserve-unknown-fields": true });
    json!({ "type": "array", "items": item })
}

/// A map of texts, which is left out if it is empty.
fn texts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// A map of bytes. Until it is stored, a missing map differs from an empty one.
fn bytes() -> Value {
    let value = json!({ "type": "string", "nullable": true });
    json!({ "type": "object", "additionalProperties": value })
}

/// A struct with these fields, which are structs themselves, among others.
fn structs(names: &[&str]) -> Value {
    open(fields(names))
}

/// Fields that are structs, described no further.
fn fields(names: &[&str]) -> Value {
    let fields = names.iter().map(|&name| (name.to_owned(), open(json!({}))));
    fields.collect::<Map<_, _>>().into()
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

/// A list whose items are identified by keys.
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
    atomic(open(json!({})))
}

/// An atomic map.
fn atomic(mut map: Value) -> Value {
    map["x-kubernetes-map-type"] = "atomic".into();
    map
}
