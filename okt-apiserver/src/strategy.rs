//! What Kubernetes sets in objects of its own kinds when they are created and updated: the strategies of the registry,
//! and the admission plugins that are on by default.

mod service;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub(crate) use self::service::{allocate, service_of_api};
use crate::kind::{KindId, ServedKind};
use crate::object::{self, at, items, put, text};
use crate::quantity::Quantity;
use crate::refusal::Refusal;
use crate::store::{Key, Store};
use crate::subresource::Subresource;

/// Counts the templates of a `DaemonSet`, for old clients.
const TEMPLATE_GENERATION: [&str; 3] = [
    "metadata",
    "annotations",
    "deprecated.daemonset.template.generation",
];

/// Removes the fields that are not stored.
pub(crate) fn prepare(kind: &str, object: &mut Value) {
    if kind == "Namespace" && !object::name(object).is_empty() {
        let name = object::name(object).to_owned();
        put(object, &["metadata", "labels", NAME_LABEL], name.into());
    }
    if kind == "Pod" {
        // The first address stands in both fields; the older one counts.
        let address = text(object, &["status", "podIP"]).to_owned();
        let first = items(object, &["status", "podIPs"]).first();
        let first = first.map_or("", |it| text(it, &["ip"])).to_owned();
        if address.is_empty() && !first.is_empty() {
            put(object, &["status", "podIP"], first.into());
        } else if address != first {
            put(object, &["status", "podIPs"], json!([{ "ip": address }]));
        }
    }
    if kind == "Node" {
        // The first range stands in both fields; the older one counts.
        let range = text(object, &["spec", "podCIDR"]).to_owned();
        let first = items(object, &["spec", "podCIDRs"]).first();
        let first = first.and_then(Value::as_str).unwrap_or_default().to_owned();
        if range.is_empty() && !first.is_empty() {
            put(object, &["spec", "podCIDR"], first.into());
        } else if range != first {
            put(object, &["spec", "podCIDRs"], json!([range]));
        }
    }
    if kind == "ServiceAccount" {
        // Only the name of a secret is kept.
        let secrets = object.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten() {
            object::fields(secret).retain(|key, _| key == "name");
        }
    }
}

/// Gives both fields of a claim that name its source the same content; the older one knows claims and snapshots only, and
/// the newer one no other namespace.
fn join_sources(old: Option<&Value>, spec: &mut Map<String, Value>) {
    const OLDER: [(&str, &str); 2] = [
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    ];
    let of_old = |key: &str| old.and_then(|old| at(old, &["spec", key]));
    let is_elsewhere = |source: &Value| !text(source, &["namespace"]).is_empty();
    if spec.get("dataSourceRef").is_some_and(is_elsewhere)
        && !of_old("dataSourceRef").is_some_and(is_elsewhere)
    {
        spec.remove("dataSourceRef");
    }
    let had_one = of_old("dataSource").or(of_old("dataSourceRef")).is_some();
    let is_older =
        |source: &Value| OLDER.contains(&(text(source, &["apiGroup"]), text(source, &["kind"])));
    match (
        spec.get("dataSource").cloned(),
        spec.get("dataSourceRef").cloned(),
    ) {
        (Some(source), None) if !had_one && !is_older(&source) => {
            spec.remove("dataSource");
        }
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut reference)) if !is_elsewhere(&reference) => {
            object::set(object::fields(&mut reference), "namespace", None);
            spec.insert("dataSource".to_owned(), reference);
        }
        _ => {}
    }
}

/// The label with the name of a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Completes a new object, which has its uid.
pub(crate) fn complete_new(
    store: &Store,
    kind: &ServedKind,
    object: &mut Value,
) -> Result<(), Refusal> {
    if let Some(finalizer) = protection(kind) {
        let mut finalizers = object::finalizers(object);
        if !finalizers.contains(&finalizer) {
            finalizers.push(finalizer);
            let finalizers = json!(finalizers);
            object::metadata(object).insert("finalizers".to_owned(), finalizers);
        }
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => {
            put(object, &["spec", "finalizers"], json!(["kubernetes"]));
            put(object, &["status", "phase"], "Active".into());
            let name = object::name(object).to_owned();
            put(object, &["metadata", "labels", NAME_LABEL], name.into());
        }
        ("", "Pod") => {
            prioritize(store, kind, object)?;
            check_runtime_class(store, kind, object)?;
            tolerate(object);
            let class = quality(&object["spec"]);
            object["status"] = json!({ "phase": "Pending", "qosClass": class });
            if !items(object, &["spec", "schedulingGates"]).is_empty() {
                object["status"]["conditions"] = json!([{
                    "type": "PodScheduled", "status": "False", "lastProbeTime": null,
                    "lastTransitionTime": null, "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }]);
            }
        }
        ("", "Service") => allocate(store, kind, object)?,
        ("", "PersistentVolumeClaim") => join_sources(None, object::fields(&mut object["spec"])),
        ("", "PersistentVolume") => {
            let now = store.clock.text();
            put(object, &["status", "lastPhaseTransitionTime"], now.into());
        }
        ("", "Node") => complete_node(object),
        ("apps", "DaemonSet") => put(object, &TEMPLATE_GENERATION, "1".into()),
        ("batch", "Job") => select_own_pods(object),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            put(object, &["spec", "username"], "admin".into());
            put(
                object,
                &["spec", "groups"],
                json!(["system:masters", "system:authenticated"]),
            );
        }
        _ => {}
    }
    Ok(())
}

/// Returns the finalizer that keeps a claim or a volume while it is used.
pub(crate) fn protection(kind: &ServedKind) -> Option<&'static str> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim") => Some("kubernetes.io/pvc-protection"),
        ("", "PersistentVolume") => Some("kubernetes.io/pv-protection"),
        _ => None,
    }
}

/// Keeps the values of the server in an update that does not repeat them.
pub(crate) fn keep(kind: &ServedKind, old: &Value, new: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => {
            for key in ["priority", "preemptionPolicy"] {
                let path = ["spec", key];
                if let (None, Some(value)) = (at(new, &path), at(old, &path)) {
                    put(new, &path, value.clone());
                }
            }
            tolerate(new);
        }
        ("", "Service") => service::keep(old, new),
        ("", "PersistentVolumeClaim") => join_sources(Some(old), object::fields(&mut new["spec"])),
        ("apps", "DaemonSet") => {
            let before = text(old, &TEMPLATE_GENERATION).parse::<u64>().unwrap_or(0);
            let is_changed = at(old, &["spec", "template"]) != at(new, &["spec", "template"]);
            let now = before + u64::from(is_changed);
            put(new, &TEMPLATE_GENERATION, now.to_string().into());
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            object::set(object::fields(new), "spec", old.get("spec").cloned());
        }
        ("batch", "Job") => {
            for path in [
                &["spec", "selector"][..],
                &["spec", "template", "metadata", "labels"],
            ] {
                if let (None, Some(value)) = (at(new, path), at(old, path)) {
                    put(new, path, value.clone());
                }
            }
        }
        _ => {}
    }
}

/// Keeps the values of the server in a status that does not repeat them.
pub(crate) fn keep_in_status(
    kind: &ServedKind,
    endpoint: Subresource,
    old: &Value,
    new: &mut Value,
) {
    match kind.kind.as_str() {
        "Pod" => keep_of_pod(old, new),
        "CertificateSigningRequest" if endpoint == Subresource::Approval => {
            let certificate = at(old, &["status", "certificate"]).cloned();
            object::set(
                object::fields(&mut new["status"]),
                "certificate",
                certificate,
            );
        }
        "CertificateSigningRequest" => keep_approvals(old, new),
        _ => {}
    }
}

/// Keeps the class of a Pod, and the generations that its status does not repeat.
fn keep_of_pod(old: &Value, new: &mut Value) {
    for (key, empty) in [("qosClass", json!("")), ("observedGeneration", json!(0))] {
        let path = ["status", key];
        if at(new, &path).is_none_or(|value| *value == empty)
            && let Some(value) = at(old, &path)
        {
            put(new, &path, value.clone());
        }
    }
    let mut before = items(old, &["status", "conditions"]).to_vec();
    for condition in conditions(new) {
        let same = before.iter().position(|it| it["type"] == condition["type"]);
        let same = same.map(|at| before.remove(at));
        if condition["observedGeneration"].as_i64().unwrap_or(0) == 0
            && let Some(generation) = same.and_then(|it| it.get("observedGeneration").cloned())
        {
            condition["observedGeneration"] = generation;
        }
    }
}

/// Keeps the approvals and denials of a request for a certificate, unless their number differs, which is refused later.
fn keep_approvals(old: &Value, new: &mut Value) {
    for kind in ["Approved", "Denied"] {
        let before = items(old, &["status", "conditions"]).iter();
        let before: Vec<_> = before.filter(|it| it["type"] == kind).collect();
        let now: Vec<_> = conditions(new).filter(|it| it["type"] == kind).collect();
        if before.len() == now.len() {
            before
                .into_iter()
                .zip(now)
                .for_each(|(before, now)| now.clone_from(before));
        }
    }
}

fn conditions(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let conditions = object.pointer_mut("/status/conditions");
    conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// Dates the new conditions of a request for a certificate.
pub(crate) fn date_conditions(kind: &ServedKind, old: &Value, new: &mut Value, now: &str) {
    if kind.kind != "CertificateSigningRequest" {
        return;
    }
    for condition in conditions(new) {
        let mut before = items(old, &["status", "conditions"]).iter();
        let same = before
            .find(|it| it["type"] == condition["type"] && it["status"] == condition["status"]);
        let since = same.map_or("", |it| text(it, &["lastTransitionTime"]));
        let since = if since.is_empty() { now } else { since };
        for (key, time) in [("lastUpdateTime", now), ("lastTransitionTime", since)] {
            if condition[key].is_null() {
                condition[key] = time.into();
            }
        }
    }
}

/// Marks a new node as not ready, as the plugin `TaintNodesByCondition` does.
fn complete_node(node: &mut Value) {
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let mut taints = items(node, &["spec", "taints"]).to_vec();
    if !taints.contains(&taint) {
        taints.push(taint);
    }
    let spec = object::fields(&mut node["spec"]);
    spec.insert("taints".to_owned(), taints.into());
}

/// Refuses a Pod whose class of runtime does not exist, as the admission plugin of this name does.
fn check_runtime_class(store: &Store, kind: &ServedKind, pod: &Value) -> Result<(), Refusal> {
    let class = text(pod, &["spec", "runtimeClassName"]);
    let classes = KindId::new("node.k8s.io", "runtimeclasses");
    if class.is_empty() || store.get(&classes, &Key::new("", class)).is_some() {
        return Ok(());
    }
    let why = format!("pod rejected: RuntimeClass \"{class}\" not found");
    Err(Refusal::forbidden(kind.subject(object::name(pod)), &why))
}

/// Sets the priority of a Pod, as the admission plugin of this name does: it refuses another one.
fn prioritize(store: &Store, kind: &ServedKind, pod: &mut Value) -> Result<(), Refusal> {
    let mut name = text(pod, &["spec", "priorityClassName"]).to_owned();
    if name.is_empty() {
        name = default_class(store).unwrap_or_default();
    }
    let class = match name.as_str() {
        "" => json!({ "value": 0 }),
        "system-cluster-critical" => json!({ "value": 2_000_000_000 }),
        "system-node-critical" => json!({ "value": 2_000_001_000 }),
        name => {
            let classes = KindId::new("scheduling.k8s.io", "priorityclasses");
            let found = store.get(&classes, &Key::new("", name));
            let why = format!("no PriorityClass with name {name} was found");
            found
                .ok_or_else(|| Refusal::forbidden(kind.subject(object::name(pod)), &why))?
                .read()
        }
    };
    let policy = class["preemptionPolicy"].as_str();
    let policy = policy.unwrap_or("PreemptLowerPriority");
    let (priority, given) = (&class["value"], &pod["spec"]);
    let computed = "must not be provided in pod spec; priority admission controller computed";
    let why = match (&given["priority"], &given["preemptionPolicy"]) {
        (own, _) if !own.is_null() && own != priority => {
            format!("the integer value of priority ({own}) {computed} {priority}")
        }
        (_, Value::String(own)) if own != policy => {
            format!("the string value of PreemptionPolicy ({own}) {computed} {policy}")
        }
        _ => String::new(),
    };
    if !why.is_empty() {
        let why = format!("{why} from the given PriorityClass name");
        return Err(Refusal::forbidden(kind.subject(object::name(pod)), &why));
    }
    let spec = object::fields(&mut pod["spec"]);
    object::set(
        spec,
        "priorityClassName",
        (!name.is_empty()).then(|| name.into()),
    );
    spec.insert("priority".to_owned(), priority.clone());
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    Ok(())
}

/// Returns the name of the class of Pods that name none.
fn default_class(store: &Store) -> Option<String> {
    let id = KindId::new("scheduling.k8s.io", "priorityclasses");
    let classes = store.list(&id, None);
    let classes = classes.map(|(_, class)| class.read());
    let defaults = classes.filter(|class| class["globalDefault"] == true);
    let class = defaults.min_by_key(|class| class["value"].as_i64())?;
    Some(object::name(&class).to_owned())
}

/// Lets a Pod stay for five minutes on a node that fails, as the plugin `DefaultTolerationSeconds` does.
fn tolerate(pod: &mut Value) {
    let mut tolerations = items(pod, &["spec", "tolerations"]).to_vec();
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            matches!(
                text(toleration, &["key"]),
                "" | "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable"
            ) && (text(toleration, &["key"]).is_empty() || text(toleration, &["key"]) == key)
                && matches!(text(toleration, &["effect"]), "" | "NoExecute")
        });
        if !is_tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    object::fields(&mut pod["spec"]).insert("tolerations".to_owned(), tolerations.into());
}

/// Returns the quality of service of a Pod: by its own resources if it has some, and by those of its containers otherwise.
pub(crate) fn quality(spec: &Value) -> &'static str {
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut is_limited = true;
    let mut add = |resources: &Value| {
        let sums = [("requests", &mut requests), ("limits", &mut limits)];
        for (list, sum) in sums {
            let mut found = 0;
            for name in ["cpu", "memory"] {
                let amount = Quantity::parse(text(resources, &[list, name]));
                let amount = amount.map_or(0, |quantity| quantity.amount);
                if amount > 0 {
                    found += 1;
                    *sum.entry(name).or_insert(0_i128) += amount;
                }
            }
            is_limited &= list == "requests" || found == 2;
        }
    };
    if let Some(resources) = at(spec, &["resources"]) {
        add(resources);
    } else {
        for list in ["containers", "initContainers"] {
            for container in items(spec, &[list]) {
                add(&container["resources"]);
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if is_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Lets a Job select the Pods that have its uid.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let template = ["spec", "template", "metadata", "labels"];
    // In Go both are the same map if the labels are the defaults.
    let are_shared = at(job, &["metadata", "labels"]) == at(job, &template);
    let (uid, name) = (object::uid(job).to_owned(), object::name(job).to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    for (label, value) in labels {
        put(
            job,
            &["spec", "template", "metadata", "labels", label],
            value.as_str().into(),
        );
    }
    if are_shared && let Some(labels) = at(job, &template).cloned() {
        put(job, &["metadata", "labels"], labels);
    }
    let label = "batch.kubernetes.io/controller-uid";
    put(job, &["spec", "selector", "matchLabels", label], uid.into());
}
