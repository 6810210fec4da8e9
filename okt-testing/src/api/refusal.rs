//! The refusals of the API: a code, a reason and a message.
//!
//! The wording is that of a real API server, because operators and people match on it.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::causes::{Causes, RefusalCause};
use crate::api::object::DEPTH_LIMIT;

/// The reason of an error for which a real server has none.
const NO_REASON: &str = "";

/// A refused request; on the wire a `Status` of kind Failure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Map<String, Value>,
    /// `details` is written even though it is empty.
    empty_details: bool,
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

    fn details(&self, kind: &str) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        details
    }
}

impl Refusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            empty_details: false,
            warnings: Vec::new(),
        }
    }

    /// A request that this API does not implement.
    pub(crate) fn not_served(what: impl AsRef<str>) -> Self {
        Self::new(
            501,
            "NotImplemented",
            format!("okt-testing does not serve this: {}", what.as_ref()),
        )
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// An unknown path; a real server answers it in plain text, without a `Status`.
    pub(crate) fn unknown_path() -> Self {
        Self::new(404, NO_REASON, "404 page not found")
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// A creation at a path where nothing can be created.
    pub(crate) fn cannot_create(subject: Subject<'_>) -> Self {
        let resource = subject.resource();
        let message = format!("create is not supported on resources of kind \"{resource}\"");
        Self::new(405, "MethodNotAllowed", message).about(subject.details(subject.plural))
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
        Self::new(404, "NotFound", message).about(subject.details(subject.plural))
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
        Self::new(409, "AlreadyExists", message).about(subject.details(subject.plural))
    }

    pub(crate) fn conflict(subject: Subject<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": {why}",
            subject.resource(),
            subject.name
        );
        Self::new(409, "Conflict", message).about(subject.details(subject.plural))
    }

    pub(crate) fn stale(subject: Subject<'_>) -> Self {
        Self::conflict(
            subject,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(subject: Subject<'_>, why: &str) -> Self {
        let message = format!(
            "{} \"{}\" is forbidden: {why}",
            subject.resource(),
            subject.name
        );
        Self::new(403, "Forbidden", message).about(subject.details(subject.plural))
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
        let mut details = subject.details(subject.kind);
        details.insert("causes".to_owned(), list_causes(causes));
        Self::new(422, "Invalid", message).about(details)
    }

    /// An object that is nested deeper than this crate stores.
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

    pub(crate) fn too_deep() -> Self {
        Self::not_served(format!(
            "an object that is nested deeper than {DEPTH_LIMIT} levels, its managed fields included"
        ))
    }

    /// A JSON patch that cannot be applied; a real server does not name the reason.
    pub(crate) fn unprocessable_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut refusal = Self::new(422, "Invalid", message);
        refusal.empty_details = true;
        refusal
    }

    /// Fields that other managers own.
    pub(crate) fn apply_conflict(message: String, causes: &[RefusalCause]) -> Self {
        let mut details = Map::new();
        details.insert("causes".to_owned(), list_causes(causes));
        Self::new(409, "Conflict", message).about(details)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large_version(version: u64, current: u64) -> Self {
        let mut details = Map::new();
        let cause = json!({
            "reason": "ResourceVersionTooLarge",
            "message": "Too large resource version",
        });
        details.insert("causes".to_owned(), json!([cause]));
        details.insert("retryAfterSeconds".to_owned(), 1.into());
        let message = format!("Timeout: Too large resource version: {version}, current: {current}");
        Self::new(504, "Timeout", message).about(details)
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
    pub(crate) fn undecodable_patch(result: &Value, why: &str) -> Self {
        Self::invalid_field(Subject::default(), "patch", result.to_string(), why)
    }

    /// An internal error of a server.
    pub(crate) fn internal_error(why: &str) -> Self {
        let mut details = Map::new();
        details.insert("causes".to_owned(), json!([{ "message": why }]));
        Self::internal(format!("Internal error occurred: {why}")).about(details)
    }

    /// An error that a real server passes on unchanged.
    pub(crate) fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, NO_REASON, message)
    }

    fn about(mut self, details: Map<String, Value>) -> Self {
        self.details = details;
        self
    }

    /// Returns the text, if the answer is no `Status`.
    pub(crate) fn plain_text(&self) -> Option<String> {
        (self.code == 404 && self.reason == NO_REASON).then(|| format!("{}\n", self.message))
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
            body["reason"] = self.reason.into();
        }
        if !self.details.is_empty() || self.empty_details {
            body["details"] = Value::Object(self.details.clone());
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
