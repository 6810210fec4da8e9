//! Quotas of a namespace.

use serde_json::{Value, json};

use super::part::CheckedPart;
use crate::causes::Causes;
use crate::rules;

/// Resources that are counted, and so have no fractions.
const COUNTED: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Scopes that exclude each other.
const OPPOSITES: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

pub(super) fn quota(spec: &CheckedPart<'_>, causes: &mut Causes) {
    let hard = spec.field("hard");
    check_amounts(&hard, causes);
    let list = spec.field("scopes");
    for scope in list.items() {
        if !is_scope(scope.text()) {
            list.invalid("unsupported scope", causes);
        }
        for _ in outside(scope.text(), &hard) {
            list.invalid("unsupported scope applied to resource", causes);
        }
    }
    let scopes: Vec<_> = list.items().map(|it| it.value.clone()).collect();
    check_opposites(&list, &scopes, list.value, causes);
    let selector = spec.field("scopeSelector");
    let expressions = selector.field("matchExpressions");
    // A server names no index.
    for expression in expressions.items() {
        check_expression(&expression, &expressions.path, causes);
        for _ in outside(expression.field("scopeName").text(), &hard) {
            let detail = "unsupported scope applied to resource";
            causes.invalid(&*expressions.path, selector.value, detail);
        }
    }
    let scopes: Vec<_> = expressions
        .items()
        .map(|it| it.field("scopeName").value.clone())
        .collect();
    check_opposites(&expressions, &scopes, list.value, causes);
}

/// Checks amounts of resources by their names.
pub(super) fn check_amounts(amounts: &CheckedPart<'_>, causes: &mut Causes) {
    for (name, _) in amounts.entries() {
        let amount = amounts.key(name);
        check_name(&amount.path, name, causes);
        if !is_standard(name) && !name.contains('/') {
            causes.invalid(&*amount.path, name, "must be a standard resource for quota");
        }
        if amount.quantity().is_some_and(|amount| amount < 0) {
            amount.invalid("must be greater than or equal to 0", causes);
        }
        if COUNTED.contains(&name.as_str()) && !amount.is_whole() {
            amount.invalid("must be an integer", causes);
        }
    }
}

/// Checks the name of a resource.
pub(super) fn check_name(path: &str, name: &str, causes: &mut Causes) {
    let before = causes.len();
    rules::check_key(path, name, causes);
    let is_known = is_standard(name) || name == "storage" || name.contains('/');
    if causes.len() == before && !is_known {
        let detail = "must be a standard resource type or fully qualified";
        causes.invalid(path, name, detail);
    }
}

fn is_measured(name: &str) -> bool {
    let of_all = name
        .strip_prefix("limits.")
        .or(name.strip_prefix("requests."));
    matches!(
        of_all.unwrap_or(name),
        "cpu" | "ephemeral-storage" | "memory"
    ) || name == "requests.storage"
}

fn is_standard(name: &str) -> bool {
    let pages = ["hugepages-", "requests.hugepages-"];
    COUNTED.contains(&name) || is_measured(name) || pages.iter().any(|it| name.starts_with(it))
}

fn is_scope(name: &str) -> bool {
    let opposites = OPPOSITES.iter().flatten();
    let others = [
        "CrossNamespacePodAffinity",
        "PriorityClass",
        "VolumeAttributesClass",
    ];
    opposites.chain(&others).any(|scope| *scope == name)
}

/// Returns the limits of a quota that a scope has nothing to do with.
fn outside<'v>(scope: &str, hard: &CheckedPart<'v>) -> Vec<&'v String> {
    let names = hard.entries().map(|(name, _)| name);
    let is_inside = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if is_scope(scope) => {
            name == "pods" || (is_measured(name) && !name.contains("storage"))
        }
        _ => true,
    };
    names
        .filter(|name| is_standard(name) && !is_inside(name))
        .collect()
}

fn check_opposites(part: &CheckedPart<'_>, scopes: &[Value], shown: &Value, causes: &mut Causes) {
    for pair in OPPOSITES {
        if pair.iter().all(|scope| scopes.contains(&json!(scope))) {
            causes.invalid(&*part.path, shown, "conflicting scopes");
        }
    }
}

fn check_expression(expression: &CheckedPart<'_>, path: &str, causes: &mut Causes) {
    const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let [scope, operator, values] = ["scopeName", "operator", "values"].map(|key| CheckedPart {
        path: format!("{path}.{key}"),
        ..expression.field(key)
    });
    if !is_scope(scope.text()) {
        scope.invalid("unsupported scope", causes);
    }
    let has_values = matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass");
    if is_scope(scope.text()) && !has_values && operator.text() != "Exists" {
        operator.invalid(ONLY_EXISTS, causes);
    }
    match operator.text() {
        "In" | "NotIn" => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            values.require(detail, causes);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            values.invalid(detail, causes);
        }
        "Exists" | "DoesNotExist" => {}
        _ => operator.invalid("not a valid selector operator", causes),
    }
}
