//! Finds numbers that a server cannot read as integers (e.g. `1.0`).

use serde_json::Value;

/// The integers that clients set, by their field.
const FIELDS: &[(&str, &str)] = &[
    ("activeDeadlineSeconds", "int64"),
    ("backoffLimit", "int32"),
    ("completions", "int32"),
    ("containerPort", "int32"),
    ("count", "int32"),
    ("failedJobsHistoryLimit", "int32"),
    ("failureThreshold", "int32"),
    ("generation", "int64"),
    ("hostPort", "int32"),
    ("initialDelaySeconds", "int32"),
    ("leaseDurationSeconds", "int32"),
    ("leaseTransitions", "int32"),
    ("minReadySeconds", "int32"),
    ("nodePort", "int32"),
    ("observedGeneration", "int64"),
    ("parallelism", "int32"),
    ("periodSeconds", "int32"),
    ("port", "int32"),
    ("priority", "int32"),
    ("progressDeadlineSeconds", "int32"),
    ("readyReplicas", "int32"),
    ("replicas", "int32"),
    ("revisionHistoryLimit", "int32"),
    ("startingDeadlineSeconds", "int64"),
    ("successThreshold", "int32"),
    ("successfulJobsHistoryLimit", "int32"),
    ("terminationGracePeriodSeconds", "int64"),
    ("timeoutSeconds", "int32"),
    ("ttlSecondsAfterFinished", "int32"),
];

/// Returns the error of a server for the first field with such a number, if any.
pub(crate) fn check_integers(kind: &str, object: &Value) -> Option<String> {
    find(kind, object, &mut Vec::new())
}

fn find<'v>(kind: &str, value: &'v Value, path: &mut Vec<&'v str>) -> Option<String> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let owner = owner(kind, path);
            path.push(key);
            let found = match (value, owner) {
                (Value::Number(number), Some(owner)) if number.is_f64() => {
                    let field = FIELDS.iter().find(|(name, _)| name == key);
                    field.map(|(_, integer)| {
                        let path = path.join(".");
                        format!("json: cannot unmarshal number {number} into Go struct field {owner}.{path} of type {integer}")
                    })
                }
                _ => find(kind, value, path),
            };
            path.pop();
            found
        }),
        Value::Array(items) => items.iter().find_map(|item| find(kind, item, path)),
        _ => None,
    }
}

/// Returns the Go type that has the fields at a path; `None` if it is none of those that clients set most.
fn owner(kind: &str, path: &[&str]) -> Option<String> {
    Some(match path {
        [] => kind.to_owned(),
        ["metadata"] => "ObjectMeta".to_owned(),
        ["spec"] => format!("{kind}Spec"),
        ["status"] => format!("{kind}Status"),
        ["spec", "jobTemplate", "spec"] => "JobSpec".to_owned(),
        [.., "template", "spec"] => "PodSpec".to_owned(),
        [.., "containers" | "initContainers", "ports"] => "ContainerPort".to_owned(),
        ["spec", "ports"] if kind == "Service" => "ServicePort".to_owned(),
        [.., "livenessProbe" | "readinessProbe" | "startupProbe"] => "Probe".to_owned(),
        _ => return None,
    })
}
