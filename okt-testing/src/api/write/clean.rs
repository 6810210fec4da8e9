//! Converts the body of a request to the form of its schema.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::{UnknownFields, WriteParams};
use crate::api::apply::Operation;
use crate::api::refusal::Refusal;
use crate::api::schema::{self, Schema};
use crate::api::{builtin, object};

/// Removes undeclared fields and fills in defaults.
pub(super) fn clean(params: &WriteParams, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let kind = &*params.kind;
    if !kind.is_built_in() && params.manager.operation == Operation::Apply {
        // The result of an apply is checked unchanged.
        schema::apply_defaults(&kind.schema, object);
        return Ok(Vec::new());
    }
    if !kind.is_built_in() && object::text(object, &["kind"]) != kind.kind {
        // The schema does not apply to another kind.
        let unknown = prune_metadata(&kind.schema, object);
        object::tidy_metadata(object);
        return complain(params, object, &unknown);
    }
    let mut unknown = schema::prune(&kind.schema, object).dropped;
    if kind.is_built_in() {
        unknown.extend(builtin::drop_unknown((&kind.group, &kind.kind), object));
        schema::nulls_to_texts(&kind.schema, object, false);
        schema::drop_unknown_nulls(Some(&kind.schema), object);
    }
    if kind.is("", "secrets") {
        encode_strings(object);
    }
    if kind.is_built_in() {
        schema::drop_empty(&kind.schema, object);
    }
    schema::drop_nulls(&kind.schema, object);
    object::tidy_metadata(object);
    if kind.is_built_in() {
        builtin::fill(&kind.kind, object);
    }
    schema::apply_defaults(&kind.schema, object);
    complain(params, object, &unknown)
}

/// Removes the undeclared fields of the metadata and returns their paths.
fn prune_metadata(schema: &Schema, object: &mut Value) -> Vec<String> {
    let below = schema.properties.get("metadata");
    let (Some(below), Some(metadata)) = (below, object.get_mut("metadata")) else {
        return Vec::new();
    };
    let dropped = schema::prune(below, metadata).dropped;
    let unknown = dropped.iter().map(|path| format!("metadata.{path}"));
    unknown.collect()
}

/// Returns the warnings or the refusal for undeclared and duplicate fields.
fn complain(
    params: &WriteParams,
    object: &Value,
    unknown: &[String],
) -> Result<Vec<String>, Refusal> {
    let kind = &*params.kind;
    if (unknown.is_empty() && params.duplicates.is_empty())
        || params.manager.operation == Operation::Apply
    {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for path in &params.duplicates {
        found.push(format!("duplicate field \"{path}\""));
    }
    for path in unknown {
        found.push(format!("unknown field \"{path}\""));
    }
    match params.unknown_fields {
        UnknownFields::Ignore => Ok(Vec::new()),
        UnknownFields::Warn => Ok(found),
        UnknownFields::Refuse if params.is_patch => {
            let why = format!("strict decoding error: {}", found.join(", "));
            Err(Refusal::undecodable_patch(object, &why))
        }
        UnknownFields::Refuse => {
            let why = format!("strict decoding error: {}", found.join(", "));
            Err(kind.cannot_handle(&why))
        }
    }
}

/// Adds the warnings of the body to a refusal; a server reads the body first.
pub(crate) fn warn(params: &WriteParams, body: &Value, refusal: Refusal) -> Refusal {
    match clean(params, &mut body.clone()) {
        Ok(warnings) => refusal.warned(&warnings),
        Err(worse) => worse,
    }
}

/// Moves `stringData` to `data`, because it is not stored.
fn encode_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = object::fields(secret).remove("stringData") else {
        return;
    };
    for (key, value) in strings {
        if let Value::String(text) = value {
            object::put(secret, &["data", &key], BASE64_STANDARD.encode(text).into());
        }
    }
}
