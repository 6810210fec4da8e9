//! Defines the columns of the kinds that describe a cluster: nodes, classes, autoscalers, requests for certificates.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Column;
use super::cell::{NONE, each, integer, or, span};
use crate::object::{self, at, items, text};

const UNKNOWN: &str = "<unknown>";
const UNSET: &str = "<unset>";

pub(super) fn node() -> Vec<Column> {
    let address = |name: &'static str, kind: &'static str| {
        Column::cell_of(name, move |node, _| {
            let mut all = items(node, &["status", "addresses"]).iter();
            let found = all.find(|address| text(address, &["type"]) == kind);
            or(found.map_or("", |it| text(it, &["address"])), NONE)
        })
        .wide()
    };
    vec![
        Column::cell_of("Status", |node, _| {
            let mut conditions = items(node, &["status", "conditions"]).iter();
            let ready = conditions.find(|it| text(it, &["type"]) == "Ready");
            let mut status = match ready.map(|it| text(it, &["status"])) {
                Some("True") => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            }
            .to_owned();
            if node["spec"]["unschedulable"] == true {
                status.push_str(",SchedulingDisabled");
            }
            status.into()
        }),
        Column::cell_of("Roles", |node, _| roles(node)),
        Column::age(),
        Column::text_or("Version", &["status", "nodeInfo", "kubeletVersion"], ""),
        address("Internal-IP", "InternalIP"),
        address("External-IP", "ExternalIP"),
        Column::text_or("OS-Image", &["status", "nodeInfo", "osImage"], UNKNOWN).wide(),
        Column::cell_of("Kernel-Version", |node, _| {
            let of = |key| text(node, &["status", "nodeInfo", key]);
            let version = match of("kernelVersion") {
                "" => UNKNOWN,
                version => version,
            };
            match of("architecture") {
                "" => version.into(),
                architecture => format!("{version} ({architecture})").into(),
            }
        })
        .wide(),
        Column::text_or(
            "Container-Runtime",
            &["status", "nodeInfo", "containerRuntimeVersion"],
            UNKNOWN,
        )
        .wide(),
    ]
}

/// Returns the roles of a node, which are labels.
fn roles(node: &Value) -> Value {
    let labels = object::entries(node, &["metadata", "labels"]);
    let mut roles: Vec<_> = labels
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    or(&roles.join(","), NONE)
}

pub(super) fn autoscaler() -> Vec<Column> {
    vec![
        Column::cell_of("Reference", |autoscaler, _| {
            let of = |key| text(autoscaler, &["spec", "scaleTargetRef", key]);
            format!("{}/{}", of("kind"), of("name")).into()
        }),
        Column::cell_of("Targets", |autoscaler, _| targets(autoscaler)),
        Column::cell_of("MinPods", |autoscaler, _| {
            let least = at(autoscaler, &["spec", "minReplicas"]);
            least.map_or(UNSET.to_owned(), Value::to_string).into()
        }),
        Column::integer("MaxPods", &["spec", "maxReplicas"]).typed("string"),
        Column::integer("Replicas", &["status", "currentReplicas"]).typed("string"),
        Column::age(),
    ]
}

/// Returns the first two metrics, each as its value and its target.
fn targets(autoscaler: &Value) -> Value {
    const SHOWN: usize = 2;
    let specs = items(autoscaler, &["spec", "metrics"]);
    let statuses = items(autoscaler, &["status", "currentMetrics"]);
    let shown = specs.iter().enumerate().take(SHOWN).map(|(index, spec)| {
        let (key, resource) = match text(spec, &["type"]) {
            "External" => ("external", ""),
            "Pods" => ("pods", ""),
            "Object" => ("object", ""),
            "Resource" => ("resource", text(spec, &["resource", "name"])),
            "ContainerResource" => (
                "containerResource",
                text(spec, &["containerResource", "name"]),
            ),
            _ => return "<unknown type>".to_owned(),
        };
        let target = &spec[key]["target"];
        let current = statuses.get(index).map(|it| &it[key]["current"]);
        let is_resource = !resource.is_empty();
        let (kind, sign) = match target {
            it if !it["averageValue"].is_null() => ("averageValue", ""),
            _ if is_resource => ("averageUtilization", "%"),
            _ => ("value", ""),
        };
        let show = |value: Option<&Value>, otherwise: &str| match value.map(|it| &it[kind]) {
            Some(Value::String(amount)) => amount.clone(),
            Some(Value::Number(number)) => format!("{number}{sign}"),
            _ => otherwise.to_owned(),
        };
        let (now, wanted) = (show(current, UNKNOWN), show(Some(target), "<auto>"));
        if is_resource {
            return format!("{resource}: {now}/{wanted}");
        }
        let is_average = kind == "averageValue" && key != "pods";
        format!("{now}/{wanted}{}", if is_average { " (avg)" } else { "" })
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    match specs.len().saturating_sub(SHOWN) {
        0 => or(&shown, NONE),
        more => format!("{shown} + {more} more...").into(),
    }
}

pub(super) fn certificate_request() -> Vec<Column> {
    vec![
        Column::age(),
        Column::text_or("SignerName", &["spec", "signerName"], NONE),
        Column::text_or("Requestor", &["spec", "username"], ""),
        Column::cell_of("RequestedDuration", |request, now| {
            match at(request, &["spec", "expirationSeconds"]).and_then(Value::as_i64) {
                Some(seconds) => since(now, seconds),
                None => NONE.into(),
            }
        }),
        Column::cell_of("Condition", |request, _| {
            let types = each(request, &["status", "conditions"], |it| {
                text(it, &["type"]).to_owned()
            });
            let has = |kind: &str| types.iter().any(|it| it == kind);
            let mut status = match (has("Denied"), has("Approved")) {
                (true, _) => "Denied",
                (false, true) => "Approved",
                (false, false) => "Pending",
            }
            .to_owned();
            if has("Failed") {
                status.push_str(",Failed");
            }
            if !text(request, &["status", "certificate"]).is_empty() {
                status.push_str(",Issued");
            }
            status.into()
        }),
    ]
}

/// Returns a number of seconds as an age.
fn since(now: Timestamp, seconds: i64) -> Value {
    let then = now.checked_sub(SignedDuration::from_secs(seconds));
    then.map_or("<invalid>".into(), |then| span(then, now).into())
}

pub(super) fn storage_class() -> Vec<Column> {
    vec![
        Column::class("storageclass.kubernetes.io/is-default-class"),
        Column::text_or("Provisioner", &["provisioner"], ""),
        Column::text_or("ReclaimPolicy", &["reclaimPolicy"], "Delete"),
        Column::text_or("VolumeBindingMode", &["volumeBindingMode"], "Immediate"),
        Column::is("AllowVolumeExpansion", "allowVolumeExpansion").typed("string"),
        Column::age(),
    ]
}

pub(super) fn ingress_class() -> Vec<Column> {
    vec![
        Column::class("ingressclass.kubernetes.io/is-default-class"),
        Column::text_or("Controller", &["spec", "controller"], ""),
        Column::cell_of("Parameters", |class, _| {
            let Some(parameters) = at(class, &["spec", "parameters"]) else {
                return NONE.into();
            };
            let of = |key| text(parameters, &[key]);
            let dot = if of("apiGroup").is_empty() { "" } else { "." };
            format!("{}{dot}{}/{}", of("kind"), of("apiGroup"), of("name")).into()
        }),
        Column::age(),
    ]
}

pub(super) fn priority_class() -> Vec<Column> {
    vec![
        Column::integer("Value", &["value"]),
        Column::is("Global-Default", "globalDefault"),
        Column::age(),
        Column::text_or("PreemptionPolicy", &["preemptionPolicy"], ""),
    ]
}

pub(super) fn api_service() -> Vec<Column> {
    vec![
        Column::cell_of("Service", |api, _| match at(api, &["spec", "service"]) {
            Some(service) => format!(
                "{}/{}",
                text(service, &["namespace"]),
                text(service, &["name"])
            )
            .into(),
            None => "Local".into(),
        }),
        Column::cell_of("Available", |api, _| {
            let mut conditions = items(api, &["status", "conditions"]).iter();
            let Some(found) = conditions.find(|it| text(it, &["type"]) == "Available") else {
                return "Unknown".into();
            };
            match (text(found, &["status"]), text(found, &["reason"])) {
                (status @ "True", _) | (status, "") => status.into(),
                (status, reason) => format!("{status} ({reason})").into(),
            }
        }),
        Column::age(),
    ]
}

pub(super) fn revision() -> Vec<Column> {
    vec![
        Column::cell_of("Controller", |revision, _| {
            let mut owners = object::owners(revision).iter();
            let Some(owner) = owners.find(|owner| owner["controller"] == true) else {
                return NONE.into();
            };
            let (kind, name) = (
                text(owner, &["kind"]).to_lowercase(),
                text(owner, &["name"]),
            );
            match text(owner, &["apiVersion"]).split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{name}").into(),
                None => format!("{kind}/{name}").into(),
            }
        }),
        Column::cell_of("Revision", |revision, _| {
            integer(revision, &["revision"]).into()
        }),
        Column::age(),
    ]
}
