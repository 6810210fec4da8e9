//! Where a Pod wants to be: affinities, spreads and tolerations.

use std::collections::BTreeSet;

use super::super::part::CheckedPart;
use crate::causes::Causes;
use crate::rules;

/// Checks where a Pod wants to be.
pub(super) fn check_placement(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let affinity = spec.field("affinity");
    let nodes = affinity.field("nodeAffinity");
    let required = nodes.field("requiredDuringSchedulingIgnoredDuringExecution");
    if required.is_set() {
        required
            .field("nodeSelectorTerms")
            .require("must have at least one node selector term", causes);
    }
    for term in nodes
        .field("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
        .items()
    {
        check_node_term(&term, causes);
    }
    for weighted in nodes
        .field("preferredDuringSchedulingIgnoredDuringExecution")
        .items()
    {
        let weight = weighted.field("weight");
        if !(1..=100).contains(&weight.number()) {
            weight.invalid("must be in the range 1-100", causes);
        }
        check_node_term(&weighted.field("preference"), causes);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for term in affinity
            .field(kind)
            .field("requiredDuringSchedulingIgnoredDuringExecution")
            .items()
        {
            check_affinity_term(&term, causes);
        }
        for weighted in affinity
            .field(kind)
            .field("preferredDuringSchedulingIgnoredDuringExecution")
            .items()
        {
            let weight = weighted.field("weight");
            if !(1..=100).contains(&weight.number()) {
                weight.invalid("must be in the range 1-100", causes);
            }
            check_affinity_term(&weighted.field("podAffinityTerm"), causes);
        }
    }
    check_spread(spec, causes);
}

/// Checks how the Pods are spread.
fn check_spread(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let mut spread = BTreeSet::new();
    for constraint in spec.field("topologySpreadConstraints").items() {
        let (key, unsatisfiable) = (
            constraint.field("topologyKey").text(),
            constraint.field("whenUnsatisfiable").text(),
        );
        if !spread.insert((key, unsatisfiable)) {
            // A server names the first of the two.
            let path = format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path);
            causes.duplicate(path, format!("{{{key}, {unsatisfiable}}}"));
        }
        let domains = constraint.field("minDomains");
        let skew = constraint.field("maxSkew");
        if skew.number() <= 0 {
            skew.invalid("must be greater than zero", causes);
        }
        constraint
            .field("topologyKey")
            .require("can not be empty", causes);
        constraint
            .field("whenUnsatisfiable")
            .supported(&["DoNotSchedule", "ScheduleAnyway"], causes);
        if domains.is_set() && domains.number() <= 0 {
            domains.invalid("must be greater than zero", causes);
        }
        if domains.is_set() && unsatisfiable != "DoNotSchedule" {
            let detail = format!(
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
            );
            domains.invalid(&detail, causes);
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint
                .field(key)
                .supported(&["Honor", "Ignore"], causes);
        }
        let keys = constraint.field("matchLabelKeys");
        if !keys.is_empty() && !constraint.field("labelSelector").is_set() {
            keys.forbid(
                "must not be specified when labelSelector is not set",
                causes,
            );
        }
        constraint.field("labelSelector").label_selector(causes);
    }
}

fn check_node_term(term: &CheckedPart<'_>, causes: &mut Causes) {
    for expression in term.field("matchExpressions").items() {
        let (key, operator) = (expression.field("key"), expression.field("operator"));
        let values = expression.field("values");
        match operator.text() {
            "In" | "NotIn" => values.require(
                "must be specified when `operator` is 'In' or 'NotIn'",
                causes,
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                values.forbid(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    causes,
                );
            }
            "Exists" | "DoesNotExist" => {}
            "Gt" | "Lt" => {
                if values.items().count() != 1 {
                    causes.required(
                        &*values.path,
                        "must be specified single value when `operator` is 'Lt' or 'Gt'",
                    );
                }
            }
            _ => causes.invalid(
                &*operator.path,
                operator.text(),
                "not a valid selector operator",
            ),
        }
        rules::check_key(&key.path, key.text(), causes);
    }
    for field in term.field("matchFields").items() {
        let (key, operator, values) = (
            field.field("key"),
            field.field("operator"),
            field.field("values"),
        );
        if !matches!(operator.text(), "In" | "NotIn") {
            operator.invalid("not a valid selector operator", causes);
        } else if values.items().count() != 1 {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.required(&*values.path, detail);
        }
        if key.text() == "metadata.name" {
            values.items().for_each(|name| name.dns_subdomain(causes));
        } else {
            key.invalid("not a valid field selector key", causes);
        }
    }
}

fn check_affinity_term(term: &CheckedPart<'_>, causes: &mut Causes) {
    term.field("labelSelector").label_selector(causes);
    for namespace in term.field("namespaces").items() {
        rules::check_dns_label(
            &format!("{}.namespace", term.path),
            namespace.text(),
            causes,
        );
    }
    let key = term.field("topologyKey");
    if key.is_empty() {
        key.require("can not be empty", causes);
        // A server checks the key as a label, too.
        rules::check_key(&key.path, "", causes);
    } else {
        rules::check_key(&key.path, key.text(), causes);
    }
}

pub(super) fn check_toleration(toleration: &CheckedPart<'_>, causes: &mut Causes) {
    let (key, operator) = (toleration.field("key"), toleration.field("operator"));
    let (effect, value) = (toleration.field("effect"), toleration.field("value"));
    if !key.is_empty() {
        rules::check_key(&key.path, key.text(), causes);
    } else if operator.text() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.invalid(&*operator.path, operator.text(), detail);
    }
    if toleration.field("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        causes.invalid(
            &*effect.path,
            effect.text(),
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        );
    }
    match operator.text() {
        "" | "Equal" => rules::check_label(&operator.path, value.text(), causes),
        "Exists" if !value.is_empty() => {
            causes.invalid(
                &*operator.path,
                value.text(),
                "value must be empty when `operator` is 'Exists'",
            );
        }
        "Exists" => {}
        // A server names these, and does not support them by default.
        "Lt" | "Gt" => causes.unsupported(
            &*operator.path,
            operator.text(),
            &["Equal", "Exists", "Lt", "Gt"],
        ),
        _ => operator.supported(&["Equal", "Exists"], causes),
    }
    effect.supported(&["NoSchedule", "PreferNoSchedule", "NoExecute"], causes);
}
