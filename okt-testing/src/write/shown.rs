//! This file is about objects that show something else than what was written: more, or less.

use std::sync::Arc;

use serde_json::Value;

use super::{Door, Subresource};
use crate::{
    apply::Operation,
    kind::{Kind, Origin},
    object, schema,
    store::Store,
};

/// Makes of an object what is shown of it, and says whether that is not what is written.
pub(super) fn hide(door: &Door, object: &mut Value) -> bool {
    // Other ways of writing begin with what is shown already.
    let may_differ = door.manager.operation == Operation::Apply
        || door.subresource == Subresource::Scale
        || object.get("status").is_none();
    if door.kind.origin != Origin::Crd || !may_differ {
        return false;
    }
    // They are as large as the rest, and the same in both.
    let entries = object::metadata(object).remove("managedFields");
    let written = object.clone();
    show(&door.kind, object);
    let differs = written != *object;
    object::set(object::metadata(object), "managedFields", entries);
    differs
}

/// Shows what is stored through a changed schema.
pub(super) fn reread(store: &mut Store, declared: Kind) {
    let id = declared.id();
    let objects: Vec<Value> = store
        .list(&id, None)
        .map(|(_, object)| object.read())
        .collect();
    for mut object in objects {
        show(&declared, &mut object);
        store.reread(&id, &object);
    }
    store.add_kind(Arc::new(declared));
}

/// What is shown of what is stored.
fn show(kind: &Kind, object: &mut Value) {
    if kind.origin == Origin::Crd {
        schema::prune(&kind.schema, object);
        schema::drop_nulls(&kind.schema, object);
    }
    object::tidy_metadata(object);
    schema::apply_defaults(&kind.schema, object);
}
