//! Jobs and those that make them.

mod policy;
mod status;

use serde_json::{Value, json};

pub(super) use self::status::check as check_status;
use super::part::CheckedPart;
use super::workload::no_match;
use super::{pod, small};
use crate::causes::Causes;
use crate::rules;

pub(super) fn job(job: &CheckedPart<'_>, is_new: bool, causes: &mut Causes) {
    let spec = job.field("spec");
    if is_new && spec.field("manualSelector").value != &Value::Bool(true) {
        let label = "batch.kubernetes.io/controller-uid";
        let uid = &job.value["metadata"]["uid"];
        let selector = spec.field("selector");
        let name = &job.value["metadata"]["name"];
        let labels = json!({
            label: uid, "batch.kubernetes.io/job-name": name, "controller-uid": uid, "job-name": name,
        });
        if selector.is_readable_selector() && !selector.selects(&labels) {
            selector.invalid("`selector` not auto-generated", causes);
        }
    }
    job_spec(&spec, causes);
    let selector = spec.field("selector");
    if selector.is_set() {
        selector.label_selector(causes);
    } else {
        selector.require("", causes);
    }
    let labels = spec.field("template.metadata.labels");
    if selector.is_readable_selector() && !selector.selects(labels.value) {
        no_match(&labels, causes);
    }
    let count = spec.field("completions").number();
    if is_new && spec.field("completionMode").text() == "Indexed" && count > 0 {
        let name = job.field("metadata.name");
        let host = format!("{}-{}", name.text(), count - 1);
        if !rules::is_dns_label(&host) {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            name.invalid(&detail, causes);
        }
    }
}

fn job_spec(spec: &CheckedPart<'_>, causes: &mut Causes) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.field(key).not_negative(causes);
    }
    let (limit, failed) = (
        spec.field("backoffLimitPerIndex"),
        spec.field("maxFailedIndexes"),
    );
    if failed.is_set() && !limit.is_set() {
        limit.require("when maxFailedIndexes is specified", causes);
    }
    let manager = spec.field("managedBy");
    if manager.is_set() {
        manager.domain_path(causes);
        if manager.text().len() > 63 {
            causes.too_long(&*manager.path, 63);
        }
    }
    let mode = spec.field("completionMode");
    mode.supported(&["NonIndexed", "Indexed"], causes);
    if mode.text() == "Indexed" {
        check_indexed(spec, causes);
    } else {
        for part in [limit, failed].into_iter().filter(CheckedPart::is_set) {
            part.invalid("requires indexed completion mode", causes);
        }
    }
    policy::check_failures(spec, causes);
    policy::check_success(spec, causes);
    let replaced: &[&str] = if spec.field("podFailurePolicy").is_set() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    spec.field("podReplacementPolicy")
        .supported(replaced, causes);
    pod::check_template(&spec.field("template"), causes);
    let policy = spec.field("template.spec.restartPolicy");
    if spec.field("podFailurePolicy").is_set() && policy.text() == "OnFailure" {
        let detail = "only \"Never\" is supported when podFailurePolicy is specified";
        policy.invalid(detail, causes);
    }
    match policy.text() {
        "" | "Always" => causes.required(&*policy.path, "valid values: \"OnFailure\", \"Never\""),
        _ => policy.supported(&["OnFailure", "Never"], causes),
    }
}

fn check_indexed(spec: &CheckedPart<'_>, causes: &mut Causes) {
    const MOST: i64 = 100_000;
    let (completions, parallelism) = (spec.field("completions"), spec.field("parallelism"));
    let failed = spec.field("maxFailedIndexes");
    completions.require("when completion mode is Indexed", causes);
    if parallelism.number() > MOST {
        let detail =
            format!("must be less than or equal to {MOST} when completion mode is Indexed");
        parallelism.invalid(&detail, causes);
    }
    if completions.is_set() && failed.number() > completions.number() {
        failed.invalid("must be less than or equal to completions", causes);
    }
    if failed.number() > MOST {
        failed.invalid(&format!("must be less than or equal to {MOST}"), causes);
    }
}

pub(super) fn cron_job(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let schedule = spec.field("schedule");
    if schedule.is_empty() {
        schedule.require("", causes);
    } else if let Err(why) = small::check_schedule(schedule.text()) {
        schedule.invalid(&why, causes);
    }
    spec.field("startingDeadlineSeconds").not_negative(causes);
    let zone = spec.field("timeZone");
    if zone.is_set() {
        check_time_zone(&zone, causes);
    }
    spec.field("concurrencyPolicy")
        .one_of(&["Allow", "Forbid", "Replace"], causes);
    let template = spec.field("jobTemplate.spec");
    job_spec(&template, causes);
    let selector = template.field("selector");
    if selector.is_set() {
        selector.invalid("`selector` will be auto-generated", causes);
    }
    let manual = template.field("manualSelector");
    if manual.value == &Value::Bool(true) {
        causes.unsupported(&*manual.path, manual.value, &["nil", "false"]);
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.field(key).not_negative(causes);
    }
}

fn check_time_zone(zone: &CheckedPart<'_>, causes: &mut Causes) {
    match zone.text() {
        "" => zone.invalid("timeZone must be nil or non-empty string", causes),
        name if name.eq_ignore_ascii_case("Local") => {
            zone.invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones", causes);
        }
        name => {
            if jiff::tz::TimeZone::get(name).is_err() {
                zone.invalid(&format!("unknown time zone {name}"), causes);
            }
        }
    }
}
