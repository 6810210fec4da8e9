//! Creates and updates objects: it holds the steps between the body of a request and the stored object.

mod check;
mod clean;
mod draft;
mod finish;
mod parameters;
mod precondition;
mod shown;

pub(crate) use self::clean::warn;
pub(crate) use self::draft::{Draft, Moment, apply_scale, draft_apply};
pub(crate) use self::parameters::{Subresource, UnknownFields, WriteParams};
pub(crate) use self::precondition::Precondition;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::clean::clean;
use self::finish::{commit_update, finish_create, finish_update};
use crate::api::apply;
use crate::api::convert::current;
use crate::api::kind::{Origin, ServedKind};
use crate::api::refusal::{Refusal, Subject};
use crate::api::store::{Key, Store};
use crate::api::stored::StoredObject;
use crate::api::{builtin, object};

/// The number of bytes of `generateName` that a generated name begins with.
const GENERATED_START: usize = 58;

/// The result of a write.
#[derive(Debug)]
pub(crate) struct WrittenObject {
    pub(crate) name: String,
    pub(crate) object: Arc<StoredObject>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

/// Creates an object in a namespace (empty for cluster-scoped kinds).
pub(crate) fn create(
    store: &mut Store,
    params: &WriteParams,
    namespace: &str,
    mut body: Value,
) -> Result<WrittenObject, Refusal> {
    let kind = &*params.kind;
    check_namespace(kind, namespace, &body).map_err(|refusal| warn(params, &body, refusal))?;
    place(kind, namespace, &mut body);
    let warnings = clean(params, &mut body)?;
    check_floats(params, &body)?;
    object::whole_numbers(&mut body);
    let now = params.calls().once("now", || store.clock.text());
    apply::account(params.scene(&now), None, &mut body, &params.manager);
    let warned = |refusal: Refusal| refusal.warned(&warnings);
    params.admission.mutate(None, &mut body).map_err(warned)?;
    generate_name(store, params, &mut body);
    let name = object::name(&body).to_owned();
    let object = finish_create(store, params, body).map_err(warned)?;
    Ok(WrittenObject {
        name,
        object,
        created: true,
        warnings,
    })
}

/// Names an object that has only the beginning of a name.
fn generate_name(store: &mut Store, params: &WriteParams, object: &mut Value) {
    let mut generate = object::text(object, &["metadata", "generateName"]).to_owned();
    if object::name(object).is_empty() && !generate.is_empty() {
        while generate.len() > GENERATED_START {
            generate.pop();
        }
        let suffix = params.calls().once("suffix", || store.new_suffix());
        let name = format!("{generate}{suffix}");
        object::metadata(object).insert("name".to_owned(), name.into());
    }
}

/// Replaces an object.
pub(crate) fn replace(
    store: &mut Store,
    params: &WriteParams,
    key: &Key,
    mut body: Value,
) -> Result<WrittenObject, Refusal> {
    let kind = &*params.kind;
    check_address(kind, key, &body).map_err(|refusal| warn(params, &body, refusal))?;
    object::metadata(&mut body).insert("name".to_owned(), key.name.clone().into());
    place(kind, &key.namespace, &mut body);
    let precondition = Precondition::of(&body);
    let Some(stored) = current(params.calls(), store, &params.kind, key)? else {
        if kind.creates_on_update && params.subresource != Subresource::Scale {
            let nothing = json!({ "metadata": { "name": key.name, "namespace": key.namespace } });
            precondition
                .check_uid(kind, params.dry_run, &nothing)
                .map_err(|refusal| warn(params, &body, refusal))?;
            if !params.dry_run {
                object::metadata(&mut body).remove("resourceVersion");
            }
            return create(store, params, &key.namespace, body);
        }
        let missing = Refusal::not_found(kind.subject(&key.name));
        return Err(warn(params, &body, missing));
    };
    let old = stored.read();
    precondition
        .check_uid(kind, params.dry_run, &old)
        .map_err(|refusal| warn(params, &body, refusal))?;
    if !kind.updates_unconditionally && matches!(precondition.version.as_str(), "" | "0") {
        // Here a server names the resource instead of the kind.
        let subject = Subject {
            kind: &kind.plural,
            ..kind.subject(&key.name)
        };
        let detail = "must be specified for an update";
        let refusal = Refusal::invalid_field(subject, "metadata.resourceVersion", 0, detail);
        return Err(warn(params, &body, refusal));
    }
    precondition
        .check_version(kind, &old)
        .map_err(|refusal| warn(params, &body, refusal))?;
    update(store, params, &old, body)
}

/// Updates an existing object by any method but server-side apply.
pub(crate) fn update(
    store: &mut Store,
    params: &WriteParams,
    old: &Value,
    mut new: Value,
) -> Result<WrittenObject, Refusal> {
    let kind = &*params.kind;
    let warnings = match params.subresource {
        // A write through the scale has no body of the kind to clean.
        Subresource::Scale => Vec::new(),
        Subresource::None | Subresource::Status => clean(params, &mut new)?,
    };
    check_floats(params, &new)?;
    let mut rewritten = false;
    for (key, value) in object::fields(&mut new) {
        // A value written as `1.0` is stored as `1`, so it counts as a change each time.
        let found = object::whole_numbers(value);
        rewritten |= found && params.subresource == Subresource::None && kind.counts(key);
    }
    let now = params.calls().once("now", || store.clock.text());
    let scene = params.scene(&now);
    match (params.subresource, &kind.scale) {
        (Subresource::Scale, Some(scale)) => {
            apply::account_scale(scene, old, &mut new, &params.manager, &scale.spec_replicas);
        }
        _ => apply::account(scene, Some(old), &mut new, &params.manager),
    }
    let warned = |refusal: Refusal| refusal.warned(&warnings);
    params
        .admission
        .mutate(Some(old), &mut new)
        .map_err(warned)?;
    isolate(kind, params.subresource, old, &mut new);
    let outcome = finish_update(params, old, &mut new, rewritten).map_err(warned)?;
    let object = commit_update(store, params, old, &mut new, outcome).map_err(warned)?;
    Ok(WrittenObject {
        name: object::name(old).to_owned(),
        object,
        created: false,
        warnings,
    })
}

/// Refuses replicas such as `1.0`, which a server accepts in any other field.
fn check_floats(params: &WriteParams, object: &Value) -> Result<(), Refusal> {
    let kind = &*params.kind;
    let Some(scale) = kind.scale.as_ref().filter(|_| !kind.is_built_in()) else {
        return Ok(());
    };
    let causes = scale.check_floats(object, params.subresource == Subresource::Status);
    if causes.is_empty() {
        return Ok(());
    }
    let name = object::name(object);
    Err(Refusal::invalid(kind.subject(name), &causes))
}

/// Sets the namespace of an object to that of the path.
fn place(kind: &ServedKind, namespace: &str, object: &mut Value) {
    let namespace = kind.namespaced.then(|| namespace.into());
    object::set(object::metadata(object), "namespace", namespace);
}

/// Checks that the name and the namespace of an object, if set, match the path.
pub(crate) fn check_address(kind: &ServedKind, key: &Key, object: &Value) -> Result<(), Refusal> {
    check_namespace(kind, &key.namespace, object)?;
    let name = object::name(object);
    if name.is_empty() || name == key.name {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        key.name
    )))
}

fn check_namespace(kind: &ServedKind, namespace: &str, object: &Value) -> Result<(), Refusal> {
    let given = object::namespace(object);
    if !given.is_empty() && given != namespace && kind.namespaced {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Resets the fields that this endpoint does not write.
fn isolate(kind: &ServedKind, subresource: Subresource, old: &Value, new: &mut Value) {
    match subresource {
        Subresource::None if kind.has_status => {
            let status = old.get("status").cloned();
            object::set(object::fields(new), "status", status);
            builtin::keep_allocated(kind, old, new);
        }
        Subresource::Status => {
            if let Some(metadata) = old.get("metadata") {
                let entries = object::metadata(new).remove("managedFields");
                match kind.origin {
                    Origin::Crd => take_over(metadata, object::metadata(new), &["managedFields"]),
                    Origin::BuiltIn => {
                        for &key in builtin::kept_by_status(&kind.kind) {
                            object::set(object::metadata(new), key, metadata.get(key).cloned());
                        }
                    }
                }
                object::set(object::metadata(new), "managedFields", entries);
            }
            take_over(old, object::fields(new), &["metadata", "status"]);
        }
        Subresource::None | Subresource::Scale => {}
    }
}

/// Resets all fields to the old ones, except for those left out. Most are equal already and are not copied.
fn take_over(old: &Value, new: &mut Map<String, Value>, left_out: &[&str]) {
    let left_out = |key: &str| left_out.contains(&key);
    new.retain(|key, _| left_out(key) || old.get(key).is_some());
    for (key, value) in old.as_object().into_iter().flatten() {
        if !left_out(key) && new.get(key) != Some(value) {
            new.insert(key.clone(), value.clone());
        }
    }
}
