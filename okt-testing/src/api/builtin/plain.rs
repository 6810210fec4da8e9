//! This file removes the defaults and the empty fields from parts of built-in kinds.
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
    ("preemptionPolicy", "PreemptLowerPriority"),
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
    ("priority", 0),
    ("successThreshold", 1),
    ("terminationGracePeriodSeconds", 30),
    ("timeoutSeconds", 1),
];
const FLAGS: &[(&str, bool)] = &[
    ("enableServiceLinks", true),
    ("hostIPC", false),
    ("hostNetwork", false),
    ("hostPID", false),
    ("readOnly", false),
    ("stdin", false),
    ("stdinOnce", false),
    ("tty", false),
];

/// Returns the plain form of a part of an object (e.g. of the spec of a Pod).
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, value)| !is_default(key, value));
            let fields = fields.map(|(key, value)| {
                let value = match key.as_str() {
                    "limits" | "requests" | "overhead" => plain_quantities(value),
                    _ => plain(value),
                };
                (key.clone(), value)
            });
            let mut fields: Map<_, _> = fields.collect();
            drop_dependent(&mut fields);
            fields.retain(|_, value| !is_empty(value));
            fields.into()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn is_default(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => FLAGS.contains(&(key, *value)),
        Value::Number(value) => value
            .as_i64()
            .is_some_and(|value| NUMBERS.contains(&(key, value))),
        // An empty class differs from a missing one.
        Value::String(text) if text.is_empty() => key != "storageClassName",
        Value::String(text) => TEXTS.contains(&(key, text)),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
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
    // A request defaults to its limit.
    if let Some(Value::Object(limits)) = fields.get("limits").cloned()
        && let Some(Value::Object(requests)) = fields.get_mut("requests")
    {
        requests.retain(|key, value| limits.get(key) != Some(value));
    }
}

fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_latest = name.ends_with(":latest") || !name.contains([':', '@']);
    if is_latest { "Always" } else { "IfNotPresent" }
}
