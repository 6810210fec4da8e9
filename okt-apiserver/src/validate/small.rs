//! Kinds with few rules: claims, data, roles, budgets, autoscalers, classes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::part::CheckedPart;
use crate::causes::Causes;
use crate::rules;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Checks the modes in which a volume can be mounted.
pub(super) fn check_modes(modes: &CheckedPart<'_>, causes: &mut Causes) {
    const MODES: &[&str] = &[
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    for mode in modes.items() {
        if !MODES.contains(&mode.text()) {
            causes.unsupported(&*modes.path, mode.text(), MODES);
        }
    }
}

pub(super) fn claim(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let modes = spec.field("accessModes");
    modes.require("at least 1 access mode is required", causes);
    spec.field("selector").label_selector(causes);
    check_modes(&modes, causes);
    let is_alone = |mode: &CheckedPart<'_>| mode.text() == "ReadWriteOncePod";
    if modes.items().any(|mode| is_alone(&mode)) && !modes.items().all(|mode| is_alone(&mode)) {
        modes.forbid(
            "may not use ReadWriteOncePod with other access modes",
            causes,
        );
    }
    let field = format!("{}.resources[storage]", spec.path);
    let size = spec.field("resources.requests.storage");
    match size.quantity() {
        None => causes.required(field, ""),
        Some(..=0) => causes.invalid(field, size.text(), "must be greater than zero"),
        Some(_) => {}
    }
    let class = spec.field("storageClassName");
    if !class.is_empty() {
        class.dns_subdomain(causes);
    }
    spec.field("volumeMode")
        .supported(&["Block", "Filesystem"], causes);
    let [source, reference] = ["dataSource", "dataSourceRef"].map(|key| spec.field(key));
    for source in [&source, &reference].into_iter().filter(|it| it.is_set()) {
        let (kind, group) = (source.field("kind"), source.field("apiGroup"));
        source.field("name").require("", causes);
        kind.require("", causes);
        if !group.is_empty() {
            group.dns_subdomain(causes);
        } else if kind.text() != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            causes.invalid(&*source.path, kind.text(), detail);
        }
    }
    let differs = |key: &str| source.field(key).text() != reference.field(key).text();
    if source.is_set()
        && reference.is_set()
        && ["apiGroup", "kind", "name"].into_iter().any(differs)
    {
        causes.invalid(&*spec.path, json!({}), "must match dataSourceRef");
    }
    let class = spec.field("volumeAttributesClassName");
    if !class.is_empty() {
        class.dns_subdomain(causes);
    }
}

pub(super) fn config_map(map: &CheckedPart<'_>, causes: &mut Causes) {
    let (data, binary) = (map.field("data"), map.field("binaryData"));
    for (key, _) in data.entries() {
        rules::check_config_key(&format!("data[{key}]"), key, causes);
        if binary.value.get(key).is_some() {
            causes.invalid(
                format!("data[{key}]"),
                key,
                "duplicate of key present in binaryData",
            );
        }
    }
    for (key, _) in binary.entries() {
        rules::check_config_key(&format!("binaryData[{key}]"), key, causes);
    }
}

pub(super) fn secret(secret: &CheckedPart<'_>, causes: &mut Causes) {
    let data = secret.field("data");
    for (key, _) in data.entries() {
        rules::check_config_key(&format!("data[{key}]"), key, causes);
    }
    let required: &[&str] = match secret.field("type").text() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/basic-auth"
            if ["username", "password"]
                .iter()
                .all(|key| !data.key(key).is_set()) =>
        {
            &["username", "password"]
        }
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            secret
                .field("metadata.annotations")
                .key(name)
                .require("", causes);
            &[]
        }
        _ => &[],
    };
    for key in required {
        let value = data.key(key);
        if data.value.get(*key).is_none() {
            causes.required(&*value.path, "");
        } else if key.starts_with(".docker") && !is_json_object(value.text()) {
            let bytes = BASE64_STANDARD.decode(value.text()).unwrap_or_default();
            let shown = "<secret contents redacted>";
            causes.invalid(&*value.path, shown, &no_json(&bytes));
        }
    }
}

/// Returns why bytes are no JSON, in the words of Go where the first of them is wrong.
fn no_json(bytes: &[u8]) -> String {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first.map(|byte| char::from(*byte)) {
        None => "unexpected end of JSON input".to_owned(),
        Some('"' | '[' | '{' | '-' | '0'..='9' | 't' | 'f' | 'n') => "invalid character".to_owned(),
        Some(first) => format!("invalid character {first:?} looking for beginning of value"),
    }
}

fn is_json_object(base64: &str) -> bool {
    let bytes = BASE64_STANDARD.decode(base64).unwrap_or_default();
    serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| value.is_object())
}

pub(super) fn role(role: &CheckedPart<'_>, is_namespaced: bool, causes: &mut Causes) {
    for rule in role.field("rules").items() {
        rule.field("verbs")
            .require("verbs must contain at least one value", causes);
        let urls = rule.field("nonResourceURLs");
        let (groups, resources) = (rule.field("apiGroups"), rule.field("resources"));
        if urls.is_empty() {
            groups.require("resource rules must supply at least one api group", causes);
            resources.require("resource rules must supply at least one resource", causes);
            continue;
        }
        if is_namespaced {
            urls.invalid("namespaced rules cannot apply to non-resource URLs", causes);
        }
        if !(groups.is_empty() && resources.is_empty() && rule.field("resourceNames").is_empty()) {
            urls.invalid(
                "rules cannot apply to both regular resources and non-resource URLs",
                causes,
            );
        }
    }
}

pub(super) fn role_binding(binding: &CheckedPart<'_>, is_namespaced: bool, causes: &mut Causes) {
    let role = binding.field("roleRef");
    role.field("apiGroup").supported(&[RBAC], causes);
    let kinds: &[&str] = if is_namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&role.field("kind").text()) {
        causes.unsupported("roleRef.kind", role.field("kind").text(), kinds);
    }
    let name = role.field("name");
    if name.is_empty() {
        name.require("", causes);
    } else {
        rules::check_path_segment(&name.path, name.text(), causes);
    }
    for subject in binding.field("subjects").items() {
        let (name, group) = (subject.field("name"), subject.field("apiGroup"));
        name.require("", causes);
        match subject.field("kind").text() {
            "ServiceAccount" => {
                if !name.is_empty() {
                    name.dns_subdomain(causes);
                }
                if !group.is_empty() {
                    causes.unsupported(&*group.path, group.text(), &[""]);
                }
                if !is_namespaced {
                    subject.field("namespace").require("", causes);
                }
            }
            "User" | "Group" => {
                if group.text() != RBAC {
                    causes.unsupported(&*group.path, group.text(), &[RBAC]);
                }
            }
            kind => causes.unsupported(
                format!("{}.kind", subject.path),
                kind,
                &["ServiceAccount", "User", "Group"],
            ),
        }
    }
}

pub(super) fn disruption_budget(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let (least, most) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let shown = format!(
            r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
            least.value,
            spec.field("selector").value,
            most.value,
            spec.field("unhealthyPodEvictionPolicy").value
        );
        let detail = format!("{shown}: minAvailable and maxUnavailable cannot be both set");
        causes.faulty(&*spec.path, &detail);
    }
    for amount in [&least, &most] {
        if amount.is_set() {
            amount.amount_or_percent(causes);
            amount.at_most_all(causes);
        }
    }
    spec.field("selector").label_selector(causes);
    spec.field("unhealthyPodEvictionPolicy")
        .supported(&["AlwaysAllow", "IfHealthyBudget"], causes);
}

pub(super) fn autoscaler(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let (least, most) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    if least.is_set() && least.number() < 1 {
        least.invalid("must be greater than or equal to 1", causes);
    }
    match most.number() {
        0 => causes.required(&*most.path, "must be set and greater than 0"),
        ..0 => most.invalid("must be greater than or equal to 1", causes),
        _ => {}
    }
    if least.is_set() && most.number() < least.number() {
        most.invalid("must be greater than or equal to `minReplicas`", causes);
    }
    check_target(&spec.field("scaleTargetRef"), causes);
    let metrics = spec.field("metrics");
    for metric in metrics.items() {
        check_metric(&metric, causes);
    }
    let counts_outside =
        |metric: CheckedPart<'_>| matches!(metric.field("type").text(), "Object" | "External");
    if least.is_set() && least.number() == 0 && !metrics.items().any(counts_outside) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        metrics.forbid(detail, causes);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let window = spec
            .field("behavior")
            .field(direction)
            .field("stabilizationWindowSeconds");
        window.not_negative(causes);
        if window.number() > 3600 {
            window.invalid("must be less than or equal to 3600", causes);
        }
        check_scaling(&spec.field("behavior").field(direction), causes);
    }
}

/// Checks the rules of one direction of scaling.
fn check_scaling(scaling: &CheckedPart<'_>, causes: &mut Causes) {
    scaling
        .field("selectPolicy")
        .supported(&["Disabled", "Max", "Min"], causes);
    let policies = scaling.field("policies");
    if scaling.is_set() {
        policies.require("must specify at least one Policy", causes);
    }
    for policy in policies.items() {
        policy.field("type").supported(&["Percent", "Pods"], causes);
        for key in ["value", "periodSeconds"] {
            let part = policy.field(key);
            if part.number() <= 0 {
                part.invalid("must be greater than zero", causes);
            }
        }
        let period = policy.field("periodSeconds");
        if period.number() > 1800 {
            period.invalid("must be less than or equal to 1800", causes);
        }
    }
    let tolerance = scaling.field("tolerance");
    if tolerance.quantity().is_some_and(|it| it < 0) {
        tolerance.invalid("must be greater than or equal to 0", causes);
    }
}

fn check_target(target: &CheckedPart<'_>, causes: &mut Causes) {
    for key in ["kind", "name"] {
        let part = target.field(key);
        part.require("", causes);
        rules::check_path_segment(&part.path, part.text(), causes);
    }
    let version = target.field("apiVersion");
    let has_group = version.text().contains('/');
    if !has_group && target.field("kind").text() != "ReplicationController" {
        causes.invalid(
            &*version.path,
            version.text(),
            "apiVersion must specify API group",
        );
    }
}

fn check_metric(metric: &CheckedPart<'_>, causes: &mut Causes) {
    const KINDS: &[&str] = &[
        "ContainerResource",
        "External",
        "Object",
        "Pods",
        "Resource",
    ];
    let kind = metric.field("type");
    kind.require("must specify a metric source type", causes);
    if !KINDS.contains(&kind.text()) {
        causes.unsupported(&*kind.path, kind.text(), KINDS);
        return;
    }
    let mut name = kind.text().to_owned();
    name[..1].make_ascii_lowercase();
    let source = metric.field(&name);
    if !source.is_set() {
        causes.required(
            &*source.path,
            "must populate information for the given metric source",
        );
        return;
    }
    if name == "containerResource" {
        let container = source.field("container");
        container.require("must specify a container", causes);
    }
    if name == "object" {
        for key in ["kind", "name"] {
            source
                .field("describedObject")
                .field(key)
                .require("", causes);
        }
    }
    for other in KINDS {
        let mut other = (*other).to_owned();
        other[..1].make_ascii_lowercase();
        let part = metric.field(&other);
        if other != name && part.is_set() {
            part.forbid("must populate the given metric source only", causes);
        }
    }
    if matches!(name.as_str(), "resource" | "containerResource") {
        source
            .field("name")
            .require("must specify a resource name", causes);
    }
    let target = source.field("target");
    let goal = target.field("type");
    goal.require("must specify a metric target type", causes);
    if !matches!(goal.text(), "Utilization" | "Value" | "AverageValue") {
        causes.invalid(
            &*goal.path,
            goal.text(),
            "must be either Utilization, Value, or AverageValue",
        );
    }
    for key in ["value", "averageValue"] {
        let amount = target.field(key);
        if amount.quantity().is_some_and(|amount| amount <= 0) {
            amount.invalid("must be positive", causes);
        }
    }
    let share = target.field("averageUtilization");
    if share.is_set() && share.number() < 1 {
        share.invalid("must be greater than 0", causes);
    }
    let amount = target.field("averageValue");
    if name == "resource" && !share.is_set() && !amount.is_set() {
        causes.required(
            &*share.path,
            "must set either a target raw value or a target utilization",
        );
    }
    if name == "resource" && share.is_set() && amount.is_set() {
        amount.forbid(
            "may not set both a target raw value and a target utilization",
            causes,
        );
    }
}

pub(super) fn priority_class(class: &CheckedPart<'_>, causes: &mut Causes) {
    let value = class.field("value");
    if value.number() > 1_000_000_000 && !class.field("metadata.name").text().starts_with("system-")
    {
        value.forbid(
            "maximum allowed value of a user defined priority is 1000000000",
            causes,
        );
    }
    class
        .field("preemptionPolicy")
        .supported(&["PreemptLowerPriority", "Never"], causes);
}

pub(super) fn storage_class(class: &CheckedPart<'_>, causes: &mut Causes) {
    let provisioner = class.field("provisioner");
    if provisioner.is_empty() {
        provisioner.require("", causes);
    } else {
        rules::check_key(
            &provisioner.path,
            &provisioner.text().to_lowercase(),
            causes,
        );
    }
    class
        .field("reclaimPolicy")
        .supported(&["Delete", "Retain"], causes);
    class
        .field("volumeBindingMode")
        .supported(&["Immediate", "WaitForFirstConsumer"], causes);
}

/// Checks the times of a `CronJob`.
pub(super) fn check_schedule(schedule: &str) -> Result<(), String> {
    if let Some(name) = schedule.strip_prefix('@') {
        let known = [
            "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
        ];
        let is_interval = name.strip_prefix("every ").is_some();
        return if known.contains(&name) || is_interval {
            Ok(())
        } else {
            Err(format!("unrecognized descriptor: {schedule}"))
        };
    }
    if schedule.contains("TZ") {
        return Err("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let ranges = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    if fields.len() != ranges.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (place, (field, (first, last))) in fields.iter().zip(ranges).enumerate() {
        for range in field.split(',') {
            check_times(range, place, first, last)?;
        }
    }
    Ok(())
}

fn check_times(range: &str, place: usize, first: u32, last: u32) -> Result<(), String> {
    const NAMES: [&[&str]; 5] = [
        &[],
        &[],
        &[],
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
        &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    ];
    let (times, step) = range.split_once('/').unwrap_or((range, "1"));
    let number = |text: &str| {
        let name = NAMES[place]
            .iter()
            .position(|name| text.eq_ignore_ascii_case(name));
        match name.and_then(|at| u32::try_from(at).ok()) {
            Some(at) => Ok(at + first),
            None => text.parse::<u32>().map_err(|_| {
                format!(
                    "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
                    json!(text)
                )
            }),
        }
    };
    let (from, to) = match times {
        "*" | "?" => (first, last),
        times => match times.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(times)?, number(times)?),
        },
    };
    if number(step)? == 0 {
        return Err(format!(
            "step of range should be a positive number: {range}"
        ));
    }
    if from < first {
        return Err(format!(
            "beginning of range ({from}) below minimum ({first}): {range}"
        ));
    }
    if to > last {
        return Err(format!(
            "end of range ({to}) above maximum ({last}): {range}"
        ));
    }
    if from > to {
        return Err(format!(
            "beginning of range ({from}) beyond end of range ({to}): {range}"
        ));
    }
    Ok(())
}
