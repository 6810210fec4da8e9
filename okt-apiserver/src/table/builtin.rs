//! Defines the columns of the built-in kinds, as on a real server.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::{NONE, count, each, integer, number, or, plain};
use super::{Column, cluster, event, network, pod, workload};
use crate::object::{self, at, text};

/// Returns the columns of a kind after the name.
pub(crate) fn columns(kind: &str) -> Vec<Column> {
    match kind {
        "Namespace" => vec![Column::plain("Status", ".status.phase"), Column::age()],
        "ConfigMap" => vec![
            Column::cell_of("Data", |object, _| {
                (count(object, &["data"]) + count(object, &["binaryData"])).into()
            }),
            Column::age(),
        ],
        "Secret" => vec![
            Column::text_or("Type", &["type"], "Opaque"),
            Column::cell_of("Data", |object, _| count(object, &["data"]).into()),
            Column::age(),
        ],
        "Service" => service(),
        "PersistentVolumeClaim" => claim(),
        "PersistentVolume" => volume(),
        "ResourceQuota" => quota(),
        "Endpoints" => network::endpoints(),
        "Ingress" => network::ingress(),
        "PodDisruptionBudget" => budget(),
        "Pod" => pod::columns(),
        "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet" | "ReplicationController" => {
            workload::columns(kind)
        }
        "Job" => workload::job(),
        "CronJob" => workload::cron_job(),
        "Lease" => vec![
            Column::plain("Holder", ".spec.holderIdentity"),
            Column::age(),
        ],
        "Event" => event::columns(),
        "Role" | "ClusterRole" | "CustomResourceDefinition" | "LimitRange" => {
            vec![
                Column::text_or("Created At", &["metadata", "creationTimestamp"], "").typed("date"),
            ]
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => vec![
            Column::cell_of("Webhooks", |object, _| count(object, &["webhooks"]).into())
                .typed("integer"),
            Column::age(),
        ],
        "RoleBinding" | "ClusterRoleBinding" => binding(),
        "Node" => cluster::node(),
        "HorizontalPodAutoscaler" => cluster::autoscaler(),
        "CertificateSigningRequest" => cluster::certificate_request(),
        "StorageClass" => cluster::storage_class(),
        "IngressClass" => cluster::ingress_class(),
        "PriorityClass" => cluster::priority_class(),
        "RuntimeClass" => vec![Column::text_or("Handler", &["handler"], ""), Column::age()],
        "ControllerRevision" => cluster::revision(),
        "APIService" => cluster::api_service(),
        "PodTemplate" => workload::pod_template(),
        "EndpointSlice" => network::endpoint_slice(),
        "NetworkPolicy" => network::policy(),
        _ => vec![Column::age()],
    }
}

/// Returns the columns of a scale, which is no kind of its own.
pub(crate) fn scale() -> Vec<Column> {
    vec![
        Column::integer("Desired", &["spec", "replicas"]),
        Column::integer("Available", &["status", "replicas"]),
        Column::age(),
    ]
}

fn budget() -> Vec<Column> {
    let limit = |name: &'static str, key: &'static str| {
        Column::cell_of(name, move |object, _| match at(object, &["spec", key]) {
            Some(Value::Number(number)) => number.to_string().into(),
            Some(Value::String(text)) => text.as_str().into(),
            _ => "N/A".into(),
        })
    };
    vec![
        limit("Min Available", "minAvailable"),
        limit("Max Unavailable", "maxUnavailable"),
        Column::integer("Allowed Disruptions", &["status", "disruptionsAllowed"]),
        Column::age(),
    ]
}

fn service() -> Vec<Column> {
    vec![
        Column::cell_of("Type", |object, _| service_type(object).into()),
        Column::text_or("Cluster-IP", &["spec", "clusterIP"], NONE),
        Column::cell_of("External-IP", external_addresses),
        Column::cell_of("Port(s)", |object, _| {
            let ports = each(object, &["spec", "ports"], |port| {
                let number = number(port, &["port"]);
                let outside = match integer(port, &["nodePort"]) {
                    0 => String::new(),
                    outside => format!(":{outside}"),
                };
                let protocol = port.get("protocol").and_then(Value::as_str);
                format!("{number}{outside}/{}", protocol.unwrap_or("TCP"))
            });
            or(&ports.join(","), NONE)
        }),
        Column::age(),
        Column::labels("Selector", &["spec", "selector"]).wide(),
    ]
}

fn service_type(object: &Value) -> &str {
    match text(object, &["spec", "type"]) {
        "" => "ClusterIP",
        kind => kind,
    }
}

fn external_addresses(object: &Value, _: Timestamp) -> Value {
    let own = || each(object, &["spec", "externalIPs"], plain);
    match service_type(object) {
        "ExternalName" => or(text(object, &["spec", "externalName"]), NONE),
        "LoadBalancer" => {
            let mut all = each(
                object,
                &["status", "loadBalancer", "ingress"],
                |ingress| match text(ingress, &["ip"]) {
                    "" => text(ingress, &["hostname"]).to_owned(),
                    ip => ip.to_owned(),
                },
            );
            all.extend(own());
            or(&all.join(","), "<pending>")
        }
        _ => or(&own().join(","), NONE),
    }
}

fn claim() -> Vec<Column> {
    // The capacity and the access modes are shown only for a bound claim.
    let bound = |object: &Value| !text(object, &["spec", "volumeName"]).is_empty();
    vec![
        phase(),
        Column::text_or("Volume", &["spec", "volumeName"], ""),
        Column::cell_of("Capacity", move |object, _| {
            if bound(object) {
                text(object, &["status", "capacity", "storage"]).into()
            } else {
                "".into()
            }
        }),
        Column::cell_of("Access Modes", move |object, _| {
            if !bound(object) {
                return "".into();
            }
            access_modes(object, &["status", "accessModes"])
        }),
        Column::text_or("StorageClass", &["spec", "storageClassName"], ""),
        Column::text_or(
            "VolumeAttributesClass",
            &["spec", "volumeAttributesClassName"],
            "<unset>",
        ),
        Column::age(),
        Column::text_or("VolumeMode", &["spec", "volumeMode"], "Filesystem").wide(),
    ]
}

fn volume() -> Vec<Column> {
    vec![
        Column::plain("Capacity", ".spec.capacity.storage"),
        Column::cell_of("Access Modes", |object, _| {
            access_modes(object, &["spec", "accessModes"])
        }),
        Column::text_or(
            "Reclaim Policy",
            &["spec", "persistentVolumeReclaimPolicy"],
            "Retain",
        ),
        phase(),
        Column::cell_of("Claim", |object, _| {
            match at(object, &["spec", "claimRef"]) {
                Some(claim) => {
                    format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"])).into()
                }
                None => "".into(),
            }
        }),
        Column::text_or("StorageClass", &["spec", "storageClassName"], ""),
        Column::text_or(
            "VolumeAttributesClass",
            &["spec", "volumeAttributesClassName"],
            "<unset>",
        ),
        Column::text_or("Reason", &["status", "reason"], ""),
        Column::age(),
        Column::text_or("VolumeMode", &["spec", "volumeMode"], "Filesystem").wide(),
    ]
}

/// The phase of a volume or a claim.
fn phase() -> Column {
    Column::cell_of("Status", |object, _| {
        if object::is_deleting(object) {
            "Terminating".into()
        } else {
            or(text(object, &["status", "phase"]), "Pending")
        }
    })
}

fn access_modes(object: &Value, path: &[&str]) -> Value {
    let modes = each(object, path, |mode| {
        match mode.as_str().unwrap_or_default() {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            other => other,
        }
        .to_owned()
    });
    modes.join(",").into()
}

fn quota() -> Vec<Column> {
    let column = |name, is_limit: bool| {
        Column::cell_of(name, move |object, _| {
            let mut hard: Vec<_> = object::entries(object, &["status", "hard"]).collect();
            hard.retain(|(resource, _)| resource.starts_with("limits.") == is_limit);
            hard.sort_by_key(|(resource, _)| *resource);
            let shown = hard.iter().map(|(resource, limit)| {
                let used = at(object, &["status", "used", resource]).map_or("0".to_owned(), plain);
                format!("{resource}: {used}/{}", plain(limit))
            });
            shown.collect::<Vec<_>>().join(", ").into()
        })
    };
    vec![
        column("Request", false),
        column("Limit", true),
        Column::age(),
    ]
}

fn binding() -> Vec<Column> {
    let subjects = |name, kind: &'static str| {
        Column::cell_of(name, move |object, _| {
            let names = object::items(object, &["subjects"])
                .iter()
                .filter(|subject| text(subject, &["kind"]) == kind)
                .map(|subject| match text(subject, &["namespace"]) {
                    "" => text(subject, &["name"]).to_owned(),
                    namespace => format!("{namespace}/{}", text(subject, &["name"])),
                });
            names.collect::<Vec<_>>().join(", ").into()
        })
        .wide()
    };
    vec![
        Column::cell_of("Role", |object, _| {
            let of = |key| text(object, &["roleRef", key]);
            format!("{}/{}", of("kind"), of("name")).into()
        }),
        Column::age(),
        subjects("Users", "User"),
        subjects("Groups", "Group"),
        subjects("ServiceAccounts", "ServiceAccount"),
    ]
}
