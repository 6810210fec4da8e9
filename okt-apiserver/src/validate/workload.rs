//! Deployments and the other kinds that have a template of Pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::part::CheckedPart;
use super::{pod, small};
use crate::causes::Causes;

/// Adds the error of a template whose labels its selector does not select.
pub(super) fn no_match(labels: &CheckedPart<'_>, causes: &mut Causes) {
    let none = json!({});
    let shown = if labels.is_set() { labels.value } else { &none };
    let detail = "`selector` does not match template `labels`";
    causes.invalid(&*labels.path, shown, detail);
}

pub(super) fn deployment(spec: &CheckedPart<'_>, causes: &mut Causes) {
    spec.field("replicas").not_negative(causes);
    selected_template(spec, "deployment", "invalid label selector", causes);
    always_restarted(spec, "ReplicaSet", causes);
    let strategy = spec.field("strategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" if rolling.is_set() => {
            rolling.forbid(
                "may not be specified when strategy `type` is 'Recreate'",
                causes,
            );
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
            unavailable.amount_or_percent(causes);
            surge.amount_or_percent(causes);
            if unavailable.amount() == 0 && surge.amount() == 0 {
                unavailable.invalid("may not be 0 when `maxSurge` is 0", causes);
            }
            unavailable.at_most_all(causes);
        }
        kind => {
            let shown = shown_strategy(kind, &rolling);
            causes.unsupported_as(&*strategy.path, &shown, &["Recreate", "RollingUpdate"]);
        }
    }
    let ready = spec.field("minReadySeconds");
    ready.not_negative(causes);
    spec.field("revisionHistoryLimit").not_negative(causes);
    let deadline = spec.field("progressDeadlineSeconds");
    deadline.not_negative(causes);
    if deadline.is_set() && deadline.number() <= ready.number() {
        deadline.invalid("must be greater than minReadySeconds", causes);
    }
}

/// Returns a strategy as Go writes the struct that Kubernetes uses itself.
fn shown_strategy(kind: &str, rolling: &CheckedPart<'_>) -> String {
    format!(
        "{{\"Type\":{},\"RollingUpdate\":{}}}",
        json!(kind),
        rolling.value
    )
}

pub(super) fn replica_set(spec: &CheckedPart<'_>, causes: &mut Causes) {
    spec.field("replicas").not_negative(causes);
    spec.field("minReadySeconds").not_negative(causes);
    selected_template(spec, "deployment", "invalid label selector", causes);
    always_restarted(spec, "ReplicaSet", causes);
}

pub(super) fn replication_controller(spec: &CheckedPart<'_>, causes: &mut Causes) {
    spec.field("minReadySeconds").not_negative(causes);
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    selector.require("", causes);
    spec.field("replicas").not_negative(causes);
    if !template.is_set() {
        template.require("", causes);
        return;
    }
    let labels = template.field("metadata.labels");
    if selector
        .entries()
        .any(|(key, value)| labels.value.get(key) != Some(value))
    {
        no_match(&labels, causes);
    }
    pod::check_template(&template, causes);
    always_restarted(spec, "ReplicationController", causes);
}

pub(super) fn stateful_set(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let policy = spec.field("podManagementPolicy");
    if !matches!(policy.text(), "OrderedReady" | "Parallel") {
        policy.invalid("must be 'OrderedReady' or 'Parallel'", causes);
    }
    let strategy = spec.field("updateStrategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "OnDelete" if rolling.is_set() => {
            rolling.invalid("only allowed for updateStrategy 'RollingUpdate'", causes);
        }
        "OnDelete" => {}
        "RollingUpdate" => rolling.field("partition").not_negative(causes),
        _ => strategy.invalid("must be 'RollingUpdate' or 'OnDelete'", causes),
    }
    for claim in spec.field("volumeClaimTemplates").items() {
        small::claim(&claim.field("spec"), causes);
    }
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        retention
            .field(key)
            .supported(&["Retain", "Delete"], causes);
    }
    for key in ["replicas", "minReadySeconds"] {
        spec.field(key).not_negative(causes);
    }
    spec.field("ordinals.start").not_negative(causes);
    let service = spec.field("serviceName");
    if !service.is_empty() {
        service.dns_label(causes);
    }
    let selector = spec.field("selector");
    check_selector(&selector, "statefulset", causes);
    if selector.is_readable_selector() {
        // Claims are volumes of each Pod.
        let mut template = spec.field("template").value.clone();
        let claims = spec.field("volumeClaimTemplates");
        let names = claims.items().map(|it| it.field("metadata.name").text());
        let names: BTreeSet<&str> = names.collect();
        let volumes = spec.field("template.spec.volumes");
        let others = volumes
            .items()
            .filter(|it| !names.contains(it.field("name").text()));
        let claim =
            |name: &&str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
        let volumes: Vec<Value> = names
            .iter()
            .map(claim)
            .chain(others.map(|it| it.value.clone()))
            .collect();
        if !volumes.is_empty() {
            template["spec"]["volumes"] = volumes.into();
        }
        let template = CheckedPart {
            value: &template,
            path: spec.field("template").path,
        };
        check_matches(&selector, &template, causes);
        pod::check_template(&template, causes);
    } else {
        selector.invalid("", causes);
    }
    always_restarted(spec, "StatefulSet", causes);
}

pub(super) fn daemon_set(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    selector.label_selector(causes);
    if selector.is_readable_selector() && !selector.selects(template.field("metadata.labels").value)
    {
        no_match(&template.field("metadata.labels"), causes);
    }
    check_not_empty(&selector, "daemonset", causes);
    pod::check_template(&template, causes);
    always_restarted(spec, "DaemonSet", causes);
    spec.field("minReadySeconds").not_negative(causes);
    let strategy = spec.field("updateStrategy");
    match strategy.field("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.field("rollingUpdate");
            let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
            unavailable.amount_or_percent(causes);
            surge.amount_or_percent(causes);
            unavailable.at_most_all(causes);
            surge.at_most_all(causes);
            match (unavailable.amount() != 0, surge.amount() != 0) {
                (true, true) => {
                    surge.invalid("may not be set when maxUnavailable is non-zero", causes);
                }
                (false, false) => {
                    causes.required(&*unavailable.path, "cannot be 0 when maxSurge is 0");
                }
                _ => {}
            }
        }
        kind => {
            let shown = shown_strategy(kind, &strategy.field("rollingUpdate"));
            causes.unsupported_as(&*strategy.path, &shown, &["RollingUpdate", "OnDelete"]);
        }
    }
    spec.field("revisionHistoryLimit").not_negative(causes);
}

/// Checks a selector and the template that it must select.
fn selected_template(spec: &CheckedPart<'_>, kind: &str, unreadable: &str, causes: &mut Causes) {
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    check_selector(&selector, kind, causes);
    if selector.is_readable_selector() {
        check_matches(&selector, &template, causes);
        pod::check_template(&template, causes);
    } else {
        selector.invalid(unreadable, causes);
    }
}

fn check_selector(selector: &CheckedPart<'_>, kind: &str, causes: &mut Causes) {
    if selector.is_set() {
        selector.label_selector(causes);
        check_not_empty(selector, kind, causes);
    } else {
        selector.require("", causes);
    }
}

fn check_not_empty(selector: &CheckedPart<'_>, kind: &str, causes: &mut Causes) {
    let parts = ["matchLabels", "matchExpressions"];
    if selector.is_set() && parts.iter().all(|part| selector.field(part).is_empty()) {
        selector.invalid(&format!("empty selector is invalid for {kind}"), causes);
    }
}

/// Checks that a selector selects the Pods of a template. An empty one selects everything, a missing one nothing.
fn check_matches(selector: &CheckedPart<'_>, template: &CheckedPart<'_>, causes: &mut Causes) {
    let labels = template.field("metadata.labels");
    let is_empty = selector.is_set() && selector.is_empty();
    if !is_empty && !selector.selects(labels.value) {
        no_match(&labels, causes);
    }
}

/// Checks the fields of Pods that only Jobs may set.
fn always_restarted(spec: &CheckedPart<'_>, kind: &str, causes: &mut Causes) {
    let pod = spec.field("template.spec");
    let policy = pod.field("restartPolicy");
    if spec.field("selector").is_readable_selector() || kind != "ReplicaSet" {
        policy.supported(&["Always"], causes);
        let deadline = pod.field("activeDeadlineSeconds");
        if deadline.is_set() {
            deadline.forbid(
                &format!("activeDeadlineSeconds in {kind} is not Supported"),
                causes,
            );
        }
    }
}
