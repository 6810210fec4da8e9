//! Checks the configurations of admission webhooks.

use serde_json::Value;

use crate::builtin::ADMISSION;
use crate::causes::Causes;
use crate::client_config::{ClientConfig, known_version};
use crate::kind::ServedKind;
use crate::object::{at, items, text, texts};

const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Checks the webhooks of a configuration of admission; other kinds have none.
pub(crate) fn check_webhooks(kind: &ServedKind, object: &Value, causes: &mut Causes) {
    if kind.group != ADMISSION {
        return;
    }
    let mut names = Vec::new();
    for (index, webhook) in items(object, &["webhooks"]).iter().enumerate() {
        let path = format!("webhooks[{index}]");
        let name = text(webhook, &["name"]);
        check_name(name, &format!("{path}.name"), causes);
        for (index, rule) in items(webhook, &["rules"]).iter().enumerate() {
            check_rule(rule, &format!("{path}.rules[{index}]"), causes);
        }
        for (key, supported) in [
            ("failurePolicy", &["Fail", "Ignore"]),
            ("matchPolicy", &["Equivalent", "Exact"]),
            ("sideEffects", &["None", "NoneOnDryRun"]),
            ("reinvocationPolicy", &["IfNeeded", "Never"]),
        ] {
            let given = text(webhook, &[key]);
            if given.is_empty() && key == "sideEffects" {
                let detail = format!("must specify one of {}", supported.join(", "));
                causes.required(format!("{path}.{key}"), &detail);
            } else if !given.is_empty() && !supported.contains(&given) {
                causes.unsupported(format!("{path}.{key}"), given, supported);
            }
        }
        if let Some(seconds) = at(webhook, &["timeoutSeconds"]).and_then(Value::as_i64)
            && !(1..=30).contains(&seconds)
        {
            let detail = "the timeout value must be between 1 and 30 seconds";
            causes.invalid(format!("{path}.timeoutSeconds"), seconds, detail);
        }
        let config = webhook.get("clientConfig").unwrap_or(&Value::Null);
        ClientConfig::check(config, &format!("{path}.clientConfig"), causes);
        let versions = texts(webhook, &["admissionReviewVersions"]);
        let field = format!("{path}.admissionReviewVersions");
        for (index, version) in versions.iter().enumerate() {
            if versions[..index].contains(version) {
                causes.invalid(format!("{field}[{index}]"), version, "duplicate version");
            }
        }
        if versions.is_empty() {
            causes.required(field, "must specify one of v1, v1beta1");
        } else if known_version(&versions).is_none() {
            let detail = "must include at least one of v1, v1beta1";
            causes.invalid(field, versions, detail);
        }
        if !name.is_empty() && names.contains(&name) {
            causes.duplicate(format!("{path}.name"), name);
        }
        names.push(name);
    }
}

fn check_name(name: &str, field: &str, causes: &mut Causes) {
    if name.is_empty() {
        causes.required(field, "");
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.invalid(field, name, detail);
    }
}

fn check_rule(rule: &Value, path: &str, causes: &mut Causes) {
    for (key, all, what) in [
        ("operations", "*", "operations"),
        ("apiGroups", "*", "API groups"),
        ("apiVersions", "*", "API versions"),
        ("resources", "*/*", "resources"),
    ] {
        let (given, field) = (texts(rule, &[key]), format!("{path}.{key}"));
        if given.is_empty() {
            causes.required(&*field, "");
        } else if given.len() > 1 && given.contains(&all) {
            let detail = format!("if '{all}' is present, must not specify other {what}");
            causes.invalid(&*field, given.clone(), &detail);
        }
        for (index, it) in given.into_iter().enumerate() {
            let field = format!("{field}[{index}]");
            if key == "operations" && !OPERATIONS.contains(&it) {
                causes.unsupported(field, it, &OPERATIONS);
            } else if it.is_empty() && key != "apiGroups" {
                causes.required(field, "");
            }
        }
    }
    let resources = texts(rule, &["resources"]);
    let mut plain = resources.iter().rev().filter(|it| !it.contains('/'));
    if resources.contains(&"*") && plain.next().is_some_and(|last| *last != "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.invalid(format!("{path}.resources"), resources, detail);
    }
    let scope = text(rule, &["scope"]);
    if !scope.is_empty() && !SCOPES.contains(&scope) {
        causes.unsupported(format!("{path}.scope"), scope, &SCOPES);
    }
}
