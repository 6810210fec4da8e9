//! Checks the configurations of admission webhooks.

use serde_json::Value;

use super::ADMISSION;
use crate::api::causes::Causes;
use crate::api::client_config::{ClientConfig, known_version};
use crate::api::kind::ServedKind;
use crate::api::object::{at, items, text, texts};

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
    for key in ["apiGroups", "apiVersions", "resources", "operations"] {
        if texts(rule, &[key]).is_empty() {
            causes.required(format!("{path}.{key}"), "");
        }
    }
    let scope = text(rule, &["scope"]);
    if !scope.is_empty() && !SCOPES.contains(&scope) {
        causes.unsupported(format!("{path}.scope"), scope, &SCOPES);
    }
    for (index, operation) in texts(rule, &["operations"]).into_iter().enumerate() {
        if !OPERATIONS.contains(&operation) {
            let field = format!("{path}.operations[{index}]");
            causes.unsupported(field, operation, &OPERATIONS);
        }
    }
}
