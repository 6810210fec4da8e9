//! The first stage: a body gets the form of its kind, with defaults and without undeclared fields.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::{UnknownFields, Write, WriteParams};
use crate::apply::Operation;
use crate::refusal::Refusal;
use crate::schema::{self, Schema};
use crate::types::{self, GoType};
use crate::{object, strategy};

impl Write {
    /// Decodes an object that a client has written.
    ///
    /// # Errors
    /// A field has another type than its kind says, or is not declared and the client wants to know.
    pub(crate) fn decode(params: WriteParams, mut object: Value) -> Result<Self, Refusal> {
        let warnings = clean(&params, &mut object)?;
        Ok(Self {
            warnings,
            ..Self::of(params, object)
        })
    }
}

/// Removes undeclared fields, fills in defaults, and returns the warnings.
fn clean(params: &WriteParams, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let kind = &*params.kind;
    if let Some(go_type) = kind.go_type {
        return decode(params, go_type, object);
    }
    if params.manager.operation == Operation::Apply {
        // The result of an apply is checked unchanged.
        schema::apply_defaults(&kind.schema, object);
        return Ok(Vec::new());
    }
    if object::text(object, &["kind"]) != kind.kind {
        // The schema does not apply to another kind.
        let unknown = prune_metadata(&kind.schema, object);
        object::tidy_metadata(object);
        return complain(params, object, &unknown);
    }
    let unknown = schema::prune(&kind.schema, object).dropped;
    schema::drop_nulls(&kind.schema, object);
    object::tidy_metadata(object);
    schema::apply_defaults(&kind.schema, object);
    complain(params, object, &unknown)
}

/// Gives an object of a kind without a CRD the form of its Go type.
fn decode(
    params: &WriteParams,
    go_type: &'static GoType,
    object: &mut Value,
) -> Result<Vec<String>, Refusal> {
    let kind = &*params.kind;
    // An empty list is a wish, although no object has one.
    let forgets_managers = object::at(object, &["metadata", "managedFields"])
        .is_some_and(|list| list.as_array().is_some_and(Vec::is_empty));
    let given = params.is_patch.then(|| object.clone());
    let unknown = types::decode(go_type, object).map_err(|why| match &given {
        Some(patched) => Refusal::undecodable_patch(patched.to_string(), &why),
        None => kind.cannot_handle(&why),
    })?;
    if kind.is("", "secrets") {
        encode_strings(object);
    }
    strategy::prepare(&kind.kind, object);
    object::tidy_metadata(object);
    if forgets_managers {
        object::put(
            object,
            &["metadata", "managedFields"],
            Value::Array(Vec::new()),
        );
    }
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
            Err(Refusal::undecodable_patch(object.to_string(), &why))
        }
        UnknownFields::Refuse => {
            let why = format!("strict decoding error: {}", found.join(", "));
            Err(kind.cannot_handle(&why))
        }
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
