//! The stage before the commit: the server's rules, then the validating webhooks.

use serde_json::Value;

use super::{Write, WriteParams};
use crate::causes::{Causes, RefusalCause};
use crate::refusal::{Refusal, Subject};
use crate::{object, rules, schema, validate};

/// The maximum size of an object in etcd, in bytes.
const SIZE_LIMIT: usize = 1_572_864;
/// The maximum size of a message to etcd, in bytes.
const MESSAGE_LIMIT: usize = 2_097_152;

impl Write {
    /// Checks the object, and asks the validating webhooks.
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        let (old, new) = (self.old.as_ref(), &self.new);
        check(&self.params, new, old)?;
        self.params.admission.validate(old, new)
    }
}

/// Checks metadata, schema and rules, in the order of the server.
fn check(params: &WriteParams, object: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let kind = &*params.kind;
    if object::depth(object) > object::DEPTH_LIMIT {
        return Err(Refusal::too_deep());
    }
    let mut causes = Causes::default();
    let found = object::text(object, &["kind"]);
    let is_other = !kind.is_built_in() && found != kind.kind;
    if is_other {
        // An object of another kind is not validated against the schema, except for its lists and CEL rules.
        let detail = format!("must be {}", kind.kind);
        causes.invalid("kind", found, &detail);
        if let Some(old) = old {
            rules::check_kept(old, object, &mut causes);
        }
        schema::validate_lists(&kind.schema, object, "", &mut causes);
    } else {
        check_fields(params, object, old, &mut causes);
    }
    let blocking = causes.iter().any(|cause| {
        matches!(
            cause.reason,
            "FieldValueRequired"
                | "FieldValueNotSupported"
                | "FieldValueTypeInvalid"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
        )
    });
    if !blocking {
        schema::cel::check_rules(&kind.schema, object, old, kind.was_changed, &mut causes)?;
    } else if kind.schema.has_rules() {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        causes.invalid("<nil>", &Value::Null, detail);
    }
    if !causes.is_empty() {
        let subject = Subject {
            kind: if is_other { found } else { &kind.kind },
            // Both groups have the same events.
            group: if kind.is("events.k8s.io", "events") {
                ""
            } else {
                &kind.group
            },
            ..kind.subject(object::name(object))
        };
        return Err(Refusal::invalid(subject, &causes));
    }
    match object::weight(object) {
        size if size > MESSAGE_LIMIT => Err(Refusal::new(
            500,
            "",
            format!(
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {MESSAGE_LIMIT})"
            ),
        )),
        size if size > SIZE_LIMIT => Err(Refusal::new(500, "", "etcdserver: request is too large")),
        _ => Ok(()),
    }
}

/// Checks metadata and schema.
fn check_fields(params: &WriteParams, object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let kind = &*params.kind;
    rules::check_metadata(kind, object, causes);
    if let Some(old) = old {
        rules::check_kept(old, object, causes);
        // A server runs this check twice and reports its errors twice.
        rules::check_kept(old, object, causes);
    }
    if kind.is_built_in() {
        validate::validate(kind, params.subresource, old, object, causes);
    }
    if !kind.is_built_in() {
        check_schema(params, object, old, causes);
    }
    if params.subresource.is_status() {
        causes.iter_mut().for_each(RefusalCause::shorten_to_status);
    }
    if !kind.is_built_in()
        && let Some(scale) = &kind.scale
    {
        scale.check(object, causes);
    }
    if !kind.is_built_in() {
        schema::validate_lists(&kind.schema, object, "", causes);
    }
}

/// Checks that an object fits the schema of its kind.
fn check_schema(params: &WriteParams, object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let kind = &*params.kind;
    let is_null = |object: &Value| object.get("status").is_some_and(Value::is_null);
    let had_none = old.is_some_and(|old| old.get("status").is_none_or(Value::is_null));
    if params.subresource.is_status() && is_null(object) && had_none {
        // A null that replaces a missing status is no change, so it is not checked.
        let mut rest = object.clone();
        object::fields(&mut rest).remove("status");
        schema::validate(&kind.schema, &rest, old, "", causes);
    } else {
        schema::validate(&kind.schema, object, old, "", causes);
    }
}
