//! Writes the replicas of an object through its scale.

use std::sync::Arc;

use serde_json::Value;

use super::decode::Call;
use super::patches::configuration;
use crate::answer::ApiAnswer;
use crate::kind::Origin;
use crate::object::{self, text};
use crate::refusal::{Refusal, Subject};
use crate::store::{Key, Store};
use crate::write::{self, Precondition, Write, WriteParams};
use crate::{convert, patch};

/// Applies a scale that sets the number of replicas and nothing else.
pub(super) fn apply(
    store: &mut Store,
    call: &Call,
    params: WriteParams,
    key: &Key,
) -> Result<ApiAnswer, Refusal> {
    let kind = &Arc::clone(&params.kind);
    let Some(scale) = &kind.scale else {
        return Err(Refusal::unknown_path());
    };
    let config = configuration(call, ("autoscaling/v1", "Scale"));
    let Some(old) = convert::current(params.calls(), store, kind, key)? else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let config = config?;
    if !kind.is_built_in() {
        return Err(Refusal::not_served(
            "server-side apply of the scale of a custom resource, at which a real server fails",
        ));
    }
    let replicas = object::at(&config, &["spec", "replicas"]).and_then(Value::as_i64);
    let sets_more = |path: &[&str], known: &[&str]| {
        object::entries(&config, path).any(|(key, _)| !known.contains(&key.as_str()))
    };
    let sets_more = sets_more(&[], &["apiVersion", "kind", "metadata", "spec"])
        || sets_more(&["metadata"], &["name", "namespace", "resourceVersion"])
        || sets_more(&["spec"], &["replicas"]);
    let Some(replicas) = replicas.filter(|_| !sets_more) else {
        return Err(Refusal::not_served(
            "server-side apply of a scale that does not set its name and its replicas, or sets more",
        ));
    };
    let address = (
        text(&config, &["metadata", "name"]),
        object::namespace(&config),
    );
    if !(address.0.is_empty() || address.0 == key.name)
        || !(address.1.is_empty() || address.1 == key.namespace)
    {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            address.0, key.name
        )));
    }
    let old = old.read();
    Precondition::of(&config).check_version(kind, &old)?;
    check_replicas(key, replicas)?;
    let replicas = (scale.spec_replicas.as_slice(), replicas);
    let force = call.query.flag("force");
    let written = Write::apply_scale(store, params, old, replicas, force)?;
    Ok(ApiAnswer::ok(scale.of(&written.read())))
}

/// Writes the replicas by any method but server-side apply.
pub(super) fn write(
    store: &mut Store,
    call: &Call,
    params: WriteParams,
    key: &Key,
    edit: impl FnOnce(&mut Value) -> Result<(), Refusal>,
) -> Result<ApiAnswer, Refusal> {
    let kind = &Arc::clone(&params.kind);
    let Some(scale) = &kind.scale else {
        return Err(Refusal::unknown_path());
    };
    let Some(stored) = convert::current(params.calls(), store, kind, key)? else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let old = stored.read();
    let mut shown = scale.of(&old);
    edit(&mut shown)?;
    if call.media() == patch::STRATEGIC || call.media().ends_with("yaml") {
        // These formats do not distinguish `1.0` from `1`.
        object::whole_numbers(&mut shown);
    }
    let replicas = read_replicas(&params, &shown)?;
    write::check_address(kind, key, &shown)?;
    Precondition::of(&shown).check_version(kind, &old)?;
    if kind.is_built_in() {
        // Those of a custom resource are checked with the resource.
        check_replicas(key, replicas)?;
    }
    let path: Vec<_> = scale.spec_replicas.iter().map(String::as_str).collect();
    let mut new = old.clone();
    object::put(&mut new, &path, replicas.into());
    let written = Write::of(params, new).update(store, old)?;
    Ok(ApiAnswer::ok(scale.of(&written.object.read())))
}

fn read_replicas(params: &WriteParams, scale: &Value) -> Result<i64, Refusal> {
    let replicas = object::at(scale, &["spec", "replicas"]).unwrap_or(&Value::Null);
    if replicas.is_null() {
        return Ok(0);
    }
    if let Some(number) = replicas.as_i64()
        && i32::try_from(number).is_ok()
    {
        return Ok(number);
    }
    let found = match replicas {
        Value::Number(number) => format!("number {number}"),
        other => object::json_type(other).to_owned(),
    };
    let why = format!(
        "json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32"
    );
    Err(match params.kind.origin {
        _ if params.is_patch => Refusal::undecodable_patch(scale.to_string(), &why),
        Origin::BuiltIn => Refusal::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {why}"
        )),
        Origin::Crd => Refusal::bad_request(
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    })
}

fn check_replicas(key: &Key, replicas: i64) -> Result<(), Refusal> {
    if replicas >= 0 {
        return Ok(());
    }
    let detail = "must be greater than or equal to 0";
    let subject = Subject {
        group: "autoscaling",
        kind: "Scale",
        plural: "scales",
        name: &key.name,
    };
    let field = "spec.replicas";
    Err(Refusal::invalid_field(subject, field, replicas, detail))
}
