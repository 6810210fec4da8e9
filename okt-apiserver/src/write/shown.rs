//! Handles objects whose read form differs from the written one.

use std::sync::Arc;

use serde_json::Value;

use super::WriteParams;
use crate::apply::Operation;
use crate::kind::ServedKind;
use crate::refusal::Refusal;
use crate::store::Store;
use crate::subresource::Subresource;
use crate::{convert, object, schema};

/// Converts an object to the form that is read, and returns whether that differs from the written one.
pub(super) fn hide(params: &WriteParams, object: &mut Value) -> bool {
    if params.kind.is_built_in() {
        return schema::nulls_to_texts(&params.kind.schema, object);
    }
    // Other writes start from the form that is read.
    let may_differ = params.manager.operation == Operation::Apply
        || !params.kind.is_stored
        || params.subresource == Subresource::Scale
        || object.get("status").is_none();
    if !may_differ {
        return false;
    }
    // The entries are as large as the rest of the object, and are read unchanged.
    let entries = object::metadata(object).remove("managedFields");
    let hides = show(&params.kind, object);
    object::set(object::metadata(object), "managedFields", entries);
    hides
}

/// Checks that the declared versions can read all stored objects.
///
/// # Errors
/// An object is stored in a version that was removed.
pub(super) fn check_readable(store: &Store, declared: &[ServedKind]) -> Result<(), Refusal> {
    let Some(kind) = declared.first() else {
        return Ok(());
    };
    for (_, object) in store.list(&kind.id(), None) {
        let object = object.read();
        let version = convert::api_version(&object);
        if kind.schema_of(version).is_none() {
            return Err(Refusal::not_served(format!(
                "a CRD without the version {version}, in which objects are still stored and which a real server then cannot read"
            )));
        }
    }
    Ok(())
}

/// Converts the stored objects to the form of changed schemas.
pub(super) fn reread(store: &mut Store, declared: Vec<ServedKind>) {
    let Some(kind) = declared.first() else { return };
    let id = kind.id();
    let objects: Vec<Value> = store
        .list(&id, None)
        .map(|(_, object)| object.read())
        .collect();
    for mut object in objects {
        show(kind, &mut object);
        store.reread(&id, &object);
    }
    store.serve_anew(declared.into_iter().map(Arc::new).collect());
}

/// Converts an object to the form that is read in its stored version, and returns whether that changes it.
fn show(kind: &ServedKind, object: &mut Value) -> bool {
    let schema = match kind.siblings.as_slice() {
        [] => &kind.schema,
        _ => kind
            .schema_of(convert::api_version(object))
            .unwrap_or(&kind.schema),
    };
    let mut changed = false;
    if !kind.is_built_in() {
        changed |= schema::prune(schema, object).changed();
        changed |= schema::drop_nulls(schema, object);
    }
    changed |= object::tidy_metadata(object);
    changed | schema::apply_defaults(schema, object)
}
