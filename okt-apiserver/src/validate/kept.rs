//! Checks that an update of a built-in kind keeps the fields that are immutable.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cluster::SOURCES;
use crate::causes::Causes;
use crate::kind::ServedKind;
use crate::object::{self, at, items, put, text};
use crate::quantity::Quantity;

const RBAC: &str = "rbac.authorization.k8s.io";

const POD_FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const STATEFUL_SET_FIELDS: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const CLAIM_FIELDS: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Checks an update that is not one of the status.
pub(crate) fn check_kept_fields(kind: &ServedKind, old: &Value, new: &Value, causes: &mut Causes) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => check_pod(old, new, causes),
        ("", "PersistentVolumeClaim") => check_claim(old, new, causes),
        ("", "Service") => check_service(old, new, causes),
        ("", "ConfigMap") => check_data(old, new, &["data", "binaryData"], causes),
        ("", "Secret") => {
            check_immutable(old, new, &["type"], causes);
            check_data(old, new, &["data"], causes);
        }
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => check_selector(old, new, causes),
        ("apps", "StatefulSet") => check_stateful_set(old, new, causes),
        ("batch", "Job") => check_job(old, new, causes),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => check_role(old, new, causes),
        ("", "Node") => check_node(old, new, causes),
        ("", "PersistentVolume") => check_volume(old, new, causes),
        ("", "ResourceQuota") => {
            let scopes = |quota: &Value| -> BTreeSet<String> {
                let all = object::texts(quota, &["spec", "scopes"]).into_iter();
                all.map(str::to_owned).collect()
            };
            if scopes(old) != scopes(new) {
                check_immutable(old, new, &["spec", "scopes"], causes);
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            if old["value"] != new["value"] {
                causes.forbidden("value", "may not be changed in an update.");
            }
            check_immutable(old, new, &["preemptionPolicy"], causes);
        }
        ("storage.k8s.io", "StorageClass") => {
            for key in [
                "parameters",
                "provisioner",
                "reclaimPolicy",
                "volumeBindingMode",
            ] {
                check_immutable(old, new, &[key], causes);
            }
        }
        ("node.k8s.io", "RuntimeClass") => check_immutable(old, new, &["handler"], causes),
        ("networking.k8s.io", "IngressClass") => {
            check_immutable(old, new, &["spec", "controller"], causes);
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            check_immutable(old, new, &["addressType"], causes);
        }
        ("apps", "ControllerRevision") => check_immutable(old, new, &["data"], causes),
        _ => {}
    }
}

fn check_node(old: &Value, new: &Value, causes: &mut Causes) {
    let detail = "node updates may not change podCIDR except from \"\" to valid";
    let ranges = |node: &Value| items(node, &["spec", "podCIDRs"]).to_vec();
    let (were, are) = (ranges(old), ranges(new));
    if !were.is_empty() && were.len() != are.len() {
        causes.forbidden("spec.podCIDRs", detail);
    } else {
        for _ in were.iter().zip(&are).filter(|(was, is)| was != is) {
            causes.forbidden("spec.podCIDRs", detail);
        }
    }
    let provider = |node: &Value| text(node, &["spec", "providerID"]).to_owned();
    if !provider(old).is_empty() && provider(old) != provider(new) {
        let detail = "node updates may not change providerID except from \"\" to valid";
        causes.forbidden("spec.providerID", detail);
    }
}

fn check_volume(old: &Value, new: &Value, causes: &mut Causes) {
    let source = |volume: &Value| {
        let mut spec = volume["spec"].clone();
        object::fields(&mut spec).retain(|key, _| SOURCES.split(' ').any(|it| it == key));
        spec
    };
    let (was, mut is) = (source(old), source(new));
    let secret = ["csi", "controllerExpandSecretRef"];
    if at(&was, &secret).is_none() && was.get("csi").is_some() && is.get("csi").is_some() {
        carry(None, &mut is, &secret);
    }
    let detail = "spec.persistentvolumesource is immutable after creation";
    forbid_changes("spec.persistentvolumesource", detail, &was, &is, causes);
    if old["spec"]["volumeMode"] != new["spec"]["volumeMode"] {
        let detail = "field is immutable";
        causes.invalid("volumeMode", &new["spec"]["volumeMode"], detail);
    }
}

/// Checks that a field has the same value as before.
fn check_immutable(old: &Value, new: &Value, path: &[&str], causes: &mut Causes) {
    let (before, after) = (at(old, path), at(new, path));
    if before != after {
        causes.invalid(path.join("."), after, "field is immutable");
    }
}

fn check_pod(old: &Value, new: &Value, causes: &mut Causes) {
    let (before, mut after) = (old["spec"].clone(), new["spec"].clone());
    for key in ["containers", "initContainers"] {
        let field = format!("spec.{key}");
        let (were, are) = (items(&before, &[key]), items(&after, &[key]));
        if were.len() != are.len() {
            causes.forbidden(field, "pod updates may not add or remove containers");
            return;
        }
        for (index, (was, is)) in were.iter().zip(are).enumerate() {
            let (was, is) = (text(was, &["image"]), text(is, &["image"]));
            let field = format!("{field}[{index}].image");
            if is.is_empty() && !was.is_empty() {
                causes.required(field, "");
            } else if is.trim() != is {
                causes.invalid(field, is, "must not have leading or trailing whitespace");
            }
        }
    }
    let field = "spec.activeDeadlineSeconds";
    let deadline = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    match (deadline(&before), deadline(&after)) {
        (_, Some(now)) if !(1..=i64::from(i32::MAX)).contains(&now) => {
            // The spec itself allows no zero.
            if now != 0 {
                causes.invalid(field, now, "must be between 0 and 2147483647, inclusive");
            }
            return;
        }
        (Some(was), Some(now)) if was < now => {
            causes.invalid(field, now, "must be less than or equal to previous value");
            return;
        }
        (Some(_), None) => {
            let detail = "must not update from a positive integer to nil value";
            causes.invalid(field, &Value::Null, detail);
        }
        _ => {}
    }
    check_tolerations(&before, &after, causes);
    check_gates(&before, &after, causes);

    for key in ["containers", "initContainers"] {
        let images: Vec<_> = items(&before, &[key])
            .iter()
            .map(|container| container["image"].clone())
            .collect();
        let containers = after.get_mut(key).and_then(Value::as_array_mut);
        for (container, image) in containers.into_iter().flatten().zip(images) {
            put(container, &["image"], image);
        }
    }
    let mut kept = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    if grace(&before).is_some_and(|seconds| seconds < 0) && grace(&after) == Some(1) {
        kept.push("terminationGracePeriodSeconds");
    }
    for key in kept {
        carry(Some(&before), &mut after, &[key]);
    }
    if !items(&before, &["schedulingGates"]).is_empty() {
        keep_placement(&before, &mut after, causes);
    }
    forbid_changes("spec", POD_FIELDS, &before, &after, causes);
}

/// A gated Pod may get a more precise placement.
fn keep_placement(before: &Value, after: &mut Value, causes: &mut Causes) {
    let (was, is) = (
        before["nodeSelector"].clone(),
        after["nodeSelector"].clone(),
    );
    let is_kept = |(key, value): (&String, &Value)| is.get(key) == Some(value);
    if !was.as_object().into_iter().flatten().all(is_kept) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        causes.invalid("spec.nodeSelector", &is, detail);
    }
    carry(Some(before), after, &["nodeSelector"]);
    carry(Some(before), after, &["affinity", "nodeAffinity"]);
}

fn check_tolerations(before: &Value, after: &Value, causes: &mut Causes) {
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(fields) = toleration.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let now: Vec<_> = items(after, &["tolerations"])
        .iter()
        .map(without_time)
        .collect();
    let mut were = items(before, &["tolerations"]).iter().map(without_time);
    if were.any(|toleration| !now.contains(&toleration)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden("spec.tolerations", detail);
    }
}

fn check_gates(before: &Value, after: &Value, causes: &mut Causes) {
    let were: Vec<_> = items(before, &["schedulingGates"]).iter().collect();
    for (index, gate) in items(after, &["schedulingGates"]).iter().enumerate() {
        if !were.contains(&gate) {
            let name = text(gate, &["name"]);
            causes.forbidden(
                format!("spec.schedulingGates[{index}].name"),
                &format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            );
        }
    }
}

fn amount(quantity: Option<&Value>) -> Option<i128> {
    let parsed = Quantity::parse(quantity?.as_str()?).ok()?;
    Some(parsed.amount)
}

fn check_claim(old: &Value, new: &Value, causes: &mut Causes) {
    const STORAGE: [&str; 3] = ["resources", "requests", "storage"];
    let (before, mut after) = (old["spec"].clone(), new["spec"].clone());
    let asked = |spec: &Value| amount(at(spec, &STORAGE));
    let sizes = (asked(&before), asked(&after));
    let capacity = amount(at(new, &["status", "capacity", "storage"]));
    // A controller sets the volume, and the default class.
    for key in ["volumeName", "storageClassName"] {
        let is_unset = before.get(key).is_none_or(Value::is_null);
        if is_unset || (key == "volumeName" && text(&before, &[key]).is_empty()) {
            carry(None, &mut after, &[key]);
        }
    }
    if text(new, &["status", "phase"]) == "Bound" {
        carry(Some(&before), &mut after, &STORAGE);
        carry(Some(&before), &mut after, &["volumeAttributesClassName"]);
    }
    forbid_changes("spec", CLAIM_FIELDS, &before, &after, causes);
    if let (Some(was), Some(is)) = sizes
        && is < was
        && is <= capacity.unwrap_or(0)
    {
        let field = "spec.resources.requests.storage";
        causes.forbidden(field, "field can not be less than status.capacity");
    }
    let mode = |object: &Value| object["spec"]["volumeMode"].clone();
    if mode(old) != mode(new) {
        let detail = "field is immutable";
        causes.invalid("volumeMode", &new["spec"]["volumeMode"], detail);
    }
}

/// Checks that a Service keeps its address. A real server has allocated one, even if this one has not.
fn check_service(old: &Value, new: &Value, causes: &mut Causes) {
    let is_outside = |service: &Value| text(service, &["spec", "type"]) == "ExternalName";
    let address = |service: &Value| text(service, &["spec", "clusterIP"]).to_owned();
    let (was, is) = (address(old), address(new));
    if !is.is_empty() && is != was && !is_outside(old) && !is_outside(new) {
        let detail = "may not change once set";
        causes.invalid("spec.clusterIPs[0]", json!([is]), detail);
    }
}

/// Checks the data of a `ConfigMap` or Secret that is immutable.
fn check_data(old: &Value, new: &Value, parts: &[&str], causes: &mut Causes) {
    let is_immutable = |object: &Value| object["immutable"] == true;
    if !is_immutable(old) {
        return;
    }
    let mut forbid = |field: &str| {
        causes.forbidden(field, "field is immutable when `immutable` is set");
    };
    if !is_immutable(new) {
        forbid("immutable");
    }
    for part in parts {
        if old.get(part) != new.get(part) {
            forbid(part);
        }
    }
}

fn check_selector(old: &Value, new: &Value, causes: &mut Causes) {
    // A real server stores no such object without a selector.
    if old["spec"]["selector"].is_object() {
        check_immutable(old, new, &["spec", "selector"], causes);
    }
}

fn check_stateful_set(old: &Value, new: &Value, causes: &mut Causes) {
    let rest = |set: &Value| {
        let mut spec = set["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|key, _| {
                !matches!(
                    key.as_str(),
                    "replicas"
                        | "ordinals"
                        | "template"
                        | "updateStrategy"
                        | "revisionHistoryLimit"
                        | "persistentVolumeClaimRetentionPolicy"
                        | "minReadySeconds"
                )
            });
        }
        let claims = spec.get_mut("volumeClaimTemplates");
        for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
            // The server sets the phase.
            put(claim, &["status"], Value::Null);
        }
        spec
    };
    if rest(old) != rest(new) {
        causes.forbidden("spec", STATEFUL_SET_FIELDS);
    }
}

fn check_job(old: &Value, new: &Value, causes: &mut Causes) {
    let number = |key: &str| new["spec"][key].as_i64();
    if text(new, &["spec", "completionMode"]) != "Indexed" {
        check_completions(old, new, causes);
    } else if let Some(completions) = number("completions")
        && old["spec"]["completions"] != completions
        && completions != number("parallelism").unwrap_or(1)
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        causes.invalid("spec.completions", completions, detail);
    }
    // A real server has generated a selector, which an empty patch does not change.
    if new["spec"]["selector"] != json!({}) {
        check_immutable(old, new, &["spec", "selector"], causes);
    }
    check_job_template(old, new, causes);
    let is_indexed = |job: &Value| text(job, &["spec", "completionMode"]) == "Indexed";
    if is_indexed(old) != is_indexed(new) {
        let mode = if is_indexed(new) {
            "Indexed"
        } else {
            "NonIndexed"
        };
        causes.invalid("spec.completionMode", mode, "field is immutable");
    }
    for key in [
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        check_immutable(old, new, &["spec", key], causes);
    }
}

/// Checks the completions of a Job that is not indexed. Their default is 1, unless the parallelism is set.
fn check_completions(old: &Value, new: &Value, causes: &mut Causes) {
    let completions = |job: &Value| match (&job["spec"]["completions"], &job["spec"]["parallelism"])
    {
        (Value::Null, Value::Null) => 1.into(),
        (completions, _) => completions.clone(),
    };
    // A real server has stored the default, which a change of the parallelism alone keeps.
    let was = completions(old);
    let is_unset = new["spec"]["completions"].is_null();
    if was != completions(new) && !(is_unset && at(old, &["spec", "completions"]).is_none()) {
        causes.invalid("spec.completions", completions(new), "field is immutable");
    }
}

/// Checks the template of a Job, of which a suspended Job may change the placement and the resources of its Pods.
fn check_job_template(old: &Value, new: &Value, causes: &mut Causes) {
    let (mut before, after) = (old["spec"]["template"].clone(), &new["spec"]["template"]);
    let is_suspended = old["spec"]["suspend"] == true
        && object::is_condition_true(old, "Suspended")
        && at(old, &["status", "active"]).is_none_or(|active| *active == 0);
    if is_suspended {
        for path in [
            &["metadata", "annotations"][..],
            &["metadata", "labels"],
            &["spec", "affinity", "nodeAffinity"],
            &["spec", "nodeSelector"],
            &["spec", "schedulingGates"],
            &["spec", "tolerations"],
        ] {
            carry(Some(after), &mut before, path);
        }
        for key in ["containers", "initContainers"] {
            let found = before.pointer_mut(&format!("/spec/{key}"));
            let containers = found.and_then(Value::as_array_mut);
            let others = items(after, &["spec", key]);
            for (container, other) in containers.into_iter().flatten().zip(others) {
                if container.get("name") == other.get("name") {
                    let resources = other["resources"].clone();
                    put(container, &["resources"], resources);
                }
            }
        }
    }
    if before != *after {
        let (field, shown) = if is_suspended {
            ("spec.template.spec", &after["spec"])
        } else {
            ("spec.template", after)
        };
        causes.invalid(field, shown, "field is immutable");
    }
}

fn check_role(old: &Value, new: &Value, causes: &mut Causes) {
    let role = |binding: &Value| {
        let of = |key| text(binding, &["roleRef", key]).to_owned();
        let group = Some(of("apiGroup")).filter(|group| !group.is_empty());
        json!({ "APIGroup": group.as_deref().unwrap_or(RBAC), "Kind": of("kind"), "Name": of("name") })
    };
    if role(old) != role(new) {
        causes.invalid("roleRef", role(new), "cannot change roleRef");
    }
}

/// Adds an error that lists the fields in which two plain specs differ, if any.
fn forbid_changes(field: &str, detail: &str, before: &Value, after: &Value, causes: &mut Causes) {
    let mut lines = Vec::new();
    compare(Some(before), Some(after), "spec", &mut lines);
    if !lines.is_empty() {
        let detail = format!("{detail}\n{}\n", lines.join("\n"));
        causes.forbidden(field, &detail);
    }
}

/// Lists the fields that differ; a real server prints the difference of its own types instead.
fn compare(before: Option<&Value>, after: Option<&Value>, path: &str, lines: &mut Vec<String>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                let path = format!("{path}.{key}");
                compare(before.get(key), after.get(key), &path, lines);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                let path = format!("{path}[{index}]");
                compare(Some(before), Some(after), &path, lines);
            }
        }
        (before, after) if before != after => {
            for (sign, value) in [("-", before), ("+", after)] {
                lines.extend(value.map(|value| format!("{sign} {path}: {value}")));
            }
        }
        _ => {}
    }
}

/// Copies a field to another object, or removes it there if there is none.
fn carry(from: Option<&Value>, to: &mut Value, path: &[&str]) {
    let [key, rest @ ..] = path else { return };
    let below = from.and_then(|from| from.get(key));
    if rest.is_empty() || (below.is_none() && to.get(key).is_none()) {
        object::set(object::fields(to), key, below.cloned());
        return;
    }
    let next = object::fields(to).entry(*key).or_insert(Value::Null);
    carry(below, next, rest);
    if below.is_none() && *next == json!({}) {
        object::fields(to).remove(*key);
    }
}
