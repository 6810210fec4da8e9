//! Finds the fields of built-in objects that Kubernetes does not have, by the types of k8s-openapi: what they do
//! not take is unknown.

use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, batch::v1 as batch,
    coordination::v1 as coordination, core::v1 as core, events::v1 as events,
    networking::v1 as networking, policy::v1 as policy, rbac::v1 as rbac,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Returns an object as a type of k8s-openapi has it; none if a value has a wrong type.
type Through = fn(&Value) -> Option<Value>;

fn through<T: Serialize + DeserializeOwned>(object: &Value) -> Option<Value> {
    let typed = T::deserialize(object).ok()?;
    serde_json::to_value(typed).ok()
}

/// Returns the type of a kind; none for kinds that are checked otherwise.
fn type_of(group: &str, kind: &str) -> Option<Through> {
    let found: Through = match (group, kind) {
        ("", "Namespace") => through::<core::Namespace>,
        ("", "ConfigMap") => through::<core::ConfigMap>,
        ("", "Secret") => through::<core::Secret>,
        ("", "Service") => through::<core::Service>,
        ("", "ServiceAccount") => through::<core::ServiceAccount>,
        ("", "Pod") => through::<core::Pod>,
        ("", "PersistentVolumeClaim") => through::<core::PersistentVolumeClaim>,
        ("", "PersistentVolume") => through::<core::PersistentVolume>,
        ("", "ReplicationController") => through::<core::ReplicationController>,
        ("", "Endpoints") => through::<core::Endpoints>,
        ("", "ResourceQuota") => through::<core::ResourceQuota>,
        ("", "LimitRange") => through::<core::LimitRange>,
        ("", "Event") => through::<core::Event>,
        ("events.k8s.io", "Event") => through::<events::Event>,
        ("coordination.k8s.io", "Lease") => through::<coordination::Lease>,
        ("apps", "Deployment") => through::<apps::Deployment>,
        ("apps", "StatefulSet") => through::<apps::StatefulSet>,
        ("apps", "ReplicaSet") => through::<apps::ReplicaSet>,
        ("apps", "DaemonSet") => through::<apps::DaemonSet>,
        ("batch", "Job") => through::<batch::Job>,
        ("batch", "CronJob") => through::<batch::CronJob>,
        ("networking.k8s.io", "Ingress") => through::<networking::Ingress>,
        ("policy", "PodDisruptionBudget") => through::<policy::PodDisruptionBudget>,
        ("rbac.authorization.k8s.io", "Role") => through::<rbac::Role>,
        ("rbac.authorization.k8s.io", "RoleBinding") => through::<rbac::RoleBinding>,
        ("rbac.authorization.k8s.io", "ClusterRole") => through::<rbac::ClusterRole>,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => through::<rbac::ClusterRoleBinding>,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            through::<admission::ValidatingWebhookConfiguration>
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            through::<admission::MutatingWebhookConfiguration>
        }
        _ => return None,
    };
    Some(found)
}

/// Removes the fields that the kind does not have, outside of the metadata; returns their paths.
pub(crate) fn drop_unknown((group, kind): (&str, &str), object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let known = type_of(group, kind).and_then(|through| through(object));
    if let (Some(known), Some(fields)) = (known, object.as_object_mut()) {
        for_map(fields, &known, "", &mut unknown);
    }
    unknown
}

fn for_map(fields: &mut Map<String, Value>, known: &Value, path: &str, unknown: &mut Vec<String>) {
    fields.retain(|name, value| {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match known.get(name) {
            // A null is no value; the metadata has a schema of its own.
            _ if value.is_null() || path == "metadata" => true,
            Some(known) => {
                for_value(value, known, &path, unknown);
                true
            }
            None => {
                unknown.push(path);
                false
            }
        }
    });
}

fn for_value(value: &mut Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (value, known) {
        (Value::Object(fields), Value::Object(_)) => for_map(fields, known, path, unknown),
        (Value::Array(items), Value::Array(known)) => {
            for (index, (item, known)) in items.iter_mut().zip(known).enumerate() {
                for_value(item, known, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
