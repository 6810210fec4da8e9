//! Removes the defaults and the empty fields from parts of built-in kinds.
//!
//! A real server stores objects with their defaults, and this one without: two parts that a real server stores equally
//! are equal in their plain form.

use serde_json::{Map, Value};

use super::quantity;

const TEXTS: &[(&str, &str)] = &[
    ("apiVersion", "v1"),
    ("completionMode", "NonIndexed"),
    ("divisor", "0"),
    ("dnsPolicy", "ClusterFirst"),
    ("kind", "PersistentVolumeClaim"),
    ("path", "/"),
    ("podManagementPolicy", "OrderedReady"),
    ("protocol", "TCP"),
    ("schedulerName", "default-scheduler"),
    ("scheme", "HTTP"),
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("volumeMode", "Filesystem"),
];
const NUMBERS: &[(&str, i64)] = &[
    ("defaultMode", 420),
    ("failureThreshold", 3),
    ("hostPort", 0),
    ("initialDelaySeconds", 0),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("terminationGracePeriodSeconds", 30),
    ("timeoutSeconds", 1),
];
/// The flags of which a server does not distinguish `false` from nothing.
const FLAGS: &[&str] = &[
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
];
/// The maps and structs of which a server does not distinguish an empty one from none.
const MAPS: &[&str] = &[
    "annotations",
    "emptyDir",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "overhead",
    "requests",
    "resources",
];

/// Returns the plain form of a part of an object (e.g. of the spec of a Pod).
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(key, value)| !is_default(key, value));
            let plain_fields = set.map(|(key, value)| {
                let value = match key.as_str() {
                    "limits" | "requests" | "overhead" => plain_quantities(value),
                    _ => plain(value),
                };
                (key.clone(), value)
            });
            let mut fields: Map<_, _> = plain_fields.collect();
            drop_dependent(&mut fields);
            fields.retain(|key, value| match value {
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty() || !MAPS.contains(&key.as_str()),
                _ => true,
            });
            fields.into()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// Returns the plain form of the spec of a Pod, which has more defaults than that of a template.
pub(super) fn plain_pod(spec: &Value) -> Value {
    let mut spec = plain(spec);
    let Some(fields) = spec.as_object_mut() else {
        return spec;
    };
    fields.retain(|key, value| match key.as_str() {
        "enableServiceLinks" => *value != true,
        "preemptionPolicy" => *value != "PreemptLowerPriority",
        "priority" => *value != 0,
        _ => true,
    });
    for key in ["containers", "initContainers"] {
        let containers = fields.get_mut(key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            drop_limited_requests(container);
        }
    }
    spec
}

/// Removes the requests that equal their limits, which is their default.
fn drop_limited_requests(container: &mut Value) {
    let Some(resources) = container
        .get_mut("resources")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let limits = resources.get("limits").cloned().unwrap_or_default();
    let requests = resources.get_mut("requests").and_then(Value::as_object_mut);
    if let Some(requests) = requests {
        requests.retain(|key, value| limits.get(key) != Some(value));
        if requests.is_empty() {
            resources.remove("requests");
        }
    }
}

fn is_default(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value && FLAGS.contains(&key),
        Value::Number(value) => value
            .as_i64()
            .is_some_and(|value| NUMBERS.contains(&(key, value))),
        // An empty class differs from a missing one.
        Value::String(text) if text.is_empty() => key != "storageClassName",
        Value::String(text) => TEXTS.contains(&(key, text)),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn plain_quantities(quantities: &Value) -> Value {
    let Some(quantities) = quantities.as_object() else {
        return quantities.clone();
    };
    let plain = quantities.iter().map(|(key, value)| {
        let parsed = quantity::parse(value).map(|parsed| parsed.to_string().into());
        (key.clone(), parsed.unwrap_or_else(|| value.clone()))
    });
    plain.collect::<Map<_, _>>().into()
}

/// Removes the defaults that depend on other fields.
fn drop_dependent(fields: &mut Map<String, Value>) {
    if fields.contains_key("containers") {
        if fields.get("restartPolicy") == Some(&"Always".into()) {
            fields.remove("restartPolicy");
        }
        let context = fields.get("securityContext");
        if context.is_some_and(|context| context.as_object().is_some_and(Map::is_empty)) {
            fields.remove("securityContext");
        }
        // The old name of the field.
        if let Some(account) = fields.remove("serviceAccount") {
            fields.entry("serviceAccountName").or_insert(account);
        }
    }
    if let Some(Value::String(image)) = fields.get("image")
        && fields.get("imagePullPolicy") == Some(&pull_policy(image).into())
    {
        fields.remove("imagePullPolicy");
    }
}

fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_latest = name.ends_with(":latest") || !name.contains([':', '@']);
    if is_latest { "Always" } else { "IfNotPresent" }
}
