//! When a Job has failed, and when it has succeeded.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::super::part::CheckedPart;
use super::status::intervals;
use crate::causes::Causes;
use crate::rules;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
/// How many rules a policy may have.
const RULES: usize = 20;

pub(super) fn check_failures(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let rules = spec.field("podFailurePolicy.rules");
    rules.at_most(RULES, causes);
    let containers = ["containers", "initContainers"];
    let containers = containers.map(|list| spec.field("template.spec").field(list));
    let names: Vec<_> = containers
        .iter()
        .flat_map(CheckedPart::items)
        .map(|container| container.field("name").text())
        .collect();
    for rule in rules.items() {
        let action = rule.field("action");
        match action.text() {
            "" => action.require(
                "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
                causes,
            ),
            "FailIndex" if !spec.field("backoffLimitPerIndex").is_set() => {
                action.invalid("requires the backoffLimitPerIndex to be set", causes);
            }
            _ => action.supported(ACTIONS, causes),
        }
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.is_set() {
            check_codes(&codes, &names, causes);
        }
        conditions.at_most(RULES, causes);
        for condition in conditions.items() {
            let (kind, status) = (condition.field("type"), condition.field("status"));
            rules::check_key(&kind.path, kind.text(), causes);
            status.supported(&["False", "True", "Unknown"], causes);
        }
        let detail = match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        causes.faulty(&*rule.path, detail);
    }
}

fn check_codes(codes: &CheckedPart<'_>, names: &[&str], causes: &mut Causes) {
    let (operator, values) = (codes.field("operator"), codes.field("values"));
    operator.supported(&["In", "NotIn"], causes);
    let container = codes.field("containerName");
    if container.is_set() && !names.contains(&container.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        container.invalid(detail, causes);
    }
    if values.is_empty() {
        causes.invalid(
            &*values.path,
            Value::Array(Vec::new()),
            "at least one value is required",
        );
    }
    values.at_most(255, causes);
    let (mut seen, mut is_ordered, mut last) = (BTreeSet::new(), true, i64::MIN);
    for value in values.items() {
        if operator.text() == "In" && value.number() == 0 {
            value.invalid("must not be 0 for the In operator", causes);
        }
        if !seen.insert(value.number()) {
            causes.duplicate(&*value.path, value.value);
        }
        is_ordered &= last <= value.number();
        last = value.number();
    }
    if !is_ordered {
        values.invalid("must be ordered", causes);
    }
}

/// A policy as a server shows it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Policy<'v> {
    rules: Vec<PolicyRule<'v>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PolicyRule<'v> {
    succeeded_indexes: &'v Value,
    succeeded_count: &'v Value,
}

pub(super) fn check_success(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let policy = spec.field("successPolicy");
    let rules = policy.field("rules");
    if !policy.is_set() {
        return;
    }
    if spec.field("completionMode").text() != "Indexed" {
        let rules = rules.items().map(|rule| PolicyRule {
            succeeded_indexes: rule.field("succeededIndexes").value,
            succeeded_count: rule.field("succeededCount").value,
        });
        let shown = Policy {
            rules: rules.collect(),
        };
        causes.invalid(&*policy.path, shown, "requires indexed completion mode");
        return;
    }
    let detail = "at least one rules must be specified when the successPolicy is specified";
    rules.require(detail, causes);
    rules.at_most(RULES, causes);
    let completions = spec.field("completions").number();
    for rule in rules.items() {
        let (indexes, count) = (rule.field("succeededIndexes"), rule.field("succeededCount"));
        if !indexes.is_set() && !count.is_set() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            causes.required(&*rule.path, detail);
        }
        let mut total = 0;
        if indexes.is_set() {
            match intervals(indexes.text(), completions) {
                Ok(found) => total = found,
                Err(why) => {
                    indexes.invalid(&format!("error parsing succeededIndexes: {why}"), causes);
                }
            }
        }
        count.not_negative(causes);
        if count.number() > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            count.invalid(&detail, causes);
        }
        if indexes.is_set() && count.number() > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            count.invalid(&detail, causes);
        }
    }
}
