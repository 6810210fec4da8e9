//! [`Causes`]: the errors in an object, each with its field.
//!
//! The wording is that of a real API server.

use std::ops::{Deref, DerefMut};

use serde::Serialize;

const NOT_SERVED: &str = "NotImplemented";

/// Returns a value as a message shows it, in the order of its fields.
fn printed(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// One error in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusalCause {
    /// The path of the field (e.g. `spec.replicas`); empty for the object itself.
    pub(crate) field: String,
    /// The machine-readable reason (e.g. `FieldValueInvalid`).
    pub(crate) reason: &'static str,
    /// The message, without the field.
    pub(crate) message: String,
}

impl RefusalCause {
    pub(crate) fn is_not_served(&self) -> bool {
        self.reason == NOT_SERVED
    }

    /// Shortens the field names: on the status endpoint, schema messages name fields relative to the status.
    pub(crate) fn shorten_to_status(&mut self) {
        if self.field == "<nil>" {
            "status".clone_into(&mut self.field);
            self.message = self.message.replace(" in status.", " in ");
        }
        if self.field == "status" {
            self.message = self.message.replace(": status in body", ":  in body");
        }
        if let Some(short) = self.field.strip_prefix("status.") {
            let (long, short) = (
                format!(" {} in body", self.field),
                format!(" {short} in body"),
            );
            self.message = self.message.replace(&long, &short);
        }
    }

    /// Returns the field and the message.
    pub(crate) fn text(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.field, self.message)
        }
    }
}

/// The errors found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes(Vec<RefusalCause>);

impl Causes {
    pub(crate) fn required(&mut self, field: impl Into<String>, detail: &str) {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        self.add(field, "FieldValueRequired", message);
    }

    pub(crate) fn invalid(
        &mut self,
        field: impl Into<String>,
        value: impl Serialize,
        detail: &str,
    ) {
        let message = format!("Invalid value: {}: {detail}", printed(&value));
        self.add(field, "FieldValueInvalid", message);
    }

    /// An invalid value that the message does not show, because it is large or missing.
    pub(crate) fn faulty(&mut self, field: impl Into<String>, detail: &str) {
        let message = format!("Invalid value: {detail}");
        self.add(field, "FieldValueInvalid", message);
    }

    pub(crate) fn mistyped(
        &mut self,
        field: impl Into<String>,
        value: impl Serialize,
        detail: &str,
    ) {
        let message = format!("Invalid value: {}: {detail}", printed(&value));
        self.add(field, "FieldValueTypeInvalid", message);
    }

    pub(crate) fn internal(&mut self, field: impl Into<String>, detail: &str) {
        self.add(field, "InternalError", format!("Internal error: {detail}"));
    }

    pub(crate) fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.add(field, "FieldValueForbidden", format!("Forbidden: {detail}"));
    }

    pub(crate) fn duplicate(&mut self, field: impl Into<String>, value: impl Serialize) {
        let message = format!("Duplicate value: {}", printed(&value));
        self.add(field, "FieldValueDuplicate", message);
    }

    pub(crate) fn unsupported<S: Serialize>(
        &mut self,
        field: impl Into<String>,
        value: impl Serialize,
        supported: &[S],
    ) {
        self.unsupported_as(field, &printed(&value), supported);
    }

    /// Adds an unsupported value as it is shown.
    pub(crate) fn unsupported_as<S: Serialize>(
        &mut self,
        field: impl Into<String>,
        shown: &str,
        supported: &[S],
    ) {
        let list: Vec<_> = supported.iter().map(printed).collect();
        let list = list.join(", ");
        let message = format!("Unsupported value: {shown}: supported values: {list}");
        self.add(field, "FieldValueNotSupported", message);
    }

    pub(crate) fn too_long(&mut self, field: impl Into<String>, limit: u64) {
        let message = format!("Too long: may not be more than {limit} bytes");
        self.add(field, "FieldValueTooLong", message);
    }

    pub(crate) fn too_many(&mut self, field: impl Into<String>, count: usize, limit: u64) {
        let message = format!("Too many: {count}: must have at most {limit} items");
        self.add(field, "FieldValueTooMany", message);
    }

    pub(crate) fn not_found(&mut self, field: impl Into<String>, value: impl Serialize) {
        let message = format!("Not found: {}", printed(&value));
        self.add(field, "FieldValueNotFound", message);
    }

    /// A value that is not found, for this reason.
    pub(crate) fn not_found_because(
        &mut self,
        field: impl Into<String>,
        value: impl Serialize,
        detail: &str,
    ) {
        let message = format!("Not found: {}: {detail}", printed(&value));
        self.add(field, "FieldValueNotFound", message);
    }

    /// A valid request that this API does not implement; it is answered with 501.
    pub(crate) fn not_served(&mut self, field: impl Into<String>, what: String) {
        self.add(field, NOT_SERVED, what);
    }

    fn add(&mut self, field: impl Into<String>, reason: &'static str, message: String) {
        self.0.push(RefusalCause {
            field: field.into(),
            reason,
            message,
        });
    }
}

impl Deref for Causes {
    type Target = Vec<RefusalCause>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Causes {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
