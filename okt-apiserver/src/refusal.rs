//! The refusals of the API: a code, a reason and a message.
//!
//! The wording is that of a real API server, because operators and people match on it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::causes::{Causes, RefusalCause};
use crate::object::DEPTH_LIMIT;

/// The reason of an error for which a real server has none.
const NO_REASON: &str = "";

/// The beginning of the message of a request that a real server serves, and this one does not.
const NOT_SERVED: &str = "okt-apiserver does not serve this: ";

/// A refused request; on the wire a `Status` of kind Failure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Value>,
    /// The answer is text, and no `Status`.
    is_plain: bool,
    /// A real server serves what this refuses; the message ends with it.
    is_not_served: bool,
    /// The warnings that were found before the refusal.
    pub(crate) warnings: Vec<String>,
}

/// The object that a refusal is about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) name: &'a str,
}

impl Subject<'_> {
    fn resource(&self) -> String {
        qualified(self.plural, self.group)
    }

    /// The details of a refusal; `None` if nothing is known of the object.
    fn details(&self, kind: &str) -> Option<Value> {
        let mut details = json!({});
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", kind)] {
            if !value.is_empty() {
                details[key] = value.into();
            }
        }
        Some(details).filter(|details| *details != json!({}))
    }
}

impl Refusal {
    pub(crate) fn new(
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            is_plain: false,
            is_not_served: false,
            warnings: Vec::new(),
        }
    }

    /// A request that this API does not implement.
    pub(crate) fn not_served(what: impl Into<String>) -> Self {
        let message = format!("{NOT_SERVED}{}", what.into());
        Self {
            is_not_served: true,
            ..Self::new(501, "NotImplemented", message)
        }
    }

    /// Returns what a real server serves here, and this one does not.
    pub(crate) fn missing(&self) -> Option<&str> {
        let what = self.message.strip_prefix(NOT_SERVED);
        what.filter(|_| self.is_not_served)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// An unknown path; a real server answers it in plain text, without a `Status`.
    pub(crate) fn unknown_path() -> Self {
        Self {
            is_plain: true,
            ..Self::new(404, NO_REASON, "404 page not found")
        }
    }

    /// A path of a group that has no such resource.
    pub(crate) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message).with(json!({}))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(json!({}))
    }

    /// A creation at a path where nothing can be created.
    pub(crate) fn cannot_create(subject: Subject<'_>) -> Self {
        let resource = subject.resource();
        let message = format!("create is not supported on resources of kind \"{resource}\"");
        Self::of_subject(405, "MethodNotAllowed", message, subject)
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    pub(crate) fn not_found(subject: Subject<'_>) -> Self {
        let message = format!("{} \"{}\" not found", subject.resource(), subject.name);
        Self::of_subject(404, "NotFound", message, subject)
    }

    pub(crate) fn already_exists(subject: Subject<'_>, deleting: bool) -> Self {
        let gone = if deleting {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!(
            "{gone}{} \"{}\" already exists",
            subject.resource(),
            subject.name
        );
        Self::of_subject(409, "AlreadyExists", message, subject)
    }

    pub(crate) fn conflict(subject: Subject<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": {why}",
            subject.resource(),
            subject.name
        );
        Self::of_subject(409, "Conflict", message, subject)
    }

    pub(crate) fn stale(subject: Subject<'_>) -> Self {
        Self::conflict(
            subject,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(subject: Subject<'_>, why: &str) -> Self {
        let resource = subject.resource();
        let message = match subject.name {
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} \"{name}\" is forbidden: {why}"),
        };
        Self::of_subject(403, "Forbidden", message, subject)
    }

    pub(crate) fn invalid(subject: Subject<'_>, causes: &[RefusalCause]) -> Self {
        let mut texts = Vec::new();
        for cause in causes {
            let text = cause.text();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!(
            "{} \"{}\" is invalid: {list}",
            qualified(subject.kind, subject.group),
            subject.name
        );
        let mut details = subject.details(subject.kind).unwrap_or_default();
        details["causes"] = list_causes(causes);
        Self::new(422, "Invalid", message).with(details)
    }

    /// The refusal of an eviction that a budget forbids.
    pub(crate) fn over_budget(why: String) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = RefusalCause {
            field: String::new(),
            reason: "DisruptionBudget",
            message: why,
        };
        let details = json!({ "causes": list_causes(&[cause]) });
        Self::new(429, "TooManyRequests", message).with(details)
    }

    /// An object with one error.
    pub(crate) fn invalid_field(
        subject: Subject<'_>,
        field: impl Into<String>,
        value: impl Serialize,
        detail: &str,
    ) -> Self {
        let mut causes = Causes::default();
        causes.invalid(field, value, detail);
        Self::invalid(subject, &causes)
    }

    /// An object that is nested deeper than this crate stores.
    pub(crate) fn too_deep() -> Self {
        Self::not_served(format!(
            "an object that is nested deeper than {DEPTH_LIMIT} levels, its managed fields included"
        ))
    }

    /// A JSON patch that cannot be applied; a real server does not name the reason.
    pub(crate) fn unprocessable_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).with(json!({}))
    }

    /// Fields that other managers own.
    pub(crate) fn apply_conflict(message: String, causes: &[RefusalCause]) -> Self {
        let details = json!({ "causes": list_causes(causes) });
        Self::new(409, "Conflict", message).with(details)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large_version(version: u64, current: u64) -> Self {
        let cause = json!({
            "reason": "ResourceVersionTooLarge",
            "message": "Too large resource version",
        });
        let details = json!({ "causes": [cause] });
        let message = format!("Timeout: Too large resource version: {version}, current: {current}");
        Self::new(504, "Timeout", message)
            .with(details)
            .retry_after(1)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// Returns the refusal with these warnings.
    pub(crate) fn warned(mut self, warnings: &[String]) -> Self {
        self.warnings = warnings.to_vec();
        self
    }

    /// A patch whose result is no valid object of the kind.
    pub(crate) fn undecodable_patch(shown: String, why: &str) -> Self {
        Self::invalid_field(Subject::default(), "patch", shown, why)
    }

    /// An internal error of a server.
    pub(crate) fn internal_error(why: &str) -> Self {
        let details = json!({ "causes": [{ "message": why }] });
        Self::internal(format!("Internal error occurred: {why}")).with(details)
    }

    /// An error that a real server passes on unchanged.
    pub(crate) fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, NO_REASON, message)
    }

    /// A refusal that names its object.
    pub(crate) fn of_subject(
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        message: String,
        subject: Subject<'_>,
    ) -> Self {
        Self {
            details: subject.details(subject.plural),
            ..Self::new(code, reason, message)
        }
    }

    /// A refusal that asks the client to retry after this time.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.details.get_or_insert_default()["retryAfterSeconds"] = seconds.into();
        self
    }

    /// Returns the refusal with one cause.
    pub(crate) fn caused(mut self, cause: &Value) -> Self {
        self.details.get_or_insert_default()["causes"] = json!([cause]);
        self
    }

    fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// A webhook refuses a request, with this `Status`.
    pub(crate) fn denied(webhook: &str, status: &Value) -> Self {
        let given = |key: &str| status.get(key).and_then(Value::as_str).unwrap_or_default();
        let denied = format!("admission webhook {webhook:?} denied the request");
        let message = match (given("message"), given("reason")) {
            ("", "") => format!("{denied} without explanation"),
            ("", why) | (why, _) => format!("{denied}: {why}"),
        };
        let code = status.get("code").and_then(Value::as_u64);
        let code = code.and_then(|code| u16::try_from(code).ok());
        Self {
            details: status.get("details").cloned(),
            ..Self::new(
                code.unwrap_or_default().max(400),
                given("reason").to_owned(),
                message,
            )
        }
    }

    /// Returns the text, if the answer is no `Status`.
    pub(crate) fn plain_text(&self) -> Option<String> {
        self.is_plain.then(|| format!("{}\n", self.message))
    }

    /// Returns the `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            body["reason"] = (*self.reason).into();
        }
        if let Some(details) = &self.details {
            body["details"] = details.clone();
        }
        body
    }
}

fn list_causes(causes: &[RefusalCause]) -> Value {
    causes
        .iter()
        .map(|cause| {
            let mut entry = json!({ "reason": cause.reason, "message": cause.message });
            if !cause.field.is_empty() {
                entry["field"] = cause.field.clone().into();
            }
            entry
        })
        .collect()
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}
