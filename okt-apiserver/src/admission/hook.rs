//! [`Hook`]: one webhook of a configuration, and the requests that it is for.

use serde_json::{Value, json};

use super::request::{AdmissionRequest, Change, operation, version_of};
use crate::client_config::ClientConfig;
use crate::object::{self, items, text, texts};
use crate::refusal::Refusal;
use crate::schema::cel;
use crate::selector;

/// How long a webhook may take that says nothing else, in seconds.
const TIMEOUT: u64 = 10;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Hook {
    /// The name of its configuration.
    configuration: String,
    mutates: bool,
    raw: Value,
}

impl Hook {
    /// Returns the webhooks of a configuration.
    pub(super) fn all(configuration: &Value) -> Vec<Self> {
        let name = object::name(configuration);
        let mutates = text(configuration, &["kind"]) == "MutatingWebhookConfiguration";
        let webhooks = items(configuration, &["webhooks"]).iter();
        webhooks
            .map(|raw| Self {
                configuration: name.to_owned(),
                mutates,
                raw: raw.clone(),
            })
            .collect()
    }

    pub(super) fn name(&self) -> &str {
        text(&self.raw, &["name"])
    }

    /// What it is called among all webhooks.
    pub(super) fn id(&self) -> (String, String) {
        (self.configuration.clone(), self.name().to_owned())
    }

    /// Whether it may change objects.
    pub(super) fn mutates(&self) -> bool {
        self.mutates
    }

    pub(super) fn client(&self) -> ClientConfig {
        ClientConfig::read(self.raw.get("clientConfig").unwrap_or(&Value::Null))
    }

    /// How long it may take, in seconds.
    pub(super) fn timeout(&self) -> u64 {
        let given = self.raw.get("timeoutSeconds").and_then(Value::as_u64);
        given.unwrap_or(TIMEOUT)
    }

    pub(super) fn review_versions(&self) -> Vec<&str> {
        texts(&self.raw, &["admissionReviewVersions"])
    }

    /// Whether a write goes on if this webhook cannot be called.
    pub(super) fn is_ignored(&self) -> bool {
        text(&self.raw, &["failurePolicy"]) == "Ignore"
    }

    /// Whether it is called again if a later webhook changes the object.
    pub(super) fn is_reinvoked(&self) -> bool {
        text(&self.raw, &["reinvocationPolicy"]) == "IfNeeded"
    }

    /// Whether all `matchConditions` hold.
    ///
    /// # Errors
    /// One cannot be evaluated.
    pub(super) fn meets_conditions(
        &self,
        request: &AdmissionRequest,
        change: &Change<'_>,
    ) -> Result<bool, Refusal> {
        let conditions = items(&self.raw, &["matchConditions"]);
        if conditions.is_empty() {
            return Ok(true);
        }
        let object = |object: &Option<_>| object.as_deref().cloned().unwrap_or_default();
        let variables = [
            ("object", object(&change.new)),
            ("oldObject", object(&change.old)),
            ("request", request.review(change)),
        ];
        let mut failures = Vec::new();
        for condition in conditions {
            let expression = text(condition, &["expression"]);
            match cel::holds(expression, &variables) {
                Ok(true) => {}
                // A condition that does not hold decides, whatever the others are.
                Ok(false) => return Ok(false),
                Err(why) => {
                    failures.push(format!(
                        "expression '{expression}' resulted in error: {why}"
                    ));
                }
            }
        }
        let why = match failures.as_slice() {
            [] => return Ok(true),
            _ if self.is_ignored() => return Ok(false),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let subject = request.kind.subject(&request.key.name);
        Err(Refusal::forbidden(subject, &why))
    }

    /// Returns the `apiVersion` in which it wants the object; none if it is not for this request.
    pub(super) fn wanted_version(
        &self,
        request: &AdmissionRequest,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Option<String> {
        let no_selector = json!({});
        let selector = |key: &str| self.raw.get(key).unwrap_or(&no_selector);
        let is_selected = |object| selector::selects(selector("objectSelector"), object);
        // A write of a subresource of a namespace does not change its labels.
        let labelled = new
            .filter(|_| request.options.subresource.is_empty())
            .or(old);
        if !request.is_in_namespace(selector("namespaceSelector"), labelled)
            || !(old.is_some_and(is_selected) || new.is_some_and(is_selected))
        {
            return None;
        }
        let (kind, operation) = (&request.kind, operation(old, new));
        let rules = items(&self.raw, &["rules"]);
        let fits = |rule, version: &str| is_for(rule, request, version, operation);
        if rules.iter().any(|rule| fits(rule, &kind.version)) {
            return Some(kind.api_version());
        }
        if text(&self.raw, &["matchPolicy"]) == "Exact" {
            return None;
        }
        rules.iter().find_map(|rule| {
            let mut others = kind.siblings.iter().map(|sibling| &sibling.api_version);
            others.find(|other| fits(rule, version_of(other))).cloned()
        })
    }
}

/// Whether a rule is for this request, in a version.
fn is_for(rule: &Value, request: &AdmissionRequest, version: &str, operation: &str) -> bool {
    let kind = &request.kind;
    let has = |key: &str, wanted: &str| {
        let given = texts(rule, &[key]);
        given.iter().any(|&one| one == "*" || one == wanted)
    };
    let names = |resource: &str| {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        (plural == "*" || plural == kind.plural)
            && (subresource == "*" || subresource == request.options.subresource)
    };
    has("operations", operation)
        && has("apiGroups", &kind.group)
        && has("apiVersions", version)
        && texts(rule, &["resources"]).into_iter().any(names)
        && match text(rule, &["scope"]) {
            "Namespaced" => kind.namespaced,
            "Cluster" => !kind.namespaced,
            _ => true,
        }
}

impl AdmissionRequest {
    /// Whether a selector selects the namespace of the object, or the namespace that the object is.
    fn is_in_namespace(&self, selector: &Value, object: Option<&Value>) -> bool {
        if self.kind.is("", "namespaces") {
            return object.is_some_and(|object| selector::selects(selector, object));
        }
        let within = self.within.as_ref();
        within.is_none_or(|within| selector::selects(selector, &within.read()))
    }
}
